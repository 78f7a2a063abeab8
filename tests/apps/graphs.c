/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs with memory nodes: graphs WAY CASE, for WAY see scenario.c, for CASE the table at the
 * end. Between the steps the program asks how much memory there is.
 */
#include "apps.h"
#include "graphs.h"

#include <pthread.h>

#define K64 ((size_t)65536)

static const struct graph_way *const way = &graph_way;
static CUstream stream;

static void look(void)
{
	size_t free_bytes, total_bytes;

	CHECK(way->info(&free_bytes, &total_bytes));
}

static void need(bool has_call)
{
	if (!has_call) {
		fprintf(stderr, "graphs: this way in has no such call\n");
		exit(77);
	}
}

/* A graph that takes 64 KiB and keeps it. */
static CUgraph capture_keeping(CUdeviceptr *p)
{
	CUgraph graph;

	CHECK(way->begin(stream));
	CHECK(way->alloc_async(p, K64, stream));
	CHECK(way->end(stream, &graph));
	return graph;
}

/* P-27, P-53: planned, live by a launch, freed by the program in each of its ways. */
static void captured(void)
{
	CUgraphExec exec;
	CUdeviceptr p;
	CUgraph graph = capture_keeping(&p);

	look();
	CHECK(way->instantiate(&exec, graph, false));
	look();
	CHECK(way->launch(exec, stream));
	look();
	REQUIRE(way->launch(exec, stream) == CUDA_ERROR_INVALID_VALUE);
	CHECK(way->free(p));
	look();
	CHECK(way->launch(exec, stream));
	CHECK(way->free_async(p, stream));
	look();
	CHECK(way->exec_destroy(exec));
	CHECK(way->graph_destroy(graph));
	look();
}

/* C-81: freed in its own graph it never is the program's. */
static void temporary(void)
{
	CUgraphExec exec;
	CUdeviceptr p;
	CUgraph graph;

	CHECK(way->begin(stream));
	CHECK(way->alloc_async(&p, K64, stream));
	CHECK(way->free_async(p, stream));
	CHECK(way->end(stream, &graph));
	CHECK(way->instantiate(&exec, graph, false));
	CHECK(way->launch(exec, stream));
	CHECK(way->launch(exec, stream));
	look();
	CHECK(way->exec_destroy(exec));
	CHECK(way->graph_destroy(graph));
	look();
}

/* C-86: a relaunch frees what the last one left. */
static void auto_free(void)
{
	CUgraphExec exec;
	CUdeviceptr p;
	CUgraph graph = capture_keeping(&p);

	CHECK(way->instantiate(&exec, graph, true));
	for (int i = 0; i < 3; i++) {
		CHECK(way->launch(exec, stream));
		look();
	}
	CHECK(way->free(p));
	CHECK(way->exec_destroy(exec));
	CHECK(way->graph_destroy(graph));
}

/* C-89: what has escaped outlives its graph; the plan lives as long as it can be launched. */
static void escaped(void)
{
	CUgraphExec exec;
	CUdeviceptr p;
	CUgraph graph = capture_keeping(&p);

	CHECK(way->instantiate(&exec, graph, false));
	CHECK(way->graph_destroy(graph));
	look();
	CHECK(way->launch(exec, stream));
	CHECK(way->exec_destroy(exec));
	look();
	CHECK(way->free(p));
	look();
}

/* C-47: another graph's free node. */
static void freed_elsewhere(void)
{
	CUgraphExec taking, giving;
	CUdeviceptr p;
	CUgraph first = capture_keeping(&p), second;

	CHECK(way->begin(stream));
	CHECK(way->free_async(p, stream));
	CHECK(way->end(stream, &second));
	CHECK(way->instantiate(&taking, first, false));
	CHECK(way->instantiate(&giving, second, false));
	for (int i = 0; i < 2; i++) {
		CHECK(way->launch(taking, stream));
		CHECK(way->launch(giving, stream));
		look();
	}
	CHECK(way->exec_destroy(giving));
	CHECK(way->exec_destroy(taking));
	CHECK(way->graph_destroy(second));
	CHECK(way->graph_destroy(first));
	look();
}

/* A capture that is given up leaves no plan; neither does one that fails. */
static void abandoned(void)
{
	CUdeviceptr p;
	CUgraph graph = capture_keeping(&p);

	look();
	CHECK(way->graph_destroy(graph));
	look();
	CHECK(way->begin(stream));
	CHECK(way->alloc_async(&p, K64, stream));
	(void)way->free(1);
	(void)way->end(stream, &graph);
	look();
}

/* The nodes as such, by both functions, on two devices. */
static void nodes(void)
{
	CUgraphExec exec;
	CUdeviceptr a, b, c, d;
	CUgraph graph, copy;

	need(way->add_alloc != NULL);
	CHECK(way->create(&graph));
	CHECK(way->add_alloc(graph, &a, K64, 0));
	CHECK(way->add_alloc(graph, &b, 2 * K64, 1));
	CHECK(way->add_any_alloc(graph, &c, 4 * K64, true));
	CHECK(way->add_any_alloc(graph, &d, 8 * K64, false));
	look();
	CHECK(way->add_any_free(graph, c));
	CHECK(way->add_free(graph, d));
	REQUIRE(way->clone(&copy, graph) != CUDA_SUCCESS);
	CHECK(way->instantiate_form(&exec, graph, 0));
	CHECK(way->upload(exec, stream));
	look();
	CHECK(way->launch_per_thread(exec));
	look();
	CHECK(way->trim(0));
	CHECK(way->free(a));
	CHECK(way->free_async(b, stream));
	look();
	CHECK(way->exec_destroy(exec));
	CHECK(way->graph_destroy(graph));
	look();
}

/* Every form of instantiation, with and without freeing at launch. */
static void forms(void)
{
	need(way->instantiate_form != NULL);
	for (int form = 0; form < 6; form++) {
		CUgraphExec exec;
		CUdeviceptr p;
		CUgraph graph = capture_keeping(&p);

		CHECK(way->instantiate_form(&exec, graph, form));
		CHECK(way->update(exec, graph, form % 2 == 0));
		CHECK(way->launch(exec, stream));
		CHECK(way->free(p));
		CHECK(way->exec_destroy(exec));
		CHECK(way->graph_destroy(graph));
	}
	look();
}

/* A child that is moved takes its memory with it, and its handle ends with the parent. */
static void children(void)
{
	CUgraphExec exec;
	CUdeviceptr p, q;
	CUgraph parent, child;

	need(way->add_child != NULL);
	CHECK(way->create(&parent));
	CHECK(way->create(&child));
	CHECK(way->add_alloc(parent, &p, K64, 0));
	CHECK(way->add_alloc(child, &q, 2 * K64, 0));
	REQUIRE(way->add_child(parent, child, false) != CUDA_SUCCESS);
	look();
	CHECK(way->add_child(parent, child, true));
	look();
	CHECK(way->instantiate(&exec, parent, false));
	CHECK(way->launch(exec, stream));
	look();
	CHECK(way->free(p));
	CHECK(way->free(q));
	CHECK(way->exec_destroy(exec));
	CHECK(way->graph_destroy(parent));
	look();
}

/* Into a graph that is there already, which has nodes of its own. */
static void into_graph(void)
{
	CUgraphExec exec;
	CUdeviceptr p, q;
	CUgraph graph, same;

	need(way->begin_to_graph != NULL);
	CHECK(way->create(&graph));
	CHECK(way->add_alloc(graph, &p, K64, 0));
	CHECK(way->begin_to_graph(stream, graph));
	CHECK(way->alloc_async(&q, 2 * K64, stream));
	CHECK(way->end(stream, &same));
	REQUIRE(same == graph);
	look();
	CHECK(way->instantiate(&exec, graph, false));
	CHECK(way->launch(exec, stream));
	look();
	CHECK(way->free(q));
	CHECK(way->free(p));
	CHECK(way->exec_destroy(exec));
	CHECK(way->graph_destroy(graph));
	look();
}

static void *capture_much(void *argument)
{
	CUstream own;

	(void)argument;
	CHECK(way->start(NULL));
	CHECK(way->stream(&own));
	for (int i = 0; i < 200; i++) {
		CUgraphExec exec;
		CUdeviceptr p[3];
		CUgraph graph;

		CHECK(way->begin(own));
		for (int k = 0; k < 3; k++) {
			CHECK(way->alloc_async(&p[k], 1000, own));
		}
		CHECK(way->free_async(p[1], own));
		CHECK(way->end(own, &graph));
		CHECK(way->instantiate(&exec, graph, i % 2 == 0));
		CHECK(way->launch(exec, own));
		CHECK(way->free(p[0]));
		CHECK(way->free(p[2]));
		CHECK(way->exec_destroy(exec));
		CHECK(way->graph_destroy(graph));
	}
	return NULL;
}

/* Captures of several threads at a time, each thread's its own. */
static void crowd(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++) {
		CHECK(pthread_create(&threads[i], NULL, capture_much, NULL));
	}
	for (int i = 0; i < 4; i++) {
		CHECK(pthread_join(threads[i], NULL));
	}
	look();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "captured", captured }, { "temporary", temporary },
		{ "auto_free", auto_free }, { "escaped", escaped },
		{ "freed_elsewhere", freed_elsewhere }, { "abandoned", abandoned },
		{ "nodes", nodes }, { "forms", forms }, { "children", children },
		{ "into_graph", into_graph }, { "crowd", crowd },
	};

	for (size_t i = 0; argc > 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[2]) == 0) {
			CHECK(way->start(argv[1]));
			CHECK(way->stream(&stream));
			cases[i].run();
			return 0;
		}
	}
	fprintf(stderr, "graphs WAY CASE\n");
	return 2;
}
