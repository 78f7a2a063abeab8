/* SPDX-License-Identifier: Apache-2.0 */
/* What graph_books.c and graph_captures.c share. Everything here wants cw_graph_lock held. */
#ifndef CW_GRAPH_PRIVATE_H
#define CW_GRAPH_PRIVATE_H

#include "graph_books.h"
#include "lock.h"

struct cw_graph_node {
	struct cw_graph_node *next; /* of its graph, by order */
	CUgraphNode handle;
	struct cw_graph_step step;  /* of a node that only frees: pointer and order alone */
	uint64_t freed;             /* order of the node that frees it in the same graph, or 0 */
	bool only_frees;            /* what another graph allocated */
};

struct cw_graph {
	struct cw_graph *next;
	CUgraph handle;             /* NULL while it is being captured, and when it is destroyed */
	struct cw_graph_node *nodes;
	uint32_t uses;              /* executable graphs, and the handle or the capture */
};

struct cw_graph_capture {
	struct cw_graph_capture *next;
	struct cw_graph *graph;     /* NULL until there is a memory node, and with `into` */
	CUgraph into;               /* captured into this one, which exists already */
	uint64_t stream;
	uint32_t thread;
};

extern struct cw_lock cw_graph_lock;

/* A zeroed cell that any of the three fits in; NULL where there is no memory. */
void *cw_graph_take_cell(void);
void cw_graph_give_cell(void *memory);

/* NULL for one that has no handle yet. */
struct cw_graph *cw_graph_new(CUgraph handle);
struct cw_graph *cw_graph_find_or_make(CUgraph handle);
void cw_graph_set_handle(struct cw_graph *graph, CUgraph handle);
void cw_graph_unuse(struct cw_graph *graph);

/* False where nothing could be noted; `graph` may be NULL. */
bool cw_graph_add_alloc(struct cw_graph *graph, CUgraphNode handle,
			const struct cw_graph_step *step);
bool cw_graph_add_free(struct cw_graph *graph, CUgraphNode handle, uint64_t pointer);

void cw_graph_captures_postfork_child(void);

#endif
