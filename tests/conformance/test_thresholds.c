/* SPDX-License-Identifier: Apache-2.0 */
/* Rows, P-50; D-03, D-06, D-08, D-10. */
#include "harness.h"

static void crossings(void **state)
{
	static const struct run runs[] = {
		{ .row = "R-02, R-62: alloc thresholds only, unsorted",
		  .policies = { "alloc=32K+8K" },
		  .script = "alloc a 6K; alloc b 2K; alloc c 21K; alloc d 8K; alloc e 8K; "
			    "free a; free b; free c; free d; free e; truth",
		  .events = { "alloc_threshold total=8192 before=6144 after=8192 requested=2048\n"
			      "alloc_threshold total=37888 before=29696 after=37888\n" },
		  .out = "" },
		{ .row = "R-03, P-50: dealloc thresholds only",
		  .policies = { "dealloc=100" },
		  .script = "alloc a 99; alloc b 1; alloc c 150; free c; free b; free a; truth",
		  .events = { "dealloc_threshold total=99 before=100 after=99 requested=1\n" },
		  .out = "" },
		{ .row = "R-04: exact hits, from and to a threshold",
		  .policies = { "alloc=4096,dealloc=4096" },
		  .script = "alloc a 4096; alloc b 4096; free b; free a; truth",
		  .events = { "alloc_threshold total=4096\ndealloc_threshold total=0\n" },
		  .out = "" },
		{ .row = "R-68, P-50: one call for many thresholds",
		  .policies = { "alloc=8K+16K+32K,dealloc=8K+16K+32K" },
		  .script = "alloc a 40K; free a; truth",
		  .events = { "alloc_threshold total=40960\ndealloc_threshold total=0\n" },
		  .out = "" },
		{ .row = "R-22, R-26: duplicates and zero",
		  .policies = { "alloc=0+8K+8K+0,dealloc=0+0" },
		  .script = "alloc a 8K; free a; alloc b 8K; free b",
		  .events = { "alloc_threshold total=8192\nalloc_threshold total=8192\n" } },
		{ .row = "R-27: beyond the device and the greatest number",
		  .policies = { "alloc=1T+18446744073709551615,dealloc=1T" },
		  .script = "alloc a 8K; free a",
		  .events = { "" } },
		{ .row = "R-23: none at all",
		  .policies = { "" },
		  .script = "alloc a 8K; free a; truth", .events = { "" }, .out = "" },
		{ .row = "D-14: the next crossing is judged from the true total",
		  .policies = { "alloc=8K,dealloc=8K" },
		  .script = "repeat 3 { alloc a 8K; free a }; truth",
		  .events = { "alloc_threshold total=8192\ndealloc_threshold total=0\n"
			      "alloc_threshold total=8192\ndealloc_threshold total=0\n"
			      "alloc_threshold total=8192\ndealloc_threshold total=0\n" },
		  .out = "" },
	};

	(void)state;
	RUN_ALL(runs);
}

static void vetoes(void **state)
{
	static const struct run runs[] = {
		{ .row = "R-41, D-06: the allocation is undone, silently, and the status returned",
		  .policies = { "alloc=8K,veto=46,dealloc=1,debug=1" },
		  .script = "alloc a 4K; expect 46 alloc b 8K; alloc c 1K; free a; free c; truth",
		  .events = { "allocated size=4096\n"
			      "alloc_threshold total=12288 answer=46\n"
			      "allocated size=1024 after=5120\n"
			      "deallocated size=4096\n"
			      "dealloc_threshold total=0\ndeallocated size=1024\n" },
		  .out = "" },
		{ .row = "R-41: of stream-ordered memory, on the same stream",
		  .policies = { "alloc=8K,veto=2" },
		  .script = "expect 2 async a 8K s; async b 4K s; freeasync b s; sync; truth",
		  .events = { "alloc_threshold total=8192\n" }, .out = "" },
		{ .row = "D-06: a status that CUDA does not have",
		  .policies = { "alloc=8K,veto=7777" },
		  .script = "expect 999 alloc a 8K; expect 999 alloc a 8K; truth",
		  .events = { "alloc_threshold total=8192\nalloc_threshold total=8192\n" },
		  .out = "",
		  .err = { "on_alloc_threshold returned 7777" } },
		{ .row = "D-10, R-41: pinned host memory",
		  .policies = { "alloc=8K,kinds=host,veto=801" },
		  .script = "expect 801 host a 8K; alloc d 8K; free d; truth",
		  .events = { "alloc_threshold total=8192 kind=3\n" }, .out = "" },
		{ .row = "R-42, D-08: a dealloc error comes after the memory is gone",
		  .policies = { "dealloc=8K,dealloc_status=46,debug=1" },
		  .script = "alloc a 8K; expect 46 free a; truth; alloc b 8K; expect 46 free b",
		  .events = { "allocated size=8192\n"
			      "dealloc_threshold total=0\ndeallocated size=8192\n"
			      "allocated size=8192\n"
			      "dealloc_threshold total=0\ndeallocated size=8192\n" },
		  .out = "" },
		{ .row = "R-64: every callback fails",
		  .ways = DRIVER_WAYS,
		  .policies = { "alloc=8K,dealloc=6K,veto=46,dealloc_status=801" },
		  .script = "alloc a 6K; expect 801 free a; expect 46 alloc b 12K; "
			    "expect 2 alloc c 3458764513820540928; truth",
		  .events = { "dealloc_threshold total=0\nalloc_threshold total=12288\n"
			      "alloc_failure size=3458764513820540928 count=0\n" },
		  .out = "" },
	};

	(void)state;
	RUN_ALL(runs);
}

static void kinds(void **state)
{
	static const struct run runs[] = {
		{ .row = "D-10: each kind has its own total; device memory by default",
		  .policies = { "alloc=8K,dealloc=8K" },
		  .script = "managed m 8K; host h 8K; alloc d 8K; free d; free h; free m; truth",
		  .events = { "alloc_threshold total=8192 kind=1\n"
			      "dealloc_threshold total=0 kind=1\n" },
		  .out = "" },
		{ .row = "D-10: a handler may name other kinds",
		  .policies = { "alloc=8K,dealloc=8K,kinds=managed+host" },
		  .script = "alloc d 8K; managed m 8K; host h 8K; hostalloc g 8K; free d; free h; "
			    "free g; free m; truth",
		  .events = { "alloc_threshold total=8192 kind=2\n"
			      "alloc_threshold total=8192 kind=3\n"
			      "dealloc_threshold total=0 kind=3\n"
			      "dealloc_threshold total=0 kind=2\n" },
		  .out = "" },
		{ .row = "D-10: each device has its own total",
		  .environment = { "CUWEIR_SIM_DEVICES=2" },
		  .policies = { "alloc=8K" },
		  .script = "alloc a 6K; device 1; alloc b 6K; alloc c 2K; device 0; alloc d 2K; "
			    "free a; free b; free c; free d; truth",
		  .events = { "alloc_threshold total=8192 device=1\n"
			      "alloc_threshold total=8192 device=0\n" },
		  .out = "" },
		{ .row = "D-03: pitched memory is charged by its pitch",
		  .policies = { "alloc=1,dealloc=1,debug=1" },
		  .script = "pitch p 100 50; free p; truth",
		  .events = { "alloc_threshold total=25600 requested=5000 charged=25600\n"
			      "allocated size=5000 charged=25600\n"
			      "dealloc_threshold total=0 requested=5000 charged=25600\n"
			      "deallocated size=5000 charged=25600\n" },
		  .out = "pitch p 512\n" },
		{ .row = "stream-ordered memory counts as device memory, at the call",
		  .policies = { "alloc=8K,dealloc=8K" },
		  .script = "async a 8K s; freeasync a s; async b 8K 0; free b; alloc c 8K; "
			    "freeasync c s; async e 8K ptds; freeasync e ptds; sync; truth",
		  .events = { "alloc_threshold total=8192\ndealloc_threshold total=0\n"
			      "alloc_threshold total=8192\ndealloc_threshold total=0\n"
			      "alloc_threshold total=8192\ndealloc_threshold total=0\n"
			      "alloc_threshold total=8192\ndealloc_threshold total=0\n" },
		  .out = "" },
	};

	(void)state;
	RUN_ALL(runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crossings),
		cmocka_unit_test(vetoes),
		cmocka_unit_test(kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
