/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: nodes in the order of their making, which is an order that satisfies their dependencies.
 * A memory node's address is fixed when the node is made: its block is planned, in the arena but
 * charged nowhere, until a launch makes it live.
 */
#include <string.h>

#include "internal.h"

struct sim_graph *sim_graph_new(void)
{
	return sim_obj_new(SIM_GRAPH);
}

struct sim_node *sim_node_new(struct sim_graph *g, CUgraphNodeType type)
{
	struct sim_node *n = sim_obj_new(SIM_NODE);

	if (n != NULL) {
		n->graph = g;
		n->type = type;
		n->prev = g->last;
		if (g->last != NULL) {
			g->last->next = n;
		} else {
			g->first = n;
		}
		g->last = n;
		g->n_nodes++;
	}
	return n;
}

CUresult sim_node_alloc(struct sim_node *n, struct sim_device *d, uint64_t size)
{
	struct sim_arena *a = &d->arena;
	struct sim_block *b;
	uint32_t i = 0;

	if (sim_device_map(d)) {
		pthread_mutex_lock(&a->lock);
		i = sim_arena_take(a, size);
		if (i != 0) {
			b = &a->blocks[i];
			b->state = SIM_PLANNED;
			b->origin = SIM_GRAPHED;
			b->kind = CUWEIR_SIM_DEVICE;
			b->dev = (uint8_t)d->ordinal;
			b->owner = n;
			n->dptr = sim_block_addr(a, i);
			n->arena = a;
			n->size = size;
		}
		pthread_mutex_unlock(&a->lock);
	}
	n->graph->has_memory = true;
	return i != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A launched graph's memory is freed: planned again, or gone where its graph is gone. The arena's
 * lock is held. */
CUresult sim_graph_free_block(struct sim_arena *a, uint32_t i)
{
	struct sim_block *b = &a->blocks[i];
	struct sim_device *d = &sim_devices[b->dev];

	if (b->state != SIM_LIVE) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	sim_uncharge(d, CUWEIR_SIM_DEVICE, b->size);
	d->graph_used -= b->size;
	if (b->owner != NULL) {
		b->state = SIM_PLANNED;
	} else {
		sim_arena_give(a, i);
	}
	return CUDA_SUCCESS;
}

/* Physical memory comes with the launch: what graphs have held before is used first. */
static CUresult launch_alloc(struct sim_node *n, bool auto_free)
{
	struct sim_arena *a = n->arena;
	CUresult r = CUDA_SUCCESS;
	struct sim_device *d;
	uint32_t i;

	pthread_mutex_lock(&a->lock);
	i = sim_arena_at(a, n->dptr);
	d = &sim_devices[a->blocks[i].dev];
	if (a->blocks[i].state == SIM_LIVE) {
		r = auto_free ? sim_graph_free_block(a, i) : CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS && d->graph_used + n->size > d->graph_reserved) {
		uint64_t more = d->graph_used + n->size - d->graph_reserved;

		if (more > sim_device_free(d)) {
			r = CUDA_ERROR_OUT_OF_MEMORY;
		} else {
			d->graph_reserved += more;
			atomic_store(&d->used[CUWEIR_SIM_GRAPH], d->graph_reserved);
		}
	}
	if (r == CUDA_SUCCESS) {
		d->graph_used += n->size;
		if (d->graph_used > d->graph_used_high) {
			d->graph_used_high = d->graph_used;
		}
		if (d->graph_reserved > d->graph_reserved_high) {
			d->graph_reserved_high = d->graph_reserved;
		}
		sim_block_live(a, i, n->size, d);
	}
	pthread_mutex_unlock(&a->lock);
	return r;
}

static CUresult launch_free(struct sim_node *n)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	uint32_t i;

	pthread_mutex_lock(&n->arena->lock);
	i = sim_arena_at(n->arena, n->dptr);
	if (i != 0) {
		r = sim_graph_free_block(n->arena, i);
	}
	pthread_mutex_unlock(&n->arena->lock);
	return r;
}

static CUresult launch_set(const struct sim_node *n)
{
	char *p = (char *)(uintptr_t)n->dptr;

	for (uint64_t i = 0; i < n->size; i++) {
		memcpy(p + i * n->width, &n->value, n->width);
	}
	return CUDA_SUCCESS;
}

static CUresult launch(struct sim_graph *g, bool auto_free)
{
	CUresult r = CUDA_SUCCESS;

	for (struct sim_node *n = g->first; n != NULL && r == CUDA_SUCCESS; n = n->next) {
		switch (n->type) {
		case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
			r = launch_alloc(n, auto_free);
			break;
		case CU_GRAPH_NODE_TYPE_MEM_FREE:
			r = launch_free(n);
			break;
		case CU_GRAPH_NODE_TYPE_MEMSET:
			r = launch_set(n);
			break;
		case CU_GRAPH_NODE_TYPE_MEMCPY:
			memmove((void *)(uintptr_t)n->dptr, (void *)(uintptr_t)n->src, n->size);
			break;
		case CU_GRAPH_NODE_TYPE_HOST:
			n->fn(n->data);
			break;
		case CU_GRAPH_NODE_TYPE_GRAPH:
			r = n->child != NULL ? launch(n->child, auto_free) : CUDA_SUCCESS;
			break;
		default:
			break;
		}
	}
	return r;
}

/* The node's block is given back, or left to the program where it is live. */
static void drop_node(struct sim_node *n)
{
	uint32_t i;

	if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && n->arena != NULL) {
		pthread_mutex_lock(&n->arena->lock);
		i = sim_arena_at(n->arena, n->dptr);
		if (i != 0 && n->arena->blocks[i].owner == n) {
			n->arena->blocks[i].owner = NULL;
			if (n->arena->blocks[i].state == SIM_PLANNED) {
				sim_arena_give(n->arena, i);
			}
		}
		pthread_mutex_unlock(&n->arena->lock);
	}
	if (n->child != NULL) {
		sim_graph_drop(n->child);
	}
	sim_obj_free(&n->obj);
}

/* The handle dies; the nodes live on while an executable graph needs them. sim_lock is held. */
void sim_graph_drop(struct sim_graph *g)
{
	g->destroyed = true;
	atomic_store(&g->obj.type, 0);
	if (g->instances > 0) {
		return;
	}
	while (g->first != NULL) {
		struct sim_node *n = g->first;

		g->first = n->next;
		drop_node(n);
	}
	sim_obj_free(&g->obj);
}

static CUresult create(CUgraph *ret, unsigned int flags)
{
	struct sim_graph *g;

	if (ret == NULL || flags != 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	g = sim_graph_new();
	if (g == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUgraph)g;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUgraph h)
{
	struct sim_graph *g = sim_obj_get(h, SIM_GRAPH);

	if (g == NULL || g->owner != NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_lock);
	sim_graph_drop(g);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *ret, CUgraph h, unsigned long long flags)
{
	struct sim_graph *g = sim_obj_get(h, SIM_GRAPH);
	struct sim_exec *e;

	if (ret == NULL || g == NULL || flags > 15) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (g->has_memory && g->instances > 0) {
		return CUDA_ERROR_NOT_SUPPORTED; /* GPU?: which code (C-87) */
	}
	e = sim_obj_new(SIM_EXEC);
	if (e == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&sim_lock);
	e->graph = g;
	e->flags = flags;
	g->instances++;
	pthread_mutex_unlock(&sim_lock);
	*ret = (CUgraphExec)e;
	return CUDA_SUCCESS;
}

static CUresult exec_destroy(CUgraphExec h)
{
	struct sim_exec *e = sim_obj_get(h, SIM_EXEC);

	if (e == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_lock);
	e->graph->instances--;
	if (e->graph->destroyed && e->graph->instances == 0) {
		sim_graph_drop(e->graph);
	}
	sim_obj_free(&e->obj);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

static CUresult graph_launch(CUgraphExec h, CUstream hs, bool per_thread)
{
	struct sim_exec *e = sim_obj_get(h, SIM_EXEC);
	struct sim_stream *s;
	CUresult r = sim_stream_use(hs, per_thread, &s);

	if (r == CUDA_SUCCESS && e == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (sim_capture_of(s, &r) != NULL) {
		sim_capture_node(s, CU_GRAPH_NODE_TYPE_GRAPH);
		return CUDA_SUCCESS;
	}
	return r == CUDA_SUCCESS
		       ? launch(e->graph,
				(e->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0)
		       : r;
}

static CUresult get_nodes(CUgraph h, CUgraphNode *nodes, size_t *n)
{
	struct sim_graph *g = sim_obj_get(h, SIM_GRAPH);
	size_t i = 0;

	if (g == NULL || n == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (struct sim_node *k = g->first; nodes != NULL && k != NULL && i < *n; k = k->next) {
		nodes[i++] = (CUgraphNode)k;
	}
	*n = nodes != NULL ? i : g->n_nodes;
	return CUDA_SUCCESS;
}

static CUresult node_type(CUgraphNode h, CUgraphNodeType *type)
{
	struct sim_node *n = sim_obj_get(h, SIM_NODE);

	if (n == NULL || type == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*type = n->type;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphCreate, (CUgraph *graph, unsigned int flags), (flags), (*graph),
	create(graph, flags))
SIM_API(cuGraphDestroy, (CUgraph graph), (graph), (0), destroy(graph))
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
	     (graph), (*exec), instantiate(exec, graph, params->flags))
SIM_API(cuGraphExecDestroy, (CUgraphExec exec), (exec), (0), exec_destroy(exec))
SIM_API_PTSZ(cuGraphLaunch, (CUgraphExec exec, CUstream s), (exec, s), (0),
	     graph_launch(exec, ST(s)))
SIM_API(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *n), (graph), (*n),
	get_nodes(graph, nodes, n))
SIM_API(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *type), (node), (*type),
	node_type(node, type))
