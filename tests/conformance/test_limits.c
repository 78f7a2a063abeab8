/* SPDX-License-Identifier: Apache-2.0 */
/* limit in the shim: P-23, P-28 to P-30, P-33, P-34; and shared by processes. */
#include "policy_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void one_process(void **state)
{
	static const struct policy_row rows[] = {
		{ { .row = "P-23, R-75: over it 2, exactly on it fine",
		    .script = "expect 2 alloc a 2G; alloc a 1G; expect 2 alloc b 1; free a; "
			      "alloc b 512M; expect 2 alloc c 513M; alloc c 512M; free b; free c; "
			      "truth",
		    .out = "", .quiet = true },
		  .chain = "limit:1GiB" },
		{ { .row = "P-33: the figures are the limit's",
		    .ways = HEARD_WAYS,
		    .script = "info; alloc a 6G; info; free a; info",
		    .out = "info 8589934592 8589934592\ninfo 2147483648 8589934592\n"
			   "info 8589934592 8589934592\n",
		    .quiet = true },
		  .chain = "limit:8GiB" },
		{ { .row = "never above the real card",
		    .ways = HEARD_WAYS,
		    .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "info", .out = "info 1048576 1048576\n", .quiet = true },
		  .chain = "limit:8GiB" },
		{ { .row = "safety= is held back from the figure alone",
		    .ways = HEARD_WAYS,
		    .script = "info; alloc a 8G; info; free a",
		    .out = "info 7516192768 8589934592\ninfo 0 8589934592\n", .quiet = true },
		  .chain = "limit:8GiB,safety=1G" },
		{ { .row = "a percentage of the device, by whichever door",
		    .environment = { "CUWEIR_SIM_CAPACITY=10M" },
		    .script = "expect 2 alloc a 5243K; alloc a 5M; free a; truth", .out = "",
		    .quiet = true },
		  .chain = "limit:50%" },
		{ { .row = "P-28, P-34: by the numbers of this process",
		    .environment = { "CUWEIR_SIM_DEVICES=2" },
		    .script = "expect 2 alloc a 1025M; device 1; expect 2 alloc b 513M; "
			      "alloc c 512M; free c; truth",
		    .out = "", .quiet = true },
		  .chain = "limit:gpu0=1g,1=512MB" },
		{ { .row = "R-75: of two the lower one holds, whichever is in front",
		    .ways = HEARD_WAYS,
		    .script = "info; expect 2 alloc a 4M; alloc a 2M; expect 2 alloc b 1; free a; "
			      "truth",
		    .out = "info 2097152 2097152\n", .quiet = true },
		  .chain = "limit:2M;limit:5M" },
		{ { .row = "R-75: of two the lower one holds, whichever is behind",
		    .ways = HEARD_WAYS,
		    .script = "info; expect 2 alloc a 4M; alloc a 2M; expect 2 alloc b 1; free a; "
			      "truth",
		    .out = "info 2097152 2097152\n", .quiet = true },
		  .chain = "limit:5M;limit:2M" },
		{ { .row = "R-75: a percentage that is known later, too",
		    .environment = { "CUWEIR_SIM_CAPACITY=10M" },
		    .script = "expect 2 alloc a 3M; alloc a 2M; free a; truth", .out = "",
		    .quiet = true },
		  .chain = "limit:2M;limit:50%" },
		{ { .row = "P-30: a free of what is nobody's changes nothing",
		    .ways = DRIVER_WAYS,
		    .script = "alloc a 1M; free a; expect 1 free a; info; truth",
		    .out = "info 1048576 1048576\n", .quiet = true },
		  .chain = "limit:1M" },
	};

	(void)state;
	RUN_POLICIES(rows);
}

static void wrong(void **state)
{
	static const struct policy_row rows[] = {
		{ { .row = "P-34: -1",
		    .script = "alloc a 1K; free a",
		    .err = { "limit.so:-1\": argument 1, \"-1\": want SIZE, PERCENT%, "
			     "DEVICE=SIZE" } },
		  .chain = "limit:-1" },
		{ { .row = "P-34: abc",
		    .script = "alloc a 1K; free a",
		    .err = { "limit.so:abc\": argument 1, \"abc\": want SIZE" } },
		  .chain = "limit:abc" },
		{ { .row = "P-34: no such device, and nothing else to limit",
		    .environment = { "CUWEIR_SIM_DEVICES=2" },
		    .script = "alloc a 1K; free a",
		    .err = { "limit.so:2=1G\": there is no device 2 here; want one below 2; the "
			     "policy is left out" } },
		  .chain = "limit:2=1G" },
		{ { .row = "P-34: no such device, and another one that is there",
		    .environment = { "CUWEIR_SIM_DEVICES=2" },
		    .script = "expect 2 alloc a 2K; alloc a 1K; free a",
		    .err = { "limit: there is no device 2 here; want one below 2; the other limits "
			     "hold\n" } },
		  .chain = "limit:2=1G,0=1K" },
	};

	(void)state;
	RUN_POLICIES(rows);
}

static char runtime[] = "/tmp/cuweir-limits-XXXXXX";
static char runtime_setting[64];

static void shared(void **state)
{
	struct policy_row rows[] = {
		{ { .row = "shared by one process: as alone",
		    .script = "expect 2 alloc a 1025K; alloc a 1M; expect 2 alloc b 1; free a; "
			      "alloc b 1M; free b; truth",
		    .out = "", .quiet = true },
		  .chain = "limit:1M,shared=test" },
		{ { .row = "each family, by both frees",
		    .ways = HEARD_WAYS,
		    .script = "async a 512K s; alloc b 256K; info; freeasync a s; free b; sync; "
			      "info; truth",
		    .out = "info 262144 1048576\ninfo 1048576 1048576\n", .quiet = true },
		  .chain = "limit:1M,shared=test" },
		{ { .row = "D-03: pitched memory counts with what it is charged",
		    .ways = HEARD_WAYS,
		    .script = "pitch a 100 10; info; free a; info",
		    .out = "pitch a 512\ninfo 1043456 1048576\ninfo 1048576 1048576\n",
		    .quiet = true },
		  .chain = "limit:1M,shared=test" },
		{ { .row = "a failure of the driver gives the claim back",
		    .ways = HEARD_WAYS,
		    .environment = { NULL, "CUWEIR_SIM_FAIL=alloc:1=2" },
		    .script = "expect 2 alloc a 1M; info; alloc a 1M; free a; truth",
		    .out = "info 1048576 1048576\n", .quiet = true },
		  .chain = "limit:1M,shared=test" },
		{ { .row = "so does a policy behind it that refuses, and a retry claims anew",
		    .ways = HEARD_WAYS,
		    .script = "alloc a 1M; free a; info; truth",
		    .out = "info 1048576 1048576\n", .quiet = true },
		  .chain = "retry:backoff=0..0;limit:1M,shared=test;inject:nth=1,count=3" },
		{ { .row = "with its context",
		    .ways = DRIVER_WAYS,
		    .script = "ctx create; alloc a 1M; ctx destroy; ctx create; alloc b 1M; "
			      "free b; truth",
		    .out = "", .quiet = true },
		  .chain = "limit:1M,shared=test" },
		{ { .row = "a child has nothing of its parent's",
		    .ways = DRIVER_WAYS,
		    .script = "alloc a 1M; fork { expect 3 alloc b 1K }; free a; alloc c 1M; "
			      "free c; truth",
		    .out = "", .quiet = true },
		  .chain = "limit:1M,shared=test" },
		{ { .row = "two of them, each with a sum of its own",
		    .ways = HEARD_WAYS,
		    .script = "alloc a 300K; alloc b 300K; alloc c 300K; info; free a; free b; "
			      "free c; info; alloc d 900K; free d; truth",
		    .out = "info 126976 1048576\ninfo 1048576 1048576\n", .quiet = true },
		  .chain = "limit:1M,shared=test;limit:1M,shared=other" },
		{ { .row = "behind a pool: what that one keeps counts",
		    .ways = DRIVER_WAYS,
		    .script = "alloc a 512K; free a; info; alloc a 512K; free a",
		    .out = "info 524288 1048576\n", .quiet = true },
		  .chain = "pool;limit:1M,shared=test", .unbalanced = true },
		{ { .row = "before a pool: told that it does not",
		    .ways = DRIVER_WAYS,
		    .script = "alloc a 512K; free a; alloc a 512K; free a",
		    .err = { "limit: shared=test stands before a policy that keeps memory" } },
		  .chain = "limit:1M,shared=test;pool", .unbalanced = true },
		{ { .row = "what is left at exit is not left in the sum",
		    .script = "alloc a 1M",  .quiet = true },
		  .chain = "limit:1M,shared=test" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rows[i].run.environment[0] = runtime_setting;
		run_policies(&rows[i]);
	}
}

/* P-29, P-39: while one process has memory the other cannot, and then it can. */
static void two_processes(void **state)
{
	static char chain[1024];
	struct run first = {
		.environment = { runtime_setting, chain },
		.script = "alloc a 600K; info; sleep 1500",
	};
	struct run second = {
		.environment = { runtime_setting, chain },
		.script = "info; expect 2 alloc b 600K; alloc b 400K; sleep 2000; free b; "
			  "alloc b 600K; info",
	};
	static struct result result;
	pid_t child;
	int status;

	(void)state;
	snprintf(chain, sizeof(chain), "CUWEIR_POLICY=%s/policy/limit.so:1000K,shared=test",
		 getenv("CUWEIR_TEST_BUILD"));
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		run_once(&first, LINKED, &result);
		_exit(strcmp(result.out, "info 409600 1024000\n") == 0 ? 0 : 1);
	}
	usleep(700000);
	run_once(&second, SHARED, &result);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_string_equal(result.err, "");
	assert_string_equal(result.out, "info 409600 1024000\ninfo 409600 1024000\n");
}

static int set_up(void **state)
{
	(void)state;
	if (mkdtemp(runtime) == NULL) {
		return -1;
	}
	snprintf(runtime_setting, sizeof(runtime_setting), "XDG_RUNTIME_DIR=%s", runtime);
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "test", "other" };
	char path[100];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/cuweir-limit-%s", runtime, names[i]);
		unlink(path);
	}
	return rmdir(runtime);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_process),
		cmocka_unit_test(wrong),
		cmocka_unit_test(shared),
		cmocka_unit_test(two_processes),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
