/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver door for graphs: what their nodes plan, which takes nothing yet; driver_graph_launch.c
 * has what a launch makes live. Cloning and removing nodes the driver refuses for graphs with
 * memory nodes (C-87), so they are not followed.
 */
#include "bodies.h"
#include "driver_door.h"
#include "graph_books.h"
#include "wants.h"

typedef CUresult (*add_alloc_fn)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
				 CUDA_MEM_ALLOC_NODE_PARAMS *);
typedef CUresult (*add_free_fn)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr);
typedef CUresult (*add_node_fn)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
				CUgraphNodeParams *);
typedef CUresult (*add_node_v2_fn)(CUgraphNode *, CUgraph, const CUgraphNode *,
				   const CUgraphEdgeData *, size_t, CUgraphNodeParams *);
typedef CUresult (*graph_fn)(CUgraph);
typedef CUresult (*exec_fn)(CUgraphExec);
typedef CUresult (*instantiate_fn)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t);
typedef CUresult (*instantiate_flags_fn)(CUgraphExec *, CUgraph, unsigned long long);
typedef CUresult (*instantiate_params_fn)(CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *);
typedef CUresult (*update_v1_fn)(CUgraphExec, CUgraph, CUgraphNode *, CUgraphExecUpdateResult *);
typedef CUresult (*update_fn)(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *);

/* CUgraphNodeParams as far as it is read here; toolkits before 12.2 do not declare it. */
struct node_params {
	int type;
	int reserved[3];
	union {
		CUDA_MEM_ALLOC_NODE_PARAMS alloc;
		CUdeviceptr freed;
		struct {
			CUgraph graph;
			int ownership;
		} child;
	} u;
};

enum { OWNERSHIP_MOVE = 1 };

/* ---- nodes ------------------------------------------------------------------------------ */

static void plan(CUgraph graph, CUgraphNode node, const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	const CUmemLocation *location = &params->poolProps.location;
	bool on_device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
	struct cw_graph_step step = {
		.pointer = params->dptr,
		.bytes = params->bytesize,
		.device = on_device ? location->id : CW_TOTAL_NO_DEVICE,
		.kind = on_device ? CUWEIR_KIND_DEVICE : CUWEIR_KIND_HOST,
	};

	cw_graph_planned(graph, node, &step);
}

CUresult cw_graph_add_mem_alloc_node(enum cw_hook_id hook, const void *site, CUgraphNode *node,
				     CUgraph graph, const CUgraphNode *deps, size_t count,
				     CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	add_alloc_fn real = (add_alloc_fn)cw_real_of(hook);
	CUresult result;
	bool follow;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	follow = cw_driver_door_open();
	result = real(node, graph, deps, count, params);
	if (result == CUDA_SUCCESS && follow) {
		plan(graph, *node, params);
	}
	return result;
}

CUresult cw_graph_add_mem_free_node(enum cw_hook_id hook, const void *site, CUgraphNode *node,
				    CUgraph graph, const CUgraphNode *deps, size_t count,
				    CUdeviceptr dptr)
{
	add_free_fn real = (add_free_fn)cw_real_of(hook);
	CUresult result;
	bool follow;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	follow = cw_driver_door_open();
	result = real(node, graph, deps, count, dptr);
	if (result == CUDA_SUCCESS && follow) {
		cw_graph_freed(graph, *node, dptr);
	}
	return result;
}

static void heard_node(CUgraph graph, CUgraphNode node, const CUgraphNodeParams *added)
{
	const struct node_params *params = (const struct node_params *)(const void *)added;

	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		plan(graph, node, &params->u.alloc);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		cw_graph_freed(graph, node, params->u.freed);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		/* A child that is cloned has no memory nodes. */
		if (params->u.child.ownership == OWNERSHIP_MOVE) {
			cw_graph_moved(graph, params->u.child.graph);
		}
		break;
	default:
		break;
	}
}

CUresult cw_graph_add_node_v1(enum cw_hook_id hook, const void *site, CUgraphNode *node,
			      CUgraph graph, const CUgraphNode *deps, size_t count,
			      CUgraphNodeParams *params)
{
	add_node_fn real = (add_node_fn)cw_real_of(hook);
	CUresult result;
	bool follow;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	follow = cw_driver_door_open();
	result = real(node, graph, deps, count, params);
	if (result == CUDA_SUCCESS && follow) {
		heard_node(graph, *node, params);
	}
	return result;
}

CUresult cw_graph_add_node(enum cw_hook_id hook, const void *site, CUgraphNode *node,
			   CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *data,
			   size_t count, CUgraphNodeParams *params)
{
	add_node_v2_fn real = (add_node_v2_fn)cw_real_of(hook);
	CUresult result;
	bool follow;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	follow = cw_driver_door_open();
	result = real(node, graph, deps, data, count, params);
	if (result == CUDA_SUCCESS && follow) {
		heard_node(graph, *node, params);
	}
	return result;
}

CUresult cw_graph_destroy(enum cw_hook_id hook, const void *site, CUgraph graph)
{
	graph_fn real = (graph_fn)cw_real_of(hook);
	struct cw_graph_end end;
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	cw_graph_end_begin(&end, graph);
	result = real(graph);
	cw_graph_end_finish(&end, graph, result == CUDA_SUCCESS);
	return result;
}

/* ---- executable graphs ------------------------------------------------------------------ */

static CUresult heard_exec(CUresult result, const CUgraphExec *exec, CUgraph graph,
			   unsigned long long flags)
{
	if (result == CUDA_SUCCESS && exec != NULL && cw_following()) {
		cw_graph_instantiated(
			*exec, graph,
			(flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0);
	}
	return result;
}

CUresult cw_graph_instantiate(enum cw_hook_id hook, const void *site, CUgraphExec *exec,
			      CUgraph graph, CUgraphNode *error_node, char *log, size_t size)
{
	instantiate_fn real = (instantiate_fn)cw_real_of(hook);

	(void)site;
	return real != NULL
		       ? heard_exec(cw_want_note(hook, real(exec, graph, error_node, log,
								    size)),
				    exec, graph, 0)
		       : CUDA_ERROR_NOT_FOUND;
}

CUresult cw_graph_instantiate_with_flags(enum cw_hook_id hook, const void *site,
					 CUgraphExec *exec, CUgraph graph,
					 unsigned long long flags)
{
	instantiate_flags_fn real = (instantiate_flags_fn)cw_real_of(hook);

	(void)site;
	return real != NULL ? heard_exec(cw_want_note(hook, real(exec, graph, flags)), exec,
					  graph, flags)
			    : CUDA_ERROR_NOT_FOUND;
}

/* The flags come first in the parameters, which toolkits before 12.0 do not declare. */
CUresult cw_graph_instantiate_with_params(enum cw_hook_id hook, const void *site,
					  CUgraphExec *exec, CUgraph graph,
					  CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	instantiate_params_fn real = (instantiate_params_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = cw_want_note(hook, real(exec, graph, params));
	if (result != CUDA_SUCCESS || params == NULL) {
		return result;
	}
	return heard_exec(result, exec, graph, *(const cuuint64_t *)(const void *)params);
}

static CUresult heard_update(CUresult result, CUgraphExec exec, CUgraph graph)
{
	if (result == CUDA_SUCCESS && cw_following()) {
		cw_graph_exec_updated(exec, graph);
	}
	return result;
}

CUresult cw_graph_exec_update_v1(enum cw_hook_id hook, const void *site, CUgraphExec exec,
				 CUgraph graph, CUgraphNode *error_node,
				 CUgraphExecUpdateResult *outcome)
{
	update_v1_fn real = (update_v1_fn)cw_real_of(hook);

	(void)site;
	return real != NULL ? heard_update(real(exec, graph, error_node, outcome), exec, graph)
			    : CUDA_ERROR_NOT_FOUND;
}

CUresult cw_graph_exec_update(enum cw_hook_id hook, const void *site, CUgraphExec exec,
			      CUgraph graph, CUgraphExecUpdateResultInfo *outcome)
{
	update_fn real = (update_fn)cw_real_of(hook);

	(void)site;
	return real != NULL ? heard_update(real(exec, graph, outcome), exec, graph)
			    : CUDA_ERROR_NOT_FOUND;
}

/* What it has launched and nobody has freed stays the program's (C-89). */
CUresult cw_graph_exec_destroy(enum cw_hook_id hook, const void *site, CUgraphExec exec)
{
	exec_fn real = (exec_fn)cw_real_of(hook);
	struct cw_graph_end end;
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	cw_graph_exec_end_begin(&end, exec);
	result = real(exec);
	cw_graph_exec_end_finish(&end, exec, result == CUDA_SUCCESS);
	return result;
}
