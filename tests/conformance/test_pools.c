/* SPDX-License-Identifier: Apache-2.0 */
/* Rows D-06, D-10, D-17; C-45, C-60, C-61, C-68, C-69, C-71: pools; green contexts. */
#include "harness.h"

static const char nothing_left[] = "0 frees of unknown addresses";
static const char none_live[] = "0 allocations still live";

static void what_a_pool_gives(void **state)
{
	static const struct run runs[] = {
		{ .row = "C-60: from a pool of the device, by every way",
		  .ways = HEARD_WAYS, .program = "virtual",
		  .policies = { "alloc=8K,dealloc=8K,debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "pool p pinned device 0; frompool a 8K p; frompool b 4K p; freeasync a; "
			    "free b; sync; poolfree p; truth",
		  .events = { "alloc_threshold total=8192 kind=1 device=0 requested=8192\n"
			      "allocated size=8192\nallocated size=4096\n"
			      "dealloc_threshold total=4096\ndeallocated size=8192\n"
			      "deallocated size=4096\n" },
		  .out = "", .err = { nothing_left, none_live } },
		{ .row = "R-46: the call shows as the program made it",
		  .ways = SHARED, .program = "virtual", .policies = { "debug=1" },
		  .script = "pool p pinned device 0; frompool a 8K p; freeasync a; sync",
		  .events = { "allocated size=8192 call=cudaMallocFromPoolAsync\n"
			      "deallocated size=8192 call=cudaFreeAsync\n" },
		  .out = "" },
		{ .row = "C-61: the memory is the pool's device's, not the stream's",
		  .ways = HEARD_WAYS, .program = "virtual",
		  .policies = { "alloc=8K,dealloc=8K" },
		  .environment = { "CUWEIR_SIM_DEVICES=2" },
		  .script = "pool p pinned device 1; frompool a 8K p; truth; freeasync a; sync; "
			    "device 0; truth",
		  .events = { "alloc_threshold total=8192 device=1\n"
			      "dealloc_threshold total=0 device=1\n" },
		  .out = "truth 1 0 8192 1\ntruth 1 5 8192 0\n" },
		{ .row = "C-69: pools of the host and of managed memory",
		  .ways = HEARD_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_SIM_DEVICES=2" },
		  .script = "pool h pinned host 0; pool m managed device 1; frompool a 8K h; "
			    "frompool b 4K m; freeasync a; freeasync b; sync; poolfree h; poolfree m",
		  .events = { "allocated size=8192 kind=3 device=-1\n"
			      "allocated size=4096 kind=2 device=1\n"
			      "deallocated size=8192 kind=3 device=-1\n"
			      "deallocated size=4096 kind=2 device=1\n" },
		  .out = "" },
		{ .row = "C-69: pools that were there: of a device, of the host's node, managed",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_SIM_DEVICES=2" },
		  .script = "pooldefault p 1; pooldefault13 h pinned numa 0; "
			    "pooldefault13 m managed none 0; frompoolpt a 8K p; frompool b 4K h; "
			    "frompool c 2K m; freeasync a; freeasync b; freeasync c; sync",
		  .events = { "allocated size=8192 kind=1 device=1\n"
			      "allocated size=4096 kind=3 device=-1\n"
			      "allocated size=2048 kind=2 device=-1\n"
			      "deallocated size=8192 kind=1 device=1\n"
			      "deallocated size=4096 kind=3 device=-1\n"
			      "deallocated size=2048 kind=2 device=-1\n" },
		  .out = "" },
		{ .row = "C-60, C-68: the current pool of a device, set, destroyed and default again",
		  .ways = HEARD_WAYS, .program = "virtual",
		  .policies = { "debug=1" }, .environment = { "CUWEIR_REPORT=1" },
		  .script = "pool p pinned device 0; setpool p 0; async a 8K; poolfree p; async b 4K; "
			    "freeasync a; freeasync b; sync; truth",
		  .events = { "allocated size=8192 kind=1 device=0\n"
			      "allocated size=4096 kind=1 device=0\n"
			      "deallocated size=8192\ndeallocated size=4096\n" },
		  .out = "", .err = { nothing_left, none_live } },
		{ .row = "cuMemSetMemPool: other kinds have current pools of their own",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .script = "pool h pinned host 0; pool m managed device 0; "
			    "setpool13 h pinned host 0; setpool13 m managed device 0; async a 8K; "
			    "truth; freeasync a; sync; pool p pinned device 0; "
			    "setpool13 p pinned device 0; async a 8K; freeasync a; sync",
		  .events = { "allocated size=8192 kind=1 device=0\ndeallocated size=8192\n"
			      "allocated size=8192 kind=1 device=0\ndeallocated size=8192\n" },
		  .out = "truth 0 0 8192 1\ntruth 0 5 8192 0\n" },
		{ .row = "D-17, C-97: a context's end takes no memory of a pool",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .script = "pool p pinned device 0; ctx create; stream s; frompool a 8K p s; "
			    "ctx destroy; truth; free a; sync; truth",
		  .events = { "allocated size=8192\ndeallocated size=8192 call=cuMemFree\n" },
		  .out = "truth 0 0 8192 1\ntruth 0 5 8192 0\n" },
	};

	(void)state;
	RUN_ALL(runs);
}

static void refusals_and_failures(void **state)
{
	static const struct run runs[] = {
		{ .row = "D-06: a veto frees it on the same stream, in the same pool",
		  .ways = HEARD_WAYS, .program = "virtual",
		  .policies = { "alloc=8K,veto=2@1" },
		  .script = "pool p pinned device 0; expect 2 frompool a 8K p; sync; truth; "
			    "frompool a 8K p; freeasync a; sync",
		  .events = { "alloc_threshold total=8192\nalloc_threshold total=8192\n" },
		  .out = "" },
		{ .row = "D-02: out of memory is offered and mended",
		  .ways = HEARD_WAYS, .program = "virtual",
		  .policies = { "retry=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuMemAllocFromPoolAsync:1=2" },
		  .script = "pool p pinned device 0; frompool a 8K p; freeasync a; sync; truth",
		  .events = { "alloc_failure size=8192 count=0\n" }, .out = "" },
		{ .row = "a pool that is not destroyed stays what it is",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuMemPoolDestroy:1=1" },
		  .script = "pool h pinned host 0; expect 1 poolfree h; frompool a 8K h; free a; sync; "
			    "poolfree h; truth",
		  .events = { "allocated size=8192 kind=3\ndeallocated size=8192 kind=3\n" },
		  .out = "" },
		{ .row = "P-27: captured, it is a plan",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" }, .environment = { "CUWEIR_SIM_STRICT_CAPTURE=1" },
		  .script = "pool p pinned device 0; stream s; capture s; frompool a 8K p s; "
			    "endcapture s; truth",
		  .events = { "" }, .out = "" },
		{ .row = "C-71, C-45: an imported pool gives nothing, but what is imported from it",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1,kinds=imported,alloc=8K,dealloc=8K" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "pool p pinned device 0 fd; frompool a 8K p; poolexport p; poolimport q; "
			    "expect 1 frompool x 4K q; ptrexport a; ptrimport b q; truth; free b; "
			    "truth; ptrimport b q; freeasync b; freeasync a; sync; truth",
		  .events = { "allocated size=8192 kind=1\n"
			      "alloc_threshold total=8192 kind=5 device=0 "
			      "call=cuMemPoolImportPointer\n"
			      "allocated size=8192 kind=5\n"
			      "dealloc_threshold total=0 kind=5 call=cuMemFree\n"
			      "deallocated size=8192 kind=5\n"
			      "alloc_threshold total=8192\nallocated size=8192 kind=5\n"
			      "dealloc_threshold total=0 call=cuMemFreeAsync\n"
			      "deallocated size=8192 kind=5\ndeallocated size=8192 kind=1\n" },
		  .out = "truth 0 0 8192 1\ntruth 0 3 8192 1\ntruth 0 5 8192 0\n"
			 "truth 0 0 8192 1\ntruth 0 5 8192 0\n",
		  .err = { nothing_left, none_live } },
	};

	(void)state;
	RUN_ALL(runs);
}

static void green_contexts(void **state)
{
	static const struct run runs[] = {
		{ .row = "coverage 1g: memory under a green context is its device's",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_SIM_DEVICES=2", "CUWEIR_REPORT=1" },
		  .script = "green g 1; greencurrent g; alloc a 8K; async b 4K; device 0; free a; "
			    "freeasync b; sync; greenfree g; truth",
		  .events = { "allocated size=8192 device=1\nallocated size=4096 device=1\n"
			      "deallocated size=8192 device=1\ndeallocated size=4096 device=1\n" },
		  .out = "", .err = { nothing_left, none_live } },
		{ .row = "coverage 1g: a green context's stream is its device's",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" }, .environment = { "CUWEIR_SIM_DEVICES=2" },
		  .script = "green g 1; greenstream s g; async a 4K s; freeasync a s; streamfree s; "
			    "greenfree g; truth",
		  .events = { "allocated size=4096 device=1\ndeallocated size=4096 device=1\n" },
		  .out = "truth 1 5 4096 0\n" },
	};

	(void)state;
	RUN_ALL(runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_pool_gives),
		cmocka_unit_test(refusals_and_failures),
		cmocka_unit_test(green_contexts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
