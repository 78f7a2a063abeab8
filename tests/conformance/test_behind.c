/* SPDX-License-Identifier: Apache-2.0 */
/* Rows D-07, D-11, P-30; C-13: what stands behind a policy that serves, and frees that go there. */
#include "lines.h"

#include <stdio.h>
#include <stdlib.h>

#define SERVED "CUWEIR_POLICY=BUILD/tests/plugins/through.so:serve"
#define POOLED .environment = { "CUWEIR_POLICY=pool;BUILD/tests/plugins/through.so:see" }
#define SEEN SERVED ";BUILD/tests/plugins/through.so:see"

/* The facts are those of the program's operation, with CUWEIR_EVENT_HELD (64), and 4 for a stream's. */
static void facts(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "a policy behind hears of the program's call, context and stream",
		    .environment = { SEEN },
		    .script = "alloc a 1000; free a; async b 500; freeasync b; host c 300; "
			      "free c" },
		  .err = "allocated 1000 kind 1 by cuMemAlloc, flags 64, a context, status 0\n"
			 "before free 1000 kind 1 by cuMemFree, flags 64, a context, status 0\n"
			 "deallocated 1000 kind 1 by cuMemFree, flags 64, a context, status 0\n"
			 "allocated 500 kind 1 by cuMemAllocAsync, flags 68, no context, status 0\n"
			 "before free 500 kind 1 by cuMemFreeAsync, flags 68, no context, status "
			 "0\n"
			 "deallocated 500 kind 1 by cuMemFreeAsync, flags 68, no context, status "
			 "0\n"
			 "allocated 300 kind 3 by cuMemAllocHost, flags 64, a context, status 0\n"
			 "before free 300 kind 3 by cuMemFreeHost, flags 64, a context, status "
			 "0\n"
			 "deallocated 300 kind 3 by cuMemFreeHost, flags 64, a context, status "
			 "0\n" },
		{ { .row = "D-17: blocks that go with their context are told of, one by one",
		    .ways = LINKED, POOLED,
		    .script = "ctx create; alloc a 4K; free a; ctx destroy" },
		  .err = "allocated 4096 kind 1 by cuMemAlloc, flags 64, a context, status 0\n"
			 "before free 4096 kind 1 by cuCtxDestroy, flags 96, a context, status 0\n"
			 "deallocated 4096 kind 1 by cuCtxDestroy, flags 96, a context, status 0\n" },
	};

	(void)state;
	RUN_LINES(rows);
}

/* D-07 holds there, too: what the driver says of a free is what the program's free returns. */
static void failed_frees(void **state)
{
	char served[1024];
	const struct run runs[] = {
		{ .row = "the driver's error, and the memory as it was", .ways = DRIVER_WAYS,
		  .unaudited = true,
		  .environment = { served, "CUWEIR_SIM_FAIL=cuMemFree:1=709", "CUWEIR_REPORT=1" },
		  .script = "alloc a 8K; expect 709 free a; truth; free a; truth",
		  .out = "truth 0 0 8192 1\n", .err = { "0 allocations still live" } },
		{ .row = "out of memory is an error of a free, too", .ways = DRIVER_WAYS,
		  .unaudited = true,
		  .environment = { served, "CUWEIR_SIM_FAIL=cuMemFree:1=2", "CUWEIR_REPORT=1" },
		  .script = "alloc a 8K; expect 2 free a; free a",
		  .out = "", .err = { "0 allocations still live" } },
		{ .row = "an error that ends the context: the memory counts as gone",
		  .ways = DRIVER_WAYS,
		  .unaudited = true,
		  .environment = { served, "CUWEIR_SIM_FAIL=cuMemFree:1=700", "CUWEIR_REPORT=1" },
		  .script = "alloc a 8K; expect 700 free a",
		  .err = { "device memory: 0 B (0 B) in use", "context lost" } },
		{ .row = "after the driver's end", .ways = DRIVER_WAYS,
		  .unaudited = true,
		  .environment = { served, "CUWEIR_SIM_FAIL=cuMemFree:1=4", "CUWEIR_REPORT=1" },
		  .script = "alloc a 8K; expect 4 free a",
		  .err = { "device memory: 0 B (0 B) in use" } },
		{ .row = "an error that ends the context behind the pool, which would keep the block",
		  .ways = DRIVER_WAYS, .unaudited = true,
		  .environment = { "CUWEIR_POLICY=pool:max=1K", "CUWEIR_SIM_FAIL=cuMemFree:1=700",
				   "CUWEIR_REPORT=1" },
		  .script = "alloc a 8K; expect 700 free a",
		  .err = { "device memory: 0 B (0 B) in use", "context lost" } },
	};

	(void)state;
	snprintf(served, sizeof(served), "%s", SERVED);
	replace(served, sizeof(served), "BUILD", getenv("CUWEIR_TEST_BUILD"));
	RUN_ALL(runs);
}

/* C-13, P-30: the driver would take the policy's block, which is handed out again. */
static void double_frees(void **state)
{
	static const struct run runs[] = {
		{ .row = "P-30: freed twice, synchronously",
		  .environment = { "CUWEIR_POLICY=pool", "CUWEIR_REPORT=1" }, .unaudited = true,
		  .script = "alloc a 4K; free a; expect 1 free a; truth; alloc b 4K; alloc c 4K; "
			    "free c; free b; expect 1 free b; truth",
		  .out = "truth 0 0 4096 1\ntruth 0 0 8192 2\n",
		  .err = { "2 frees of unknown addresses" } },
		{ .row = "P-30: freed twice, in a stream, in a captured one at last",
		  .environment = { "CUWEIR_POLICY=pool", "CUWEIR_REPORT=1" }, .unaudited = true,
		  .script = "async a 4K s; freeasync a s; expect 1 freeasync a s; sync; truth; "
			    "capture begin s; expect 1 freeasync a s; capture end s; truth",
		  .out = "truth 0 0 4096 1\ntruth 0 0 4096 1\n",
		  .err = { "2 frees of unknown addresses" } },
	};

	(void)state;
	RUN_ALL(runs);
}

#define OF_POOL(verb, call) verb " 4096 kind 1 by " call ", flags 4, no context, status 0\n"
#define HELD "allocated 4096 kind 1 by cuMemAllocAsync, flags 64, a context, status 0\n"

/* What the program's own pool gives is that pool's: its limits, its sharing. */
static void explicit_pools(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "a current pool that the program has made is not served",
		    .ways = LINKED, .program = "virtual", POOLED,
		    .script = "device 0; pool own pinned device 0 fd; setpool own 0; async a 4K; "
			      "ptrexport a; freeasync a; sync" },
		  .err = OF_POOL("allocated", "cuMemAllocAsync")
			 OF_POOL("before free", "cuMemFreeAsync")
			 OF_POOL("deallocated", "cuMemFreeAsync") },
		{ { .row = "the device's own is, again once it is current again",
		    .ways = LINKED, .program = "virtual", POOLED,
		    .script = "device 0; pooldefault d 0; pool own pinned device 0; setpool own 0; "
			      "setpool d 0; async a 4K; freeasync a; sync" },
		  .err = HELD },
		{ { .row = "and when the one that was current is destroyed",
		    .ways = LINKED, .program = "virtual", POOLED,
		    .script = "device 0; pool own pinned device 0; setpool own 0; poolfree own; "
			      "async a 4K; freeasync a; sync" },
		  .err = HELD },
	};

	(void)state;
	RUN_LINES(rows);
}

/* The plain way beside a budget: what is claimed is had, or given back, at each of its ends. */
static void claims(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "D-05, D-06: a veto gives the claim back",
		    .ways = LINKED | DLSYM | SHARED,
		    .environment = { "CUWEIR_POLICY=limit:64K;BUILD/tests/plugins/recorder_minimal.so:"
				     "file=/dev/null,alloc=1,veto=46@1" },
		    .script = "expect 46 alloc a 64K; alloc b 64K; expect 2 alloc c 1; free b; "
			      "alloc c 64K; free c; truth", .out = "" },
		  .err = "" },
		{ { .row = "D-05: so does a failure of the driver, and of its free",
		    .ways = LINKED | DLSYM,
		    .environment = { "CUWEIR_POLICY=limit:64K",
				     "CUWEIR_SIM_FAIL=cuMemAlloc:1=2,cuMemAlloc:2=999,cuMemFree:1=709" },
		    .script = "expect 2 alloc a 64K; expect 999 alloc a 64K; alloc a 64K; "
			      "expect 709 free a; expect 2 alloc b 1; free a; alloc b 64K; free b; "
			      "truth", .out = "" },
		  .err = "" },
		{ { .row = "a free by another thread is waited for",
		    .ways = LINKED | DLSYM | SHARED,
		    .environment = { "CUWEIR_POLICY=retry:max=3,backoff=2s..2s;limit:1M",
				     "CUWEIR_VERBOSE=0" },
		    .script = "alloc a 1M; thread { sleep 100; free a }; alloc b 1M; join; free b; "
			      "truth", .out = "" },
		  .err = "" },
		{ { .row = "a percentage, which is known at the first allocation",
		    .ways = LINKED,
		    .environment = { "CUWEIR_POLICY=limit:50%", "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "alloc a 300K; expect 2 alloc b 300K; free a; alloc b 512K; free b; "
			      "truth", .out = "" },
		  .err = "" },
	};

	(void)state;
	RUN_LINES(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts),
		cmocka_unit_test(failed_frees),
		cmocka_unit_test(double_frees),
		cmocka_unit_test(explicit_pools),
		cmocka_unit_test(claims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
