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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captures),
		cmocka_unit_test(nodes),
		cmocka_unit_test(events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
