/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs. One without memory nodes runs a copy made when it was instantiated; one with
 * memory nodes, of which there is one per graph, runs the graph's own nodes.
 */
#include "internal.h"
#include "graph.h"

static CUresult launch(struct sim_graph *g)
{
	CUresult r = CUDA_SUCCESS;

	for (struct sim_node *n = g->first; n != NULL && r == CUDA_SUCCESS; n = n->next) {
		switch (n->type) {
		case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
			r = sim_launch_alloc(n);
			break;
		case CU_GRAPH_NODE_TYPE_MEM_FREE:
			r = sim_launch_free(n);
			break;
		case CU_GRAPH_NODE_TYPE_MEMSET:
			for (uint64_t y = 0; y < n->box.h && r == CUDA_SUCCESS; y++) {
				CUdeviceptr row = n->dptr + y * n->box.dst.pitch;

				if (sim_range_ok(row, n->size * n->width)) {
					sim_fill(row, n->width, n->value, n->size);
				} else {
					r = CUDA_ERROR_INVALID_VALUE;
				}
			}
			break;
		case CU_GRAPH_NODE_TYPE_MEMCPY:
			r = sim_box_now(&n->box);
			break;
		case CU_GRAPH_NODE_TYPE_HOST:
			n->fn(n->data);
			break;
		case CU_GRAPH_NODE_TYPE_GRAPH:
			r = n->child != NULL ? launch(n->child) : CUDA_SUCCESS;
			break;
		default:
			break;
		}
	}
	return r;
}

static CUresult instantiate(CUgraphExec *ret, CUgraph h, unsigned long long flags)
{
	struct sim_graph *g = sim_obj_get(h, SIM_GRAPH);
	struct sim_exec *e = NULL;

	if (ret == NULL || g == NULL || g->owner != NULL || flags > 15) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (g->has_memory && g->instances > 0) {
		return CUDA_ERROR_NOT_SUPPORTED; /* GPU?: which code (C-87) */
	}
	pthread_mutex_lock(&sim_lock);
	if (!g->has_memory) {
		g = sim_graph_clone(g);
	}
	if (g != NULL) {
		e = sim_obj_new(SIM_EXEC);
	}
	if (e != NULL) {
		e->graph = g;
		e->flags = flags;
		e->copy = !g->has_memory;
		g->instances++;
	}
	pthread_mutex_unlock(&sim_lock);
	if (e == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUgraphExec)e;
	return CUDA_SUCCESS;
}

static CUresult instantiate_params(CUgraphExec *ret, CUgraph h, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
	CUresult r = p == NULL ? CUDA_ERROR_INVALID_VALUE : instantiate(ret, h, p->flags);

	if (p != NULL) {
		p->hErrNode_out = NULL;
		p->result_out = r == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
						  : CUDA_GRAPH_INSTANTIATE_ERROR;
	}
	return r;
}

/* sim_lock is held. */
static void let_go(struct sim_exec *e)
{
	e->graph->instances--;
	if (e->copy || (e->graph->destroyed && e->graph->instances == 0)) {
		sim_graph_drop(e->graph);
	}
}

static CUresult exec_destroy(CUgraphExec h)
{
	struct sim_exec *e = sim_obj_get(h, SIM_EXEC);

	if (e == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_lock);
	let_go(e);
	sim_obj_free(&e->obj);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

static CUresult graph_launch(CUgraphExec h, CUstream hs, bool per_thread)
{
	struct sim_exec *e = sim_obj_get(h, SIM_EXEC);
	struct sim_stream *s;
	struct sim_node *n;
	CUresult r = sim_stream_use(hs, per_thread, &s);

	if (r == CUDA_SUCCESS && e == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (sim_capture_of(s, &r) != NULL) {
		if (!e->copy) {
			return CUDA_ERROR_NOT_SUPPORTED; /* GPU?: a launch with memory, captured */
		}
		n = sim_capture_node(s, CU_GRAPH_NODE_TYPE_GRAPH);
		pthread_mutex_lock(&sim_lock);
		if (n != NULL) {
			n->child = sim_graph_clone(e->graph);
		}
		if (n != NULL && n->child != NULL) {
			n->child->owner = n;
		}
		pthread_mutex_unlock(&sim_lock);
		return n != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r == CUDA_SUCCESS) {
		r = sim_graph_prepare(
			e->graph,
			(e->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0);
	}
	if (r == CUDA_SUCCESS) {
		r = launch(e->graph);
		if (r != CUDA_SUCCESS) {
			sim_graph_undo(e->graph);
		}
	}
	return r;
}

static CUresult upload(CUgraphExec h, CUstream hs, bool per_thread)
{
	struct sim_stream *s;
	CUresult r = sim_stream_use(hs, per_thread, &s);

	return r == CUDA_SUCCESS && sim_obj_get(h, SIM_EXEC) == NULL ? CUDA_ERROR_INVALID_VALUE : r;
}

/* The first node that differs in kind or in its edges; *ret_result says how. */
static CUgraphNode compare(const struct sim_graph *a, const struct sim_graph *b,
			   CUgraphExecUpdateResult *ret_result)
{
	const struct sim_node *x = a->first, *y = b->first;

	*ret_result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	if (a->n_nodes != b->n_nodes) {
		*ret_result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		return NULL;
	}
	for (; x != NULL && y != NULL; x = x->next, y = y->next) {
		CUgraphNode below = NULL;

		if (x->n_deps != y->n_deps) {
			*ret_result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
			return (CUgraphNode)(uintptr_t)y;
		}
		if (x->type != y->type) {
			*ret_result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
			return (CUgraphNode)(uintptr_t)y;
		}
		if (x->child != NULL && y->child != NULL) {
			below = compare(x->child, y->child, ret_result);
		}
		if (*ret_result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
			return below;
		}
	}
	return NULL;
}

/* GPU?: graphs with memory nodes; an update with the same graph changes nothing, any other one
 * fails. */
static CUresult update(CUgraphExec he, CUgraph hg, CUgraphNode *ret_node,
		       CUgraphExecUpdateResult *ret_result)
{
	struct sim_exec *e = sim_obj_get(he, SIM_EXEC);
	struct sim_graph *g = sim_obj_get(hg, SIM_GRAPH);
	struct sim_graph *copy;

	*ret_node = NULL;
	*ret_result = CU_GRAPH_EXEC_UPDATE_ERROR;
	if (e == NULL || g == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (g == e->graph) {
		*ret_result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
		return CUDA_SUCCESS;
	}
	if (g->has_memory || e->graph->has_memory) {
		*ret_result = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	*ret_node = compare(e->graph, g, ret_result);
	if (*ret_result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	pthread_mutex_lock(&sim_lock);
	copy = sim_graph_clone(g);
	if (copy != NULL) {
		let_go(e);
		e->graph = copy;
		copy->instances++;
	}
	pthread_mutex_unlock(&sim_lock);
	return copy != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult update_v1(CUgraphExec e, CUgraph g, CUgraphNode *node,
			  CUgraphExecUpdateResult *result)
{
	CUgraphNode n = NULL;
	CUgraphExecUpdateResult how = CU_GRAPH_EXEC_UPDATE_ERROR;
	CUresult r = update(e, g, &n, &how);

	if (node != NULL) {
		*node = n;
	}
	if (result != NULL) {
		*result = how;
	}
	return r;
}

static CUresult update_v2(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
	CUgraphNode n = NULL;
	CUgraphExecUpdateResult how = CU_GRAPH_EXEC_UPDATE_ERROR;
	CUresult r = update(e, g, &n, &how);

	if (info != NULL) {
		*info = (CUgraphExecUpdateResultInfo){.result = how, .errorNode = n};
	}
	return r;
}

static CUresult exec_flags(CUgraphExec h, cuuint64_t *flags)
{
	struct sim_exec *e = sim_obj_get(h, SIM_EXEC);

	if (e == NULL || flags == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*flags = e->flags;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphInstantiate,
	(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size),
	(graph, node != NULL, log != NULL, size), (*exec), instantiate(exec, graph, 0))
SIM_API(cuGraphInstantiate_v2,
	(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size),
	(graph, node != NULL, log != NULL, size), (*exec), instantiate(exec, graph, 0))
SIM_API(cuGraphInstantiateWithFlags,
	(CUgraphExec *exec, CUgraph graph, unsigned long long flags), (graph, flags), (*exec),
	instantiate(exec, graph, flags))
SIM_API_PTSZ(cuGraphInstantiateWithParams,
	     (CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	     (graph), (*exec), instantiate_params(exec, graph, params))
SIM_API(cuGraphExecDestroy, (CUgraphExec exec), (exec), (0), exec_destroy(exec))
SIM_API_PTSZ(cuGraphLaunch, (CUgraphExec exec, CUstream s), (exec, s), (0),
	     graph_launch(exec, ST(s)))
SIM_API_PTSZ(cuGraphUpload, (CUgraphExec exec, CUstream s), (exec, s), (0), upload(exec, ST(s)))
SIM_API(cuGraphExecUpdate,
	(CUgraphExec exec, CUgraph graph, CUgraphNode *node, CUgraphExecUpdateResult *result),
	(exec, graph), (0), update_v1(exec, graph, node, result))
SIM_API(cuGraphExecUpdate_v2,
	(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info), (exec, graph), (0),
	update_v2(exec, graph, info))
SIM_API(cuGraphExecGetFlags, (CUgraphExec exec, cuuint64_t *flags), (exec), (*flags),
	exec_flags(exec, flags))
