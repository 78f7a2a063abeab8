/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What graphs plan. A node that allocates takes nothing when it is made: it is counted in the
 * gauge GRAPH_PLANNED until its graph and everything instantiated from it are gone. A launch
 * makes live what the graph does not free itself; that is the program's from then on, whatever
 * becomes of the graph (C-86 to C-89).
 *
 * Any thread, no CUDA call, no malloc; one lock, which comes before those of the other books
 * (lock.h). Graphs without memory nodes are not in here: for them every function is a look-up.
 */
#ifndef CW_GRAPH_BOOKS_H
#define CW_GRAPH_BOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_api.h"

/* One memory node, as a launch needs it. */
struct cw_graph_step {
	uint64_t pointer;
	uint64_t bytes;
	uint64_t order; /* for the cursor of cw_graph_steps */
	int device;
	uint8_t kind;   /* enum cuweir_kind */
};

/* Nodes that the program made; `node` may be NULL where none is known. */
void cw_graph_planned(CUgraph graph, CUgraphNode node, const struct cw_graph_step *step);
void cw_graph_freed(CUgraph graph, CUgraphNode node, uint64_t pointer);

/*
 * Nodes that a capturing stream made. Whose capture it is, is known for the stream that began
 * one, and where one capture alone is open in the process or was begun by this thread; of any
 * other an allocation is counted as untracked, since its graph would be a guess.
 */
void cw_graph_captured(CUstream stream, bool per_thread, const struct cw_graph_step *step);
void cw_graph_captured_free(CUstream stream, bool per_thread, uint64_t pointer);

/* `graph`: what is captured into, NULL for a new graph; at the end NULL where it failed. */
void cw_graph_capture_begun(CUstream stream, bool per_thread, CUgraph graph);
void cw_graph_capture_ended(CUstream stream, bool per_thread, CUgraph graph);

/* The child's nodes become the parent's, and its handle is no graph of its own any more. */
void cw_graph_moved(CUgraph parent, CUgraph child);

void cw_graph_instantiated(CUgraphExec exec, CUgraph graph, bool frees_on_launch);
void cw_graph_exec_updated(CUgraphExec exec, CUgraph graph);

/*
 * Around the real call that destroys one: out of the books before it, since the handle may be
 * that of a new one at once; then gone for good, or back where the call has failed.
 */
struct cw_graph_end {
	struct cw_graph *graph; /* NULL: it was not known */
	uint64_t facts;
};

void cw_graph_end_begin(struct cw_graph_end *end, CUgraph graph);
void cw_graph_end_finish(struct cw_graph_end *end, CUgraph graph, bool ended);
void cw_graph_exec_end_begin(struct cw_graph_end *end, CUgraphExec exec);
void cw_graph_exec_end_finish(struct cw_graph_end *end, CUgraphExec exec, bool ended);

/* Whether a launch of this one moves memory; takes no lock. */
bool cw_graph_exec_known(CUgraphExec exec);

/*
 * The next steps of an executable graph after the one of order *cursor (0: from the first), at
 * most `max`; *cursor moves on. `frees`: those that give back what another graph allocated,
 * else those whose memory is the program's after a launch.
 */
size_t cw_graph_steps(CUgraphExec exec, bool frees, uint64_t *cursor,
		      struct cw_graph_step *ret_steps, size_t max);
bool cw_graph_frees_on_launch(CUgraphExec exec);

/* The child has no graphs: CUDA does not survive a fork. */
void cw_graph_books_postfork_child(void);

#endif
