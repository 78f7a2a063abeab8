/* SPDX-License-Identifier: Apache-2.0 */
/* Rows D-06, D-07, D-10, D-15, D-17, D-19; C-46; P-11: memory of others. */
#include "harness.h"

static void of_another_process(void **state)
{
	static const struct run runs[] = {
		{ .row = "D-10: a kind to itself",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "alloc=0+1M,debug=1,kinds=device+imported" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "export 1048576; open a 2; truth; free a; truth",
		  .events = { "alloc_threshold total=1048576 kind=5\n"
			      "allocated size=1048576 kind=5 device=0 call=cuIpcOpenMemHandle\n"
			      "deallocated size=1048576 kind=5 device=0 "
			      "call=cuIpcCloseMemHandle\n" },
		  .out = "truth 0 3 1048576 1\n",
		  .err = { "0 frees of unknown addresses", "0 allocations still live" } },
		{ .row = "an opening that is not closed is told at the end",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "export 8192; open a 2; open b 2; free a",
		  .shown = "alloc_threshold", .events = { "" },
		  .err = { "1 allocations, 0 frees", "1 allocations still live",
			   "8192 B, device 0, by cuIpcOpenMemHandle" } },
		{ .row = "C-46: opened again it is the same memory, and counts once",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "export 8192; open a 2; open b 1; open c 2; same a b; same a c; truth; "
			    "free a; free b; truth; free c; truth",
		  .events = { "allocated size=8192\ndeallocated size=8192\n" },
		  .out = "truth 0 3 8192 1\ntruth 0 3 8192 1\n",
		  .err = { "imported memory: 0 B (0 B) in use, peak 8192 B (8.0 KiB), 1 "
			   "allocations, 1 frees", "0 frees of unknown addresses" } },
		{ .row = "C-46: opened, closed, opened",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "debug=1" },
		  .script = "export 8192; open a 2; free a; open b 2; free b; "
			    "expect 1 free b; truth",
		  .events = { "allocated size=8192\ndeallocated size=8192\n"
			      "allocated size=8192\ndeallocated size=8192\n" },
		  .out = "" },
		{ .row = "D-07: a close that fails leaves the count",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuIpcCloseMemHandle:1=1,"
				   "cuIpcCloseMemHandle:3=1" },
		  .script = "export 8192; open a 2; open b 2; expect 1 free a; free a; "
			    "expect 1 free b; open a 2; free a; truth; free b; truth",
		  .events = { "allocated size=8192\ndeallocated size=8192\n" },
		  .out = "truth 0 3 8192 1\n" },
		{ .row = "a refusal beforehand asks the driver for nothing",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "admit=801@1" },
		  .script = "export 8192; expect 801 open a 2; truth; open b 2; free b",
		  .shown = "alloc_threshold", .events = { "" }, .out = "" },
		{ .row = "D-17: an opening goes with its context; the handle opens again",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "debug=1" },
		  .script = "export 8192; ctx create; open a 2; open b 2; ctx destroy; truth; "
			    "ctx create; open c 2; free c; truth; ctx destroy",
		  .events = { "allocated size=8192\ndeallocated size=8192\n"
			      "allocated size=8192\ndeallocated size=8192\n" },
		  .out = "" },
	};

	(void)state;
	RUN_ALL(runs);
}

static void of_another_api(void **state)
{
	static const struct run runs[] = {
		{ .row = "coverage 1e: the import counts, what is mapped of it does not",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "alloc=1M,dealloc=1M,kinds=device+imported,debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "import e 1048576 1; map b e 0 65536; map c e 65536 4096; "
			    "mapmip m e 64 64 u8; truth; free b; free m; truth; free c; "
			    "free e; truth",
		  .events = { "alloc_threshold total=1048576 kind=5 call=cuImportExternalMemory\n"
			      "allocated size=1048576\n"
			      "dealloc_threshold total=0 call=cuDestroyExternalMemory\n"
			      "deallocated size=1048576\n" },
		  .out = "truth 0 3 1048576 1\ntruth 0 3 1048576 1\n",
		  .err = { "0 frees of unknown addresses", "0 allocations still live" } },
		{ .row = "what is mapped may outlive the import",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_REPORT=1", "CUWEIR_SIM_FAIL=cuMemFree:1=46" },
		  .script = "import e 65536 1; map b e 0 65536; free e; truth; expect 46 free b; "
			    "free b; expect 1 free b",
		  .events = { "allocated size=65536\ndeallocated size=65536\n" },
		  .out = "",
		  .err = { "1 frees of unknown addresses", "0 allocations still live" } },
		{ .row = "D-06: what an import took over cannot be given back, so it stays",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "alloc=64K,veto=2,kinds=imported" },
		  .script = "import e 65536 1; truth; free e; truth",
		  .events = { "alloc_threshold total=65536\n" },
		  .out = "truth 0 3 65536 1\n",
		  .err = { "cuImportExternalMemory cannot be undone; status 2" } },
		{ .row = "D-06: an import of another sort is undone",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "alloc=64K,veto=46,kinds=imported" },
		  .script = "expect 46 import e 65536 8; truth",
		  .events = { "alloc_threshold total=65536\n" }, .out = "" },
		{ .row = "a refusal beforehand leaves the descriptor to the program",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "admit=2@1" },
		  .script = "expect 2 import e 65536 1; truth; import e 65536 1; free e; truth",
		  .shown = "alloc_threshold", .events = { "" }, .out = "" },
		{ .row = "an import that the driver refuses",
		  .ways = DRIVER_WAYS, .program = "handles",
		  .policies = { "retry=always,debug=1" },
		  .script = "expect 1 import e 65536 99; expect 1 import e 0 1; truth",
		  .events = { "" }, .out = "" },
	};

	(void)state;
	RUN_ALL(runs);
}

/* A runtime that no driver door hears imports unheard. */
static void by_the_runtime(void **state)
{
	static const struct run runs[] = {
		{ .row = "P-11: cudaIpcOpenMemHandle counts once, with every open",
		  .ways = SHARED | STATIC, .program = "handles",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "export 8192; open a 2; open b 2; same a b; truth; free a; free b; "
			    "truth",
		  .events = { "allocated size=8192 kind=5\n"
			      "deallocated size=8192\n" },
		  .out = "truth 0 3 8192 1\n",
		  .err = { "1 allocations, 1 frees", "0 frees of unknown addresses" } },
		{ .row = "P-11: cudaImportExternalMemory",
		  .ways = SHARED | STATIC, .program = "handles",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "import e 65536 1; map b e 0 4096; mapmip m e 32 32 u8; truth; free b; "
			    "free m; free e; truth",
		  .events = { "allocated size=65536 kind=5\n"
			      "deallocated size=65536\n" },
		  .out = "truth 0 3 65536 1\n", .err = { "0 frees of unknown addresses" } },
		{ .row = "D-19: not counted, and not in the way",
		  .ways = FOREIGN, .program = "handles", .unaudited = true,
		  .policies = { "debug=1" },
		  .script = "export 8192; open a 2; open b 2; same a b; import e 65536 1; truth; "
			    "free b; free a; free e; truth",
		  .events = { "" }, .out = "truth 0 3 73728 2\n" },
		{ .row = "the event shows the call of the program",
		  .ways = SHARED, .program = "handles",
		  .policies = { "debug=1" },
		  .script = "export 8192; open a 2; import e 65536 1; free e; free a",
		  .events = { "allocated size=8192 call=cudaIpcOpenMemHandle\n"
			      "allocated size=65536 call=cudaImportExternalMemory\n"
			      "deallocated size=65536 call=cudaDestroyExternalMemory\n"
			      "deallocated size=8192 call=cudaIpcCloseMemHandle\n" } },
	};

	(void)state;
	RUN_ALL(runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_another_process),
		cmocka_unit_test(of_another_api),
		cmocka_unit_test(by_the_runtime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
