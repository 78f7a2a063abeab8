/* SPDX-License-Identifier: Apache-2.0 */
/* Between graph*.c. sim_lock is held for what changes a graph. */
#ifndef CUWEIR_SIM_GRAPH_H
#define CUWEIR_SIM_GRAPH_H

struct sim_graph *sim_graph_clone(const struct sim_graph *g);
bool sim_node_depends(struct sim_node *n, const CUgraphNode *deps, size_t count);
void sim_node_drop(struct sim_node *n);
void sim_node_unlink(struct sim_node *n);

/* graphmem.c */
void sim_node_forget(struct sim_node *n);
bool sim_graph_is_block(CUdeviceptr p, struct sim_arena **ret);
bool sim_graph_frees(const struct sim_graph *g, CUdeviceptr p);
CUresult sim_graph_prepare(const struct sim_graph *g, bool auto_free);
void sim_graph_undo(const struct sim_graph *g);
CUresult sim_launch_alloc(struct sim_node *n);
CUresult sim_launch_free(struct sim_node *n);
#endif
