/* SPDX-License-Identifier: Apache-2.0 */
/* Adding nodes. Kernel and event nodes run nothing; conditional ones are not there. */
#include "internal.h"
#include "array.h"
#include "graph.h"

/* What every way of adding a node gives, beside the node's own parameters. */
struct place {
	CUgraphNode *ret;
	CUgraph graph;
	const CUgraphNode *deps;
	size_t n_deps;
};

#define PLACE ((struct place){node, graph, deps, n})

static CUresult add(const struct place *at, CUgraphNodeType type, struct sim_node **ret)
{
	struct sim_graph *g = sim_obj_get(at->graph, SIM_GRAPH);
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sim_node *n;

	if (g == NULL || at->ret == NULL) {
		return r;
	}
	pthread_mutex_lock(&sim_lock);
	n = sim_node_new(g, type);
	if (n == NULL) {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	} else if (!sim_node_depends(n, at->deps, at->n_deps)) {
		sim_node_unlink(n);
		sim_node_drop(n);
	} else {
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sim_lock);
	if (r == CUDA_SUCCESS) {
		*ret = n;
		*at->ret = (CUgraphNode)n;
	}
	return r;
}

static CUresult add_plain(struct place at, CUgraphNodeType type)
{
	struct sim_node *n;

	return add(&at, type, &n);
}

static void take_back(struct sim_node *n)
{
	pthread_mutex_lock(&sim_lock);
	sim_node_unlink(n);
	sim_node_drop(n);
	pthread_mutex_unlock(&sim_lock);
}

static CUresult add_alloc(struct place at, const CUmemPoolProps *props, size_t bytes,
			  CUdeviceptr *ret)
{
	struct sim_device *d;
	struct sim_node *n;
	CUresult r;

	if (bytes == 0 || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    props->handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
	    props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = sim_device_get(props->location.id, &d);
	if (r == CUDA_SUCCESS) {
		r = add(&at, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &n);
	}
	if (r == CUDA_SUCCESS) {
		r = sim_node_alloc(n, d, bytes);
		if (r != CUDA_SUCCESS) {
			take_back(n);
		} else {
			*ret = n->dptr;
		}
	}
	return r;
}

static CUresult add_alloc_node(struct place at, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	return p == NULL ? CUDA_ERROR_INVALID_VALUE
			 : add_alloc(at, &p->poolProps, p->bytesize, &p->dptr);
}

static CUresult add_free(struct place at, CUdeviceptr p)
{
	struct sim_graph *g = sim_obj_get(at.graph, SIM_GRAPH);
	struct sim_arena *a;
	struct sim_node *n;
	CUresult r;

	if (g == NULL || !sim_graph_is_block(p, &a) || sim_graph_frees(g, p)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = add(&at, CU_GRAPH_NODE_TYPE_MEM_FREE, &n);
	if (r == CUDA_SUCCESS) {
		n->arena = a;
		n->dptr = p;
		g->has_memory = true;
	}
	return r;
}

static CUresult add_memcpy(struct place at, const CUDA_MEMCPY3D *c)
{
	struct sim_box b = {.w = 0};
	struct sim_node *n;
	CUresult r = sim_box_3d(c, &b);

	if (r == CUDA_SUCCESS) {
		r = add(&at, CU_GRAPH_NODE_TYPE_MEMCPY, &n);
	}
	if (r == CUDA_SUCCESS) {
		n->box = b;
	}
	return r;
}

static CUresult add_memset(struct place at, const CUDA_MEMSET_NODE_PARAMS *p)
{
	struct sim_node *n;
	CUresult r;

	if (p == NULL || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = add(&at, CU_GRAPH_NODE_TYPE_MEMSET, &n);
	if (r == CUDA_SUCCESS) {
		n->dptr = p->dst;
		n->value = p->value;
		n->width = p->elementSize;
		n->size = p->width;
		n->box.h = p->height;
		n->box.dst.pitch = p->pitch;
	}
	return r;
}

static CUresult add_host(struct place at, CUhostFn fn, void *data)
{
	struct sim_node *n;
	CUresult r = fn == NULL ? CUDA_ERROR_INVALID_VALUE
				: add(&at, CU_GRAPH_NODE_TYPE_HOST, &n);

	if (r == CUDA_SUCCESS) {
		n->fn = fn;
		n->data = data;
	}
	return r;
}

static CUresult add_host_node(struct place at, const CUDA_HOST_NODE_PARAMS *p)
{
	return p == NULL ? CUDA_ERROR_INVALID_VALUE : add_host(at, p->fn, p->userData);
}

/* By default a copy, which cannot hold memory nodes; moved, the graph itself. */
static CUresult add_child(struct place at, CUgraph h, bool move)
{
	struct sim_graph *g = sim_obj_get(h, SIM_GRAPH);
	struct sim_node *n;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (g == NULL || h == at.graph || g->owner != NULL || (!move && g->has_memory) ||
	    (move && g->instances > 0)) {
		return r;
	}
	r = add(&at, CU_GRAPH_NODE_TYPE_GRAPH, &n);
	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&sim_lock);
	n->child = move ? g : sim_graph_clone(g);
	if (n->child != NULL) {
		n->child->owner = n;
		n->graph->has_memory = n->graph->has_memory || g->has_memory;
	}
	pthread_mutex_unlock(&sim_lock);
	if (n->child == NULL) {
		take_back(n);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return r;
}

static CUresult add_any(struct place at, CUgraphNodeParams *p)
{
	CUDA_MEMSET_NODE_PARAMS set;

	if (p == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return add_alloc(at, &p->alloc.poolProps, p->alloc.bytesize, &p->alloc.dptr);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return add_free(at, p->free.dptr);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return add_child(at, p->graph.graph,
				 p->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return add_memcpy(at, &p->memcpy.copyParams);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		set = (CUDA_MEMSET_NODE_PARAMS){p->memset.dst,	       p->memset.pitch,
						p->memset.value,       p->memset.elementSize,
						p->memset.width,       p->memset.height};
		return add_memset(at, &set);
	case CU_GRAPH_NODE_TYPE_HOST:
		return add_host(at, p->host.fn, p->host.userData);
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_KERNEL:
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return add_plain(at, p->type);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

#define NODE_ARGS CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t n

SIM_API(cuGraphAddEmptyNode, (NODE_ARGS), (graph, n), (*node),
	add_plain(PLACE, CU_GRAPH_NODE_TYPE_EMPTY))
SIM_API(cuGraphAddMemAllocNode, (NODE_ARGS, CUDA_MEM_ALLOC_NODE_PARAMS *params), (graph, n),
	(*node, params->dptr), add_alloc_node(PLACE, params))
SIM_API(cuGraphAddMemFreeNode, (NODE_ARGS, CUdeviceptr dptr), (graph, n, dptr), (*node),
	add_free(PLACE, dptr))
SIM_API(cuGraphAddMemcpyNode, (NODE_ARGS, const CUDA_MEMCPY3D *c, CUcontext ctx), (graph, n, ctx),
	(*node), add_memcpy(PLACE, c))
SIM_API(cuGraphAddMemsetNode, (NODE_ARGS, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx),
	(graph, n, ctx), (*node), add_memset(PLACE, params))
SIM_API(cuGraphAddHostNode, (NODE_ARGS, const CUDA_HOST_NODE_PARAMS *params), (graph, n), (*node),
	add_host_node(PLACE, params))
SIM_API(cuGraphAddKernelNode, (NODE_ARGS, const CUDA_KERNEL_NODE_PARAMS_v1 *params),
	(graph, n, params != NULL), (*node), add_plain(PLACE, CU_GRAPH_NODE_TYPE_KERNEL))
SIM_API(cuGraphAddKernelNode_v2, (NODE_ARGS, const CUDA_KERNEL_NODE_PARAMS *params),
	(graph, n, params != NULL), (*node), add_plain(PLACE, CU_GRAPH_NODE_TYPE_KERNEL))
SIM_API(cuGraphAddEventRecordNode, (NODE_ARGS, CUevent event), (graph, n, event), (*node),
	add_plain(PLACE, CU_GRAPH_NODE_TYPE_EVENT_RECORD))
SIM_API(cuGraphAddEventWaitNode, (NODE_ARGS, CUevent event), (graph, n, event), (*node),
	add_plain(PLACE, CU_GRAPH_NODE_TYPE_WAIT_EVENT))
SIM_API(cuGraphAddChildGraphNode, (NODE_ARGS, CUgraph child), (graph, n, child), (*node),
	add_child(PLACE, child, false))
SIM_API(cuGraphAddNode, (NODE_ARGS, CUgraphNodeParams *params), (graph, n), (*node),
	add_any(PLACE, params))
SIM_API(cuGraphAddNode_v2,
	(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
	 size_t n, CUgraphNodeParams *params),
	(graph, edges != NULL, n), (*node), add_any(PLACE, params))
