/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows D-02 to D-07, D-17, D-19; C-09, C-30, C-33, C-97, C-103, C-111; P-11: arrays and
 * registered host memory.
 */
#include "harness.h"

static void sizes(void **state)
{
	static const struct run runs[] = {
		{ .row = "D-03: 100 x 50 of four floats, and back to nothing",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "alloc=80000,dealloc=80000,debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "array a 2d 100 50 0 float 4 0; truth; free a; truth",
		  .events = { "alloc_threshold total=80000 kind=1 device=0 requested=80000 "
			      "charged=80000 call=cuArrayCreate\nallocated size=80000\n"
			      "dealloc_threshold total=0 charged=80000 call=cuArrayDestroy\n"
			      "deallocated size=80000\n" },
		  .out = "truth 0 0 80000 1\n",
		  .err = { "0 frees of unknown addresses", "0 allocations still live" } },
		{ .row = "D-03: all four functions, first versions included",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "debug=1" },
		  .script = "array a 2d 100 50 0 float 4 0; array b 2d1 100 50 0 float 4 0; "
			    "array c 3d 16 8 4 half 4 0; array d 3d1 16 8 4 half 4 0; truth; "
			    "free d; free c; free b; free a; truth",
		  .shown = "allocated deallocated",
		  .events = { "allocated size=80000 call=cuArrayCreate\n"
			      "allocated size=80000 call=cuArrayCreate\n"
			      "allocated size=4096 call=cuArray3DCreate\n"
			      "allocated size=4096 call=cuArray3DCreate\n"
			      "deallocated size=4096\ndeallocated size=4096\n"
			      "deallocated size=80000\ndeallocated size=80000\n" },
		  .out = "truth 0 0 168192 4\n" },
		{ .row = "D-03: layers, faces, blocks, planes",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "debug=1" },
		  .script = "array a 3d 100 50 7 u16 2 1; array b 3d 32 32 6 u8 4 4; "
			    "array c 3d 32 32 12 u8 4 5; array d 3d 100 0 7 u8 1 1; "
			    "array e 2d 20 12 0 bc1 4 0; array f 2d 20 12 0 bc7 4 0; "
			    "array g 2d 20 12 0 nv12 3 0; truth",
		  .shown = "allocated",
		  .events = { "allocated size=140000\nallocated size=24576\n"
			      "allocated size=49152\nallocated size=700\nallocated size=120\n"
			      "allocated size=240\nallocated size=360\n" },
		  .out = "truth 0 0 215148 7\n" },
		{ .row = "D-03: 64 x 64 RGBA8 with 7 levels, and more than fit",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "alloc=21844,dealloc=21844" },
		  .script = "mipmap a 64 64 0 u8 4 0 7; truth; free a; mipmap b 64 64 0 u8 4 0 99; "
			    "truth; free b; truth",
		  .events = { "alloc_threshold total=21844 call=cuMipmappedArrayCreate\n"
			      "dealloc_threshold total=0 call=cuMipmappedArrayDestroy\n"
			      "alloc_threshold total=21844\ndealloc_threshold total=0\n" },
		  .out = "truth 0 0 21844 1\ntruth 0 0 21844 1\n" },
	};

	(void)state;
	RUN_ALL(runs);
}

/* Handles that are no memory of their own. */
static void aliases(void **state)
{
	static const struct run runs[] = {
		{ .row = "coverage 1d: a level and a plane are neither counted nor leaked",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "mipmap m 64 64 0 u8 4 0 7; level l m 0; level k m 3; "
			    "array p 2d 20 12 0 nv12 3 0; plane q p 1; truth; free p; "
			    "free m; truth",
		  .shown = "allocated deallocated",
		  .events = { "allocated size=21844\nallocated size=360\ndeallocated size=360\n"
			      "deallocated size=21844\n" },
		  .out = "truth 0 0 22204 2\n",
		  .err = { "0 frees of unknown addresses", "0 allocations still live" } },
		{ .row = "coverage 1d: the end of a level is the driver's error, no more",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "mipmap m 64 64 0 u8 4 0 7; level l m 0; expect 400 free l; free m",
		  .shown = "allocated deallocated",
		  .events = { "allocated size=21844\ndeallocated size=21844\n" },
		  .err = { "1 frees of unknown addresses", "0 allocations still live" } },
		{ .row = "C-111: sparse and deferred arrays own nothing, and their end is known",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "alloc=1,debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "array a 3d 4096 4096 0 u8 4 64; array b 3d 4096 4096 0 u8 4 128; "
			    "mipmap c 4096 4096 0 u8 4 64 3; truth; free a; free b; free c; truth",
		  .events = { "" }, .out = "",
		  .err = { "0 frees of unknown addresses, 0 allocations without a record",
			   "0 allocations still live" } },
	};

	(void)state;
	RUN_ALL(runs);
}

static void failures(void **state)
{
	static const struct run runs[] = {
		{ .row = "D-06: a veto undoes by the same family",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "alloc=80000,veto=2@1" },
		  .script = "expect 2 array a 2d 100 50 0 float 4 0; truth; "
			    "array b 3d 100 50 0 float 4 0; free b; truth",
		  .events = { "alloc_threshold total=80000\nalloc_threshold total=80000\n" },
		  .out = "" },
		{ .row = "D-06: of a mipmapped array too",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "alloc=20000,veto=46" },
		  .script = "expect 46 mipmap a 64 64 0 u8 4 0 7; truth",
		  .events = { "alloc_threshold total=21844\n" }, .out = "" },
		{ .row = "D-02: out of memory is offered, and mended",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "retry=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuArray3DCreate:1=2" },
		  .script = "array a 3d 100 50 0 float 4 0; truth; free a; truth",
		  .events = { "alloc_failure size=80000 count=0 call=cuArray3DCreate\n" },
		  .out = "truth 0 0 80000 1\n" },
		{ .row = "C-09, D-02: another error is not, and nothing is written",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "retry=always,debug=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuArrayCreate:1=1,cuMipmappedArrayCreate:1=801",
				   "CUWEIR_SIM_SCRIBBLE_ON_FAIL=1" },
		  .script = "expect 1 array a 2d 100 50 0 float 4 0; "
			    "expect 801 mipmap b 64 64 0 u8 4 0 7; same a b; truth",
		  .events = { "" }, .out = "" },
		{ .row = "D-07: an end that fails puts the record back",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuArrayDestroy:1=46" },
		  .script = "array a 2d 100 50 0 float 4 0; expect 46 free a; truth; free a; truth",
		  .shown = "allocated deallocated",
		  .events = { "allocated size=80000\ndeallocated size=80000\n" },
		  .out = "truth 0 0 80000 1\n" },
		{ .row = "D-04: without a width, without levels: the error of the driver",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "alloc=1,debug=1" },
		  .script = "expect 1 array a 2d 0 50 0 float 4 0; "
			    "expect 1 mipmap b 64 64 0 u8 4 0 0; truth",
		  .events = { "" }, .out = "" },
		{ .row = "D-17, C-97: arrays go with their context",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "dealloc=1,debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "ctx create; array a 2d 100 50 0 float 4 0; "
			    "mipmap b 64 64 0 u8 4 0 7; alloc c 4096; ctx destroy; truth",
		  .shown = "dealloc_threshold deallocated context_ended",
		  .events = { "dealloc_threshold total=0 before=105940\n"
			      "deallocated\ndeallocated\ndeallocated\ncontext_ended device=0\n" },
		  .out = "", .err = { "0 allocations still live" } },
	};

	(void)state;
	RUN_ALL(runs);
}

static void registered(void **state)
{
	static const struct run runs[] = {
		{ .row = "coverage 1a: registered memory has a kind to itself, and no total of D",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "alloc=4K,dealloc=4K,kinds=device+host+registered,debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "register a 8192 2; devptr a; truth; register b 100 1; free b; free a; "
			    "truth",
		  .events = { "alloc_threshold total=8192 kind=4 requested=8192 "
			      "call=cuMemHostRegister\nallocated size=8192\n"
			      "allocated size=100 kind=4\n"
			      "deallocated size=100\n"
			      "dealloc_threshold total=0 call=cuMemHostUnregister\n"
			      "deallocated size=8192\n" },
		  .out = "truth 0 6 8192 1\n",
		  .err = { "0 frees of unknown addresses", "0 allocations still live" } },
		{ .row = "C-103: twice is an error, and not a second count",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuMemHostRegister:2=712" },
		  .script = "register a 8192 2; expect 712 register b 8192 2; free a; "
			    "expect 713 free a; truth",
		  .events = { "allocated size=8192\ndeallocated size=8192\n" }, .out = "" },
		{ .row = "D-06: a veto unregisters",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "alloc=4K,veto=2,kinds=registered" },
		  .script = "expect 2 register a 8192 2; expect 713 free a; truth",
		  .events = { "alloc_threshold total=8192 kind=4\n" }, .out = "" },
		{ .row = "D-17: a registration goes with its context",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "dealloc=1,kinds=registered" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "ctx create; register a 8192 2; ctx destroy; truth",
		  .shown = "dealloc_threshold context_ended",
		  .events = { "dealloc_threshold total=0 before=8192 kind=4\n"
			      "context_ended device=0\n" },
		  .out = "", .err = { "0 allocations still live" } },
		{ .row = "D-04: no memory",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "debug=1,alloc=1" },
		  .script = "expect 1 register a 0 2; truth",
		  .events = { "" }, .out = "" },
	};

	(void)state;
	RUN_ALL(runs);
}

/* The foreign runtime's memory is counted at its own door. */
static void by_the_runtime(void **state)
{
	static const struct run runs[] = {
		{ .row = "P-11, D-19: cudaMallocArray counts once",
		  .ways = RUNTIME_WAYS, .program = "handles",
		  .policies = { "alloc=80000,dealloc=80000,debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "array a 2d 100 50 0 float 4 0; truth; free a; truth",
		  .events = { "alloc_threshold total=80000 kind=1 device=0 requested=80000 "
			      "charged=80000\nallocated size=80000\n"
			      "dealloc_threshold total=0 charged=80000\n"
			      "deallocated size=80000\n" },
		  .out = "truth 0 0 80000 1\n",
		  .err = { "device memory: 0 B (0 B) in use, peak 80000 B (78.1 KiB), "
			   "1 allocations, 1 frees", "0 frees of unknown addresses",
			   "0 allocations still live" } },
		{ .row = "D-03, D-19: layers, faces, depths, levels",
		  .ways = RUNTIME_WAYS, .program = "handles",
		  .policies = { "debug=1" },
		  .script = "array a 3d 100 50 7 u16 2 1; array b 3d 32 32 6 u8 4 4; "
			    "array c 3d 16 8 4 half 4 0; array d 2d 2048 0 0 s8 1 0; "
			    "mipmap m 64 64 0 u8 4 0 7; level l m 2; truth; free m; free d; "
			    "free c; free b; free a; truth",
		  .shown = "allocated deallocated",
		  .events = { "allocated size=140000\n"
			      "allocated size=24576\nallocated size=4096\nallocated size=2048\n"
			      "allocated size=21844\n"
			      "deallocated size=21844\n"
			      "deallocated size=2048\ndeallocated size=4096\n"
			      "deallocated size=24576\ndeallocated size=140000\n" },
		  .out = "truth 0 0 192564 5\n" },
		{ .row = "C-111, D-19: sparse and deferred arrays",
		  .ways = RUNTIME_WAYS, .program = "handles",
		  .policies = { "alloc=1,debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "array a 3d 4096 4096 0 u8 4 64; mipmap b 4096 4096 0 u8 4 128 3; "
			    "truth; free a; free b; truth",
		  .events = { "" }, .out = "",
		  .err = { "0 frees of unknown addresses, 0 allocations without a record" } },
		{ .row = "C-33, D-19: out of memory that is mended leaves no last error",
		  .ways = RUNTIME_WAYS, .program = "handles",
		  .policies = { "retry=1" },
		  .environment = { "CUWEIR_SIM_FAIL=alloc:1=2,alloc:3=2" },
		  .script = "array a 2d 100 50 0 float 4 0; mipmap b 64 64 0 u8 4 0 7; "
			    "expect 0 lasterror; free a; free b; truth",
		  .events = { "alloc_failure size=80000 count=0\n"
			      "alloc_failure size=21844 count=0\n" },
		  .out = "" },
		{ .row = "C-30: one that is not is left there once",
		  .ways = RUNTIME_WAYS, .program = "handles",
		  .policies = { "retry=0" },
		  .environment = { "CUWEIR_SIM_FAIL=alloc:1=2" },
		  .script = "expect 2 array a 2d 100 50 0 float 4 0; expect 2 lasterror; "
			    "lasterror; truth",
		  .events = { "alloc_failure size=80000 count=0\n" }, .out = "" },
		{ .row = "D-06, D-19: a veto undoes",
		  .ways = RUNTIME_WAYS, .program = "handles",
		  .policies = { "alloc=4K,veto=2,kinds=device+registered" },
		  .script = "expect 2 array a 3d 100 50 0 float 4 0; "
			    "expect 2 mipmap b 64 64 0 u8 4 0 7; expect 2 register c 8192 2; truth",
		  .events = { "alloc_threshold total=80000\n"
			      "alloc_threshold total=21844\n"
			      "alloc_threshold total=8192 kind=4\n" },
		  .out = "" },
		{ .row = "coverage 1a, D-19: registered memory",
		  .ways = RUNTIME_WAYS, .program = "handles",
		  .policies = { "alloc=4K,dealloc=4K,kinds=device+host+registered,debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "register a 8192 2; devptr a; truth; free a; expect 713 free a; truth",
		  .events = { "alloc_threshold total=8192 kind=4\n"
			      "allocated size=8192\n"
			      "dealloc_threshold total=0\n"
			      "deallocated size=8192\n" },
		  .out = "truth 0 6 8192 1\n", .err = { "1 frees of unknown addresses" } },
		{ .row = "the event shows the call of the program",
		  .ways = SHARED | FOREIGN, .program = "handles",
		  .policies = { "debug=1" },
		  .script = "array a 2d 100 50 0 float 4 0; array b 3d 100 50 0 float 4 0; "
			    "mipmap c 64 64 0 u8 4 0 7; register d 100 2; free d; free c; free b; "
			    "free a",
		  .events = { "allocated size=80000 call=cudaMallocArray\n"
			      "allocated size=80000 call=cudaMalloc3DArray\n"
			      "allocated size=21844 call=cudaMallocMipmappedArray\n"
			      "allocated size=100 call=cudaHostRegister\n"
			      "deallocated size=100 call=cudaHostUnregister\n"
			      "deallocated size=21844 call=cudaFreeMipmappedArray\n"
			      "deallocated size=80000 call=cudaFreeArray\n"
			      "deallocated size=80000 call=cudaFreeArray\n" } },
	};

	(void)state;
	RUN_ALL(runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(aliases),
		cmocka_unit_test(failures),
		cmocka_unit_test(registered),
		cmocka_unit_test(by_the_runtime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
