/* SPDX-License-Identifier: Apache-2.0 */
/* retry, inject, act, spill and log in the shim: P-43, P-44, P-48, P-49. */
#include "policy_rows.h"

static void retry(void **state)
{
	static const struct policy_row rows[] = {
		{ { .row = "P-49: 17 driver calls, then 2",
		    .ways = DRIVER_WAYS | SHARED | STATIC,
		    .environment = { "CUWEIR_SIM_FAIL=alloc:1-16=2,alloc:18-=2" },
		    /* The 17th succeeds: one more would have been needed for a failure. */
		    .script = "alloc a 8K; free a; truth", .out = "", .quiet = true },
		  .chain = "retry:backoff=0..0" },
		{ { .row = "P-49: and not the 18th",
		    .ways = DRIVER_WAYS | SHARED | STATIC,
		    .environment = { "CUWEIR_SIM_FAIL=alloc:1-17=2" },
		    .script = "expect 2 alloc a 8K; alloc b 8K; free b; truth", .out = "",
		    .quiet = true },
		  .chain = "retry:backoff=0..0" },
		{ { .row = "P-44: mended below the runtime, which has no error left",
		    .ways = SHARED | STATIC,
		    .environment = { "CUWEIR_SIM_FAIL=alloc:1-3=2" },
		    .script = "alloc a 8K; lasterror; free a; truth", .out = "", .quiet = true },
		  .chain = "retry:max=3,backoff=0..0" },
		{ { .row = "P-48: nothing else is tried again",
		    .ways = DRIVER_WAYS,
		    .environment = { "CUWEIR_SIM_FAIL=alloc:1=999" },
		    .script = "expect 999 alloc a 8K; alloc b 8K; free b; truth", .out = "",
		    .quiet = true },
		  .chain = "retry" },
		{ { .row = "what a stream-ordered free keeps is waited for and trimmed",
		    .ways = HEARD_WAYS,
		    .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "async a 1M s; freeasync a s; alloc b 1M; free b; truth", .out = "",
		    .quiet = true },
		  .chain = "retry:max=1,backoff=0..0" },
		{ { .row = "a free by another thread is waited for",
		    .ways = DRIVER_WAYS,
		    .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "alloc a 1M; thread { sleep 100; free a }; alloc b 1M; join; free b; "
			      "truth",
		    .out = "", .quiet = true },
		  .chain = "retry:max=3,backoff=2s..2s" },
		{ { .row = "D-15: not during a capture",
		    .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "capture begin s; expect 2 async a 2M t; capture end s; truth",
		    .out = "", .quiet = true },
		  .chain = "retry" },
	};

	(void)state;
	RUN_POLICIES(rows);
}

static void inject(void **state)
{
	static const struct policy_row rows[] = {
		{ { .row = "P-43: the third alone",
		    .script = "alloc a 1K; alloc b 1K; expect 2 alloc c 1K; alloc d 1K; free a; "
			      "free b; free d; truth",
		    .out = "", .quiet = true },
		  .chain = "inject:nth=3" },
		{ { .row = "by size, and with another status",
		    .ways = DRIVER_WAYS,
		    .script = "alloc a 1M; expect 800 alloc b 1025K; free a; truth", .out = "",
		    .quiet = true },
		  .chain = "inject:above=1M,error=NOT_PERMITTED" },
		{ { .row = "by kind, whatever the call",
		    .script = "alloc a 1K; expect 2 host b 1K; expect 2 hostalloc c 1K; "
			      "managed d 1K; free a; free d; truth",
		    .out = "", .quiet = true },
		  .chain = "inject:kinds=host" },
		{ { .row = "by the name of the call",
		    .ways = HEARD_WAYS,
		    .script = "alloc a 1K; expect 2 async b 1K s; free a; truth", .out = "",
		    .quiet = true },
		  .chain = "inject:call=cu*Async" },
		{ { .row = "a retry policy before it mends what it breaks",
		    .script = "repeat 100 { alloc a 1K; free a }; truth", .out = "",
		    .quiet = true },
		  .chain = "retry:backoff=0..0;inject:p=0.3,seed=7" },
		{ { .row = "wrong arguments: told, and left out",
		    .script = "alloc a 1K; free a",
		    .err = { "inject.so:nth=x\": argument 1, \"nth=x\": want one of nth=N, every=N "
			     "(from 1) and p=CHANCE; the policy is left out" } },
		  .chain = "inject:nth=x" },
	};

	(void)state;
	RUN_POLICIES(rows);
}

static void act(void **state)
{
	static const struct policy_row rows[] = {
		{ { .row = "a total over its mark: a line",
		    .script = "alloc a 60K; alloc b 40K; free a; free b; truth", .out = "",
		    .quiet = true },
		  .chain = "act:total=100K,file=FILE",
		  .file = " what=over " },
		{ { .row = "and one when it is under again",
		    .ways = LINKED,
		    .script = "alloc a 100K; free a", .quiet = true },
		  .chain = "act:total=100K,file=FILE",
		  .file = " what=under " },
		{ { .row = "a percentage of the device",
		    .environment = { "CUWEIR_SIM_CAPACITY=10M" },
		    .script = "alloc a 4M; alloc b 1M; free a; free b; truth", .out = "",
		    .quiet = true },
		  .chain = "act:total=50%,file=FILE",
		  .file = " mark=5242880 value=5242880 " },
		{ { .row = "free memory below a mark, as the driver sees it",
		    .environment = { "CUWEIR_SIM_CAPACITY=10M" },
		    .script = "alloc a 8M; sleep 10; alloc b 1025K; free a; free b; truth",
		    .out = "", .quiet = true },
		  .chain = "act:free=1M,period=1ms,file=FILE",
		  .file = " what=low " },
		{ { .row = "out of memory in the end",
		    .script = "expect 2 alloc a 100G; truth", .out = "", .quiet = true },
		  .chain = "act:oom=1,file=FILE",
		  .file = " what=oom " },
#ifndef __SANITIZE_THREAD__ /* which no shell starts with in its LD_PRELOAD */
		{ { .row = "the command has the facts and no preload of ours",
		    .ways = LINKED | SHARED,
		    .script = "alloc a 1M; sleep 1000; free a; truth", .out = "", .quiet = true },
		  .chain = "act:total=1M,run=echo \"$ACT_WHAT $ACT_VALUE $(echo $LD_PRELOAD | grep -c cuweir)\" >FILE",
		  .file = "over 1048576 0\n" },
#endif
	};

	(void)state;
	RUN_POLICIES(rows);
}

static void spill(void **state)
{
	static const struct policy_row rows[] = {
		{ { .row = "device memory first, then managed; each freed where it came from",
		    .ways = HEARD_WAYS,
		    .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "alloc a 512K; alloc b 1M; async c 2M s; truth; free b; "
			      "freeasync c s; free a; sync; truth",
		    .out = "truth 0 0 524288 1\ntruth 0 1 3145728 2\n",
		    .err = { "spill: device memory ran out; 1048576 bytes of cu" } },
		  .chain = "spill" },
		{ { .row = "behind a limit: what is above it spills",
		    .ways = HEARD_WAYS,
		    .script = "alloc a 1M; alloc b 1K; truth; free b; free a; truth",
		    .out = "truth 0 0 1048576 1\ntruth 0 1 1024 1\n", .quiet = true },
		  .chain = "spill:tell=0;limit:1M" },
		{ { .row = "P-48: other failures do not spill",
		    .ways = DRIVER_WAYS,
		    .environment = { "CUWEIR_SIM_FAIL=alloc:1=999" },
		    .script = "expect 999 alloc a 8K; truth", .out = "", .quiet = true },
		  .chain = "spill" },
		{ { .row = "by a synchronous free in place of a stream's, and the reverse",
		    .ways = HEARD_WAYS,
		    .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "alloc a 2M; async b 2M s; sync; freeasync a s; free b; sync; truth",
		    .out = "", .quiet = true },
		  .chain = "spill:tell=0" },
		{ { .row = "freed while a capture is open: later",
		    .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "async a 2M t; sync; capture begin s; freeasync a t; truth; "
			      "capture end s; alloc b 1K; truth; free b; truth",
		    .out = "truth 0 1 2097152 1\ntruth 0 0 1024 1\n", .quiet = true },
		  .chain = "spill:tell=0" },
		{ { .row = "with its context",
		    .ways = DRIVER_WAYS,
		    .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "ctx create; alloc a 2M; truth; ctx destroy; truth",
		    .out = "truth 0 1 2097152 1\n", .quiet = true },
		  .chain = "spill:tell=0" },
		{ { .row = "at most so much",
		    .ways = HEARD_WAYS,
		    .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "alloc a 2M; expect 2 alloc b 2M; free a; alloc c 2M; free c; truth",
		    .out = "", .quiet = true },
		  .chain = "spill:tell=0,max=3M" },
	};

	(void)state;
	RUN_POLICIES(rows);
}

static void pool(void **state)
{
	static const struct policy_row rows[] = {
		{ { .row = "D-20: a capture's allocations are its graph's, whoever hears the runtime",
		    .script = "async z 4K s; capture begin s; async a 4K s; freeasync a s; "
			      "capture end s; freeasync z s; sync; truth",
		    .out = "truth 0 0 4096 1\n", .quiet = true },
		  .chain = "pool", .unbalanced = true },
		{ { .row = "of a stream that is destroyed the capture is over",
		    .ways = RUNTIME_WAYS,
		    .script = "capture begin s; async a 4K s; stream destroy s; "
			      "async b 4K t; freeasync b t; sync; truth",
		    .out = "truth 0 0 4096 1\n", .quiet = true },
		  .chain = "pool", .unbalanced = true },
	};

	(void)state;
	RUN_POLICIES(rows);
}

static void log_rows(void **state)
{
	static const struct policy_row rows[] = {
		{ { .row = "R-84 to R-91: a file of rows",
		    .script = "alloc a 100; free a; expect 2 alloc b 100G; truth", .out = "",
		    .quiet = true },
		  .chain = "log:format=csv,file=FILE",
		  .file = ",allocate failure,(nil),107374182400,0\n" },
		{ { .row = "the same, buffered, complete at exit",
		    .script = "repeat 1000 { alloc a 100; free a }; expect 2 alloc b 100G; truth",
		    .out = "", .quiet = true },
		  .chain = "log:format=csv,flush=block,file=FILE",
		  .file = "Thread,Time,Action,Pointer,Size,Stream\n" },
		{ { .row = "an object a line",
		    .script = "alloc a 100; free a; truth", .out = "", .quiet = true },
		  .chain = "log:format=json,file=FILE",
		  .file = "\"kind\":\"device\",\"device\":0,\"pointer\":\"0x" },
		{ { .row = "for a person",
		    .script = "alloc a 1073741823; free a; truth", .out = "",
		    .err = { ": + 1023.9 MiB (1073741823)  cu",
			     "  total 1023.9 MiB (1073741823)" } },
		  .chain = "log" },
	};

	(void)state;
	RUN_POLICIES(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retry), cmocka_unit_test(inject), cmocka_unit_test(act),
		cmocka_unit_test(spill), cmocka_unit_test(pool), cmocka_unit_test(log_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
