/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs and policies as somebody would write them who has read the header alone: P-11, P-12,
 * P-22, P-26, P-30, P-44, P-47, P-62; D-05, D-10 to D-15, D-17 to D-19; C-02 to C-16, C-40 to C-49,
 * C-60, C-82, C-83; D-01, D-23.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUTSIDER                                                                                   \
	.plugin = "outsider", .shown = "threshold held failure gave refused waited taken given too"

static void policies(void **state)
{
	static const struct run runs[] = {
		{ .row = "a handler that gives its own memory up by cuMemFree", OUTSIDER,
		  .ways = HEARD_WAYS,
		  .policies = { "hold=512K" }, .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		  .script = "alloc a 4K; alloc b 600K; expect 2 alloc c 600K; free a; free b; "
			    "truth",
		  .events = { "threshold 4096\nheld 524288 status=0\nfailure 614400 status=0\n"
			      "gave up 524288 status=0\nfailure 614400 status=0\n" },
		  .out = "" },
		{ .row = "limits by admit: thrice one policy, with other arguments", OUTSIDER,
		  .policies = { "limit=64K", "wait=1", "limit=32K" },
		  .script = "alloc a 20K; expect 2 alloc b 20K; alloc c 12K; expect 2 alloc d 1; "
			    "free a; async b 20K s; expect 2 pitch e 16 2; expect 2 alloc f 64K; "
			    "host h 1M; managed m 1M; free h; free m; free b; free c; sync; truth",
		  .events = { "threshold 20480\nfailure 20480\nfailure 1\nfailure 32\n"
			      "refused 65536 status=2\n",
			      "threshold 20480\nfailure 20480\nwaited 0 status=600\n"
			      "failure 1\nwaited 0 status=600\nfailure 32\nwaited 0 status=600\n",
			      "threshold 20480\nrefused 20480 status=2\nrefused 1 status=2\n"
			      "refused 32 status=2\n" },
		  .out = "" },
		{ .row = "D-13: memory taken in a threshold callback, and a want of it", OUTSIDER,
		  .ways = HEARD_WAYS,
		  .policies = { "take=1M", "take=2M" }, .environment = { "CUWEIR_SIM_CAPACITY=8M" },
		  .script = "alloc a 4K; free a; async b 4K s; freeasync b s; sync; truth",
		  .events = { "threshold 4096\ntaken 1048576 status=0\ngiven 1048576 status=0\n"
			      "too much 1 status=2\n"
			      "threshold 4096\ntaken 1048576 status=0\ngiven 1048576 status=0\n"
			      "too much 1 status=2\n",
			      "threshold 4096\ntaken 2097152 status=0\ngiven 2097152 status=0\n"
			      "too much 1 status=2\n"
			      "threshold 4096\ntaken 2097152 status=0\ngiven 2097152 status=0\n"
			      "too much 1 status=2\n" },
		  .out = "" },
		{ .row = "a wait that another thread ends", OUTSIDER,
		  .policies = { "wait=20000" }, .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		  .script = "alloc a 700K; thread { sleep 150; free a }; alloc b 700K; join; "
			    "free b; truth",
		  .events = { "threshold 716800\nfailure 716800 status=0\nwaited 0 status=0\n"
			      "threshold 716800\n" },
		  .out = "" },
	};

	(void)state;
	RUN_ALL(runs);
}

/* P-11: linked, dlsym, cuGetProcAddress and a runtime in one program: each is told once. */
static void mixed(void **state)
{
	static char expected[1 << 14];
	static const struct run one = {
		.row = "P-11, C-40 to C-44", .program = "judge", .script = "mixed",
		.ways = RUNTIME_WAYS, .policies = { "debug=1" }, .events = { expected }, .out = "",
		.environment = { "CUWEIR_REPORT=1" },
		.err = { "36 allocations, 36 frees", "0 frees of unknown addresses" },
	};
	size_t length = 0;

	(void)state;
	for (int from = 0; from < 6; from++) {
		for (int to = 0; to < 6; to++) {
			int size = 1000 * from + to + 1;

			length += (size_t)snprintf(expected + length, sizeof(expected) - length,
						   "allocated size=%d before=0 after=%d\n"
						   "deallocated size=%d before=%d after=0\n",
						   size, size, size, size);
		}
	}
	run(&one);
}

static void runtimes(void **state)
{
	static char second[600];
	static const struct run one = {
		.row = "P-44, C-32: two runtimes in one process", .program = "judge",
		.script = "two", .ways = RUNTIME_WAYS, .policies = { "debug=1" },
		.environment = { second },
		.events = { "allocated size=1000\nallocated size=2000\ndeallocated size=1000\n"
			    "deallocated size=2000\nalloc_failure size=1152921504606846976\n"
			    "alloc_failure size=1152921504606846976\n" },
		.out = "errors 0 2\nerrors 2 0\n",
	};

	(void)state;
	snprintf(second, sizeof(second), "CUWEIR_TEST_SECOND=%s",
		 built("tests/apps/libjudge_second.so"));
	run(&one);
}

#define WANTED "which is no allocation, failed for want of memory "

static void moments(void **state)
{
	static const struct run runs[] = {
		{ .row = "P-62: look-ups alone, then a child that uses CUDA", .program = "judge",
		  .script = "fork", .ways = RUNTIME_WAYS, .policies = { "debug=1" },
		  .events = { "allocated size=5000\ndeallocated size=5000\nallocated size=6000\n"
			      "deallocated size=6000\n" },
		  .out = "child 0\n", .unaudited = true },
		{ .row = "before our constructor, and after our destructor", .program = "early",
		  .ways = LINKED, .policies = { "debug=1" },
		  .events = { "allocated size=1000\nallocated size=2000\ndeallocated size=2000\n"
			      "allocated size=3000\ndeallocated size=3000\nallocated size=5000\n" },
		  .out = "truth 0 0 5000 1\n" },
		{ .row = "D-07: a destroyed context of the thread's is not that of the memory",
		  .ways = HEARD_WAYS, .policies = { "dealloc=8K,debug=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuMemFree:1=709", "CUWEIR_REPORT=1" },
		  .script = "alloc a 8K; expect 709 free a; free a; alloc b 8K; truth",
		  .events = { "allocated size=8192\n"
			      "dealloc_threshold total=0 before=8192 status=0\n"
			      "deallocated size=8192\nallocated size=8192\n" },
		  .out = "truth 0 0 8192 1\n", .err = { "1 allocations still live" } },
		{ .row = "P-30: double and foreign frees leave the figures as they are",
		  .ways = DRIVER_WAYS, .policies = { "" }, .shown = "",
		  .environment = { "CUWEIR_SIM_CAPACITY=1M", "CUWEIR_REPORT=1" },
		  .script = "info; alloc a 64K; free a; expect 1 free a; host h 4K; managed m 4K; "
			    "free m; expect 1 free m; free h; expect 1 free h; info",
		  .out = "info 1048576 1048576\ninfo 1048576 1048576\n",
		  .err = { "3 frees of unknown addresses", "device memory: 0 B (0 B) in use",
			   "0 allocations still live" } },
		{ .row = "D-23: what is no allocation is not retried, but named",
		  .program = "judge", .script = "wants", .ways = RUNTIME_WAYS,
		  .policies = { "retry=always" },
		  .environment = { "CUWEIR_SIM_FAIL=cuModuleLoadData:1-2=2,cuLaunchKernel:1-2=2,"
				   "cuCtxCreate:1-2=2,cuStreamCreate:2=2", "CUWEIR_REPORT=1" },
		  .shown = "alloc_failure alloc_failed admit", .events = { "" },
		  .out = "module 2\nlaunch 2\ncontext 2\nstream 0\nmodule 2\nlaunch 2\n"
			 "context 2\nstream 2\n",
		  .err = { "cuModuleLoadData, " WANTED "2 times",
			   "cuLaunchKernel, " WANTED "2 times",
			   "cuCtxCreate_v2, " WANTED "2 times",
			   "cuStreamCreate, " WANTED "1 times" } },
		{ .row = "D-18: a driver that is closed and opened again", .program = "reload",
		  .ways = DLSYM, .policies = { "debug=1" }, .unaudited = true,
		  .events = { "allocated size=1000\nallocated size=2000\ndeallocated size=1000\n"
			      "deallocated size=2000\n"
			      "allocated size=1000\nallocated size=2000\ndeallocated size=1000\n"
			      "deallocated size=2000\n"
			      "allocated size=1000\nallocated size=2000\ndeallocated size=1000\n"
			      "deallocated size=2000\n"
			      "allocated size=1000\nallocated size=2000\ndeallocated size=1000\n"
			      "deallocated size=2000\n" },
		  .out = "turn 0: 2000\nturn 1: 2000\nturn 2: 2000\nturn 3: 2000\n" },
	};

	(void)state;
	RUN_ALL(runs);
}

/* D-10, C-49, C-60: the books know which device it is of, whoever is current where. */
static void contexts(void **state)
{
	(void)state;
	for (int seed = 1; seed <= 8; seed++) {
		char row[64];
		char script[64];
		const struct run one = {
			.row = row, .program = "judge", .script = script, .ways = RUNTIME_WAYS,
			.policies = { "" }, .shown = "", .out = "",
			.environment = { "CUWEIR_SIM_DEVICES=3" },
		};

		snprintf(row, sizeof(row), "D-10, D-17: contexts, seed %d", seed);
		snprintf(script, sizeof(script), "contexts,%d", seed);
		run(&one);
	}
}

/* Everything that takes memory, vetoed and failing now and then: the books stay true. */
static void everything(void **state)
{
	(void)state;
	for (int seed = 1; seed <= 16; seed++) {
		char row[64];
		char script[64];
		char policy[128];
		const struct run one = {
			.row = row, .program = "judge", .script = script, .ways = SHARED,
			.plugin = "deciding", .shown = "", .out = "",
			.policies = { seed % 4 == 0 ? "up=0" : policy, policy },
			.environment = { "CUWEIR_SIM_DEVICES=2", seed % 2 == 0 ? "CUWEIR_REPORT=1" :
				"CUWEIR_SIM_FAIL=alloc:40=2,alloc:77-79=2,cuMemFree:9=400,"
				"cuMemFreeAsync:11=400,cuMemRelease:7=400,cuArrayDestroy:5=400,"
				"cuMemUnmap:4=400,cuMipmappedArrayDestroy:3=400,"
				"cuMemPoolDestroy:3=400" },
		};

		snprintf(row, sizeof(row), "D-06, D-07: everything, seed %d", seed);
		snprintf(script, sizeof(script), "fuzz,%d", seed);
		snprintf(policy, sizeof(policy),
			 "seed=%d,up=10000,down=1000,veto=%d,status=10,retry=40,admit=5,nest=10",
			 seed, seed % 3 * 10);
		run(&one);
	}
}

/* D-14: every crossing of every threshold is told, once, whatever eight threads do. */
static void crowd(void **state)
{
	(void)state;
	for (int seed = 1; seed <= 4; seed++) {
		char policy[64];
		char script[64];
		const struct run one = {
			.row = "D-14: the balance of many thresholds", .program = "judge",
			.script = script, .ways = RUNTIME_WAYS, .plugin = "balance",
			.policies = { policy }, .shown = "balance", .out = "",
			.events = { "balance wrong=0 events=many odd=0\n" },
			.environment = { "CUWEIR_SIM_DEVICES=2" },
		};

		snprintf(policy, sizeof(policy), "seed=%d,count=%d", seed, 1 << (2 * seed));
		snprintf(script, sizeof(script), "crowd,%d", seed);
		run(&one);
	}
}

/* P-26: no memory for a record: the program has its own all the same, and all is counted. */
static void starved(void **state)
{
	static struct result result;
	static const struct run one = {
		.row = "P-26: no memory for records", .program = "judge", .script = "starved",
		.ways = SHARED | STATIC, .policies = { "" }, .shown = "", .out = "all 200000\n",
		.preload = "tests/conformance/starving.so", .environment = { "CUWEIR_REPORT=1" },
		.err = { "4096 B (4.0 KiB) in use", "1 allocations still live" },
	};
	/* D-05: beside a limit the first one that has no record fails, and is given back. */
	static const struct run limited = {
		.row = "D-05: no memory for records, and a limit", .program = "judge",
		.script = "starved", .ways = SHARED | STATIC, .exit_status = 1, .unaudited = true,
		.preload = "tests/conformance/starving.so",
		.environment = { "CUWEIR_REPORT=1", "CUWEIR_POLICY=limit:1G" },
		.err = { "no memory for a record of 16 B by cuMemAlloc: the allocation "
			 "fails\n", "cuMemAlloc(&blocks[i], 16): 2",
			 ", 1 allocations without a record" },
	};
	unsigned long long frees = 0;
	unsigned long long unrecorded = 0;

	(void)state;
	run(&limited);
	run(&one);
	run_once(&one, SHARED, &result);
	assert_int_equal(sscanf(strstr(result.err, "retries\n") + strlen("retries\n"),
				"cuweir[%*d]: %llu frees of unknown addresses, %llu", &frees,
				&unrecorded), 2);
	assert_true(unrecorded > 0 && unrecorded < 200000);
	assert_int_equal(frees, unrecorded);
}

/* D-01: CUWEIR_MAX_RETRIES=N is at most N + 1 calls of the driver, counted by the driver. */
static void driver_calls(void **state)
{
	static struct result result;
	char path[] = "/tmp/cuweir-calls-XXXXXX";
	char trace[64];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	snprintf(trace, sizeof(trace), "CUWEIR_SIM_TRACE=%s", path);
	for (int retries = 0; retries <= 6; retries += 3) {
		char most[64];
		/* Each of the chain says yes for ever, and all together may not. */
		const struct run one = {
			.policies = { "retry=always", "retry=always", "retry=1" },
			.environment = { trace, most, "CUWEIR_SIM_CAPACITY=1M" },
			.script = "expect 2 alloc a 2M",
		};
		char line[512];
		int calls = 0;
		FILE *file;

		snprintf(most, sizeof(most), "CUWEIR_MAX_RETRIES=%d", retries);
		assert_int_equal(truncate(path, 0), 0);
		run_once(&one, LINKED, &result);
		assert_int_equal(result.exit_status, 0);
		file = fopen(path, "r");
		assert_non_null(file);
		while (fgets(line, sizeof(line), file) != NULL) {
			calls += strncmp(line, "cuMemAlloc_v2 ", 14) == 0;
		}
		fclose(file);
		assert_int_equal(calls, retries + 1);
	}
	unlink(path);
}

/* The same output with us as without, and nothing on stderr. */
static void same_as_without(const char *script)
{
	static struct result bare, hooked;

	for (int way = SHARED; way <= FOREIGN; way <<= 1) {
		struct run one = {
			.row = script, .program = "judge", .script = script, .ways = way,
			.policies = { "alloc=1,dealloc=1,debug=1,retry=1" }, .shown = "",
			.quiet = true,
		};

		one.bare = true;
		run_once(&one, way, &bare);
		assert_int_equal(bare.exit_status, 0);
		assert_true(strlen(bare.out) > 100);
		one.bare = false;
		run_once(&one, way, &hooked);
		if (strcmp(bare.out, hooked.out) != 0) {
			fail_msg("%s (way %d): with us\n%s%swithout\n%s", script, way, hooked.out,
				 hooked.err, bare.out);
		}
		run(&one);
	}
}

static void odd(void **state)
{
	static const struct run one = {
		.row = "D-04, R-15, C-08, C-13 to C-16: no events but of what was there",
		.program = "judge", .script = "odd", .ways = RUNTIME_WAYS,
		.policies = { "debug=1,retry=always" },
		.shown = "allocated deallocated alloc_failure",
		.events = { "allocated size=4096 kind=1\ndeallocated size=4096 kind=1\n"
			    "allocated size=4096 kind=3\ndeallocated size=4096 kind=3\n"
			    "allocated size=4096 device=0\nallocated size=3000 device=0\n"
			    "deallocated size=3000\ndeallocated size=4096\n" },
	};

	(void)state;
	run(&one);
	same_as_without("odd");
	same_as_without("captures");
}

static void matrix(void **state)
{
	static const struct run runs[] = {
		{ .row = "P-22: every free of every allocation", .program = "judge",
		  .script = "matrix", .ways = RUNTIME_WAYS, .policies = { "debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .events = { "allocated size=100\ndeallocated size=100\nallocated size=100\n"
			      "deallocated size=100\nallocated size=200\ndeallocated size=200\n"
			      "allocated size=200\ndeallocated size=200\nallocated size=300\n"
			      "deallocated size=300\nallocated size=300\ndeallocated size=300\n"
			      "allocated size=400\ndeallocated size=400\n"
			      "allocated size=500\ndeallocated size=500\nallocated size=500\n"
			      "deallocated size=500\nallocated size=512\ndeallocated size=512\n"
			      "allocated size=512\ndeallocated size=512\n" },
		  .err = { "2 frees of unknown addresses", "0 allocations still live" } },
	};

	(void)state;
	RUN_ALL(runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies), cmocka_unit_test(mixed),    cmocka_unit_test(runtimes),
		cmocka_unit_test(moments),  cmocka_unit_test(contexts), cmocka_unit_test(crowd),
		cmocka_unit_test(odd),	    cmocka_unit_test(matrix),
		cmocka_unit_test(starved),  cmocka_unit_test(driver_calls),
		cmocka_unit_test(everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
