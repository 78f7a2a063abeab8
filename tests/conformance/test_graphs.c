/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs with memory nodes: rows C-47, C-80, C-81, C-86 to C-89; P-27, P-53; D-06, D-15. */
#include "harness.h"

#define GRAPHS(text) .program = "graphs", .script = text
/* What the books said each time the program asked. */
#define BOOKS .plugin = "meter", .policies = { "" }, .shown = "query"
#define HEARD (DRIVER_WAYS | SHARED | STATIC)

static void captures(void **state)
{
	static const struct run runs[] = {
		{ .row = "P-27, P-53, C-86: planned, live by the launch, freed by the program",
		  .ways = DRIVER_WAYS, GRAPHS("captured"), BOOKS,
		  .environment = { "CUWEIR_SIM_STRICT_CAPTURE=1", "CUWEIR_REPORT=1" },
		  .events = { "query used=0 planned=65536\nquery used=0 planned=65536\n"
			      "query used=65536 planned=65536\nquery used=0 planned=65536\n"
			      "query used=0 planned=65536\nquery used=0 planned=0\n" },
		  .err = { "0 frees of unknown addresses", "0 allocations still live" } },
		{ .row = "the same of the runtime",
		  .ways = SHARED | STATIC, GRAPHS("captured"), BOOKS,
		  .environment = { "CUWEIR_REPORT=1" },
		  .events = { "query used=0 planned=65536\nquery used=0 planned=65536\n"
			      "query used=65536 planned=65536\nquery used=0 planned=65536\n"
			      "query used=0 planned=65536\nquery used=0 planned=0\n" },
		  .err = { "0 frees of unknown addresses", "0 allocations still live" } },
		{ .row = "C-81: freed in its own graph", .ways = HEARD, GRAPHS("temporary"), BOOKS,
		  .events = { "query used=0 planned=65536\nquery used=0 planned=0\n" } },
		{ .row = "C-86: freed by the next launch", .ways = HEARD, GRAPHS("auto_free"),
		  BOOKS,
		  .environment = { "CUWEIR_REPORT=1" },
		  .events = { "query used=65536 planned=65536\nquery used=65536 planned=65536\n"
			      "query used=65536 planned=65536\n" },
		  .err = { "0 frees of unknown addresses", "0 allocations still live" } },
		{ .row = "C-89: what has escaped outlives its graph", .ways = HEARD,
		  GRAPHS("escaped"), BOOKS,
		  .events = { "query used=0 planned=65536\nquery used=65536 planned=0\n"
			      "query used=0 planned=0\n" } },
		{ .row = "C-47: freed by a node of another graph", .ways = HEARD,
		  GRAPHS("freed_elsewhere"), BOOKS,
		  .events = { "query used=0 planned=65536\nquery used=0 planned=65536\n"
			      "query used=0 planned=0\n" } },
		{ .row = "a capture that is given up, and one that fails", .ways = HEARD,
		  GRAPHS("abandoned"), BOOKS,
		  .events = { "query used=0 planned=65536\nquery used=0 planned=0\n"
			      "query used=0 planned=0\n" } },
		{ .row = "captures of four threads", .ways = HEARD, GRAPHS("crowd"), BOOKS,
		  .environment = { "CUWEIR_REPORT=1" },
		  .events = { "query used=0 planned=0\n" },
		  .err = { "0 frees of unknown addresses", "0 allocations still live" } },
	};

	(void)state;
	RUN_ALL(runs);
}

static void nodes(void **state)
{
	static const struct run runs[] = {
		{ .row = "C-87: nodes of both functions, planned for their devices",
		  .ways = DRIVER_WAYS, GRAPHS("nodes"), BOOKS,
		  .environment = { "CUWEIR_SIM_DEVICES=2" },
		  .events = { "query used=0 planned=851968\nquery used=0 planned=851968\n"
			      "query used=65536 planned=851968\nquery used=0 planned=851968\n"
			      "query used=0 planned=0\n" } },
		{ .row = "every form of instantiation, and an update",
		  .ways = DRIVER_WAYS, GRAPHS("forms"), BOOKS,
		  .environment = { "CUWEIR_REPORT=1" },
		  .events = { "query used=0 planned=0\n" },
		  .err = { "6 allocations, 6 frees", "0 frees of unknown addresses" } },
		{ .row = "a child graph that is moved", .ways = DRIVER_WAYS, GRAPHS("children"),
		  BOOKS,
		  .events = { "query used=0 planned=196608\nquery used=0 planned=196608\n"
			      "query used=196608 planned=196608\nquery used=0 planned=0\n" } },
		{ .row = "captured into a graph that has nodes already", .ways = HEARD,
		  GRAPHS("into_graph"), BOOKS,
		  .events = { "query used=0 planned=196608\nquery used=196608 planned=196608\n"
			      "query used=0 planned=0\n" } },
	};

	(void)state;
	RUN_ALL(runs);
}

static void events(void **state)
{
	static const struct run runs[] = {
		{ .row = "a launch allocates, under its own name, and the program's frees free",
		  .ways = DRIVER_WAYS, GRAPHS("captured"),
		  .policies = { "alloc=1,dealloc=1,debug=1" },
		  .events = { "alloc_threshold total=65536 call=cuGraphLaunch device=0 "
			      "requested=65536 flags=4\n"
			      "allocated size=65536 call=cuGraphLaunch\n"
			      "dealloc_threshold total=0 call=cuMemFree\n"
			      "deallocated size=65536 call=cuMemFree\n"
			      "alloc_threshold total=65536 call=cuGraphLaunch\n"
			      "allocated size=65536 call=cuGraphLaunch\n"
			      "dealloc_threshold total=0 call=cuMemFreeAsync flags=4\n"
			      "deallocated size=65536 call=cuMemFreeAsync\n" } },
		{ .row = "the runtime's name", .ways = SHARED, GRAPHS("auto_free"),
		  .policies = { "debug=1" },
		  .events = { "allocated size=65536 call=cudaGraphLaunch\n"
			      "deallocated size=65536 call=cudaGraphLaunch\n"
			      "allocated size=65536 call=cudaGraphLaunch\n"
			      "deallocated size=65536 call=cudaGraphLaunch\n"
			      "allocated size=65536 call=cudaGraphLaunch\n"
			      "deallocated size=65536 call=cudaFree\n" } },
		{ .row = "another graph's free", .ways = DRIVER_WAYS, GRAPHS("freed_elsewhere"),
		  .policies = { "dealloc=1" },
		  .events = { "dealloc_threshold total=0 call=cuGraphLaunch flags=4\n"
			      "dealloc_threshold total=0 call=cuGraphLaunch flags=4\n" } },
		{ .row = "D-06: a veto is told and ignored", .ways = HEARD, GRAPHS("escaped"),
		  .policies = { "alloc=1,veto=46" },
		  .events = { "alloc_threshold total=65536\n" },
		  .err = { "cannot be undone; status 46" } },
	};

	(void)state;
	RUN_ALL(runs);
}

/* D-05: claimed before the launch, exactly, and for all that it takes more than it gives back. */
static void limits(void **state)
{
	static const struct run runs[] = {
		{ .row = "a launch that fits to the byte, again and again", .ways = HEARD,
		  GRAPHS("captured"), .unaudited = true,
		  .environment = { "CUWEIR_POLICY=limit:64K", "CUWEIR_REPORT=1" },
		  .err = { "0 allocations failed" } },
		{ .row = "one byte less: refused, and nothing is taken", .ways = DRIVER_WAYS,
		  GRAPHS("captured"), .unaudited = true, .exit_status = 1,
		  .environment = { "CUWEIR_POLICY=limit:65535", "CUWEIR_REPORT=1" },
		  .err = { "cuGraphLaunch asked for 64.0 KiB (65536 B) of device memory",
			   "it is larger than the limit", "launch(exec, stream): 2",
			   "  in use by this process: graph 64.0 KiB\n" } },
		{ .row = "what the launch frees itself is counted", .ways = HEARD,
		  GRAPHS("auto_free"), .unaudited = true,
		  .environment = { "CUWEIR_POLICY=limit:64K", "CUWEIR_REPORT=1" },
		  .err = { "0 allocations failed" } },
		{ .row = "what goes with another graph's launch, too", .ways = DRIVER_WAYS,
		  GRAPHS("freed_elsewhere"), .unaudited = true,
		  .environment = { "CUWEIR_POLICY=limit:64K", "CUWEIR_REPORT=1" },
		  .err = { "0 allocations failed" } },
		{ .row = "policies are asked about the launch, and hear of its failure",
		  .ways = DRIVER_WAYS, GRAPHS("captured"), .exit_status = 1,
		  .policies = { "admit=2@1" }, .shown = "admit alloc_failed",
		  .events = { "admit requested=65536 call=cuGraphLaunch device=0 flags=4\n"
			      "alloc_failed requested=65536 call=cuGraphLaunch status=2\n" } },
		{ .row = "D-08: the status of a dealloc threshold is the launch's",
		  .ways = DRIVER_WAYS, GRAPHS("auto_free"), .exit_status = 1,
		  .policies = { "dealloc=1,dealloc_status=5" },
		  .events = { "dealloc_threshold total=0 call=cuGraphLaunch answer=5\n" },
		  .err = { "launch(exec, stream): 5" } },
	};

	(void)state;
	RUN_ALL(runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captures),
		cmocka_unit_test(limits),
		cmocka_unit_test(nodes),
		cmocka_unit_test(events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
