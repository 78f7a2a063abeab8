/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of graphs.c; graphs_driver.c and graphs_runtime.c are the ways to them. */
#ifndef GRAPHS_H
#define GRAPHS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* What is not there where a way has no such call is NULL. */
struct graph_way {
	int (*start)(const char *how);
	int (*stream)(CUstream *stream);
	int (*begin)(CUstream stream);
	int (*end)(CUstream stream, CUgraph *graph);
	int (*alloc_async)(CUdeviceptr *p, size_t size, CUstream stream);
	int (*free_async)(CUdeviceptr p, CUstream stream);
	int (*free)(CUdeviceptr p);
	int (*instantiate)(CUgraphExec *exec, CUgraph graph, bool auto_free);
	int (*launch)(CUgraphExec exec, CUstream stream);
	int (*exec_destroy)(CUgraphExec exec);
	int (*graph_destroy)(CUgraph graph);
	int (*info)(size_t *free_bytes, size_t *total_bytes);

	int (*create)(CUgraph *graph);
	int (*begin_to_graph)(CUstream stream, CUgraph graph);
	int (*add_alloc)(CUgraph graph, CUdeviceptr *p, size_t size, int device);
	int (*add_free)(CUgraph graph, CUdeviceptr p);
	int (*add_any_alloc)(CUgraph graph, CUdeviceptr *p, size_t size, bool first_version);
	int (*add_any_free)(CUgraph graph, CUdeviceptr p);
	int (*add_child)(CUgraph graph, CUgraph child, bool move);
	int (*clone)(CUgraph *copy, CUgraph graph);
	int (*instantiate_form)(CUgraphExec *exec, CUgraph graph, int form);
	int (*update)(CUgraphExec exec, CUgraph graph, bool first_version);
	int (*upload)(CUgraphExec exec, CUstream stream);
	int (*launch_per_thread)(CUgraphExec exec);
	int (*trim)(int device);
};

extern const struct graph_way graph_way;

#endif
