/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of graphs. A node's address is fixed when the node is made: its block is planned, in the
 * arena but charged nowhere, until a launch makes it live.
 */
#include <string.h>

#include "internal.h"
#include "graph.h"

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

/* The node's block is given back, or left to the program where it is live. */
void sim_node_forget(struct sim_node *n)
{
	struct sim_arena *a = n->arena;
	uint32_t i;

	pthread_mutex_lock(&a->lock);
	i = sim_arena_at(a, n->dptr);
	if (i != 0 && a->blocks[i].owner == n) {
		a->blocks[i].owner = NULL;
		if (a->blocks[i].state == SIM_PLANNED) {
			sim_arena_give(a, i);
		}
	}
	pthread_mutex_unlock(&a->lock);
}

/* Does a graph's block begin here, planned or live? */
bool sim_graph_is_block(CUdeviceptr p, struct sim_arena **ret)
{
	struct sim_arena *a = sim_arena_of(p);
	bool is = false;
	uint32_t i;

	if (a != NULL) {
		pthread_mutex_lock(&a->lock);
		i = sim_arena_at(a, p);
		is = i != 0 && a->blocks[i].origin == SIM_GRAPHED;
		pthread_mutex_unlock(&a->lock);
	}
	*ret = a;
	return is;
}

bool sim_graph_frees(const struct sim_graph *g, CUdeviceptr p)
{
	for (const struct sim_node *n = g->first; n != NULL; n = n->next) {
		if ((n->type == CU_GRAPH_NODE_TYPE_MEM_FREE && n->dptr == p) ||
		    (n->child != NULL && sim_graph_frees(n->child, p))) {
			return true;
		}
	}
	return false;
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

/* Before a launch: what an earlier one left unfreed is an error, or is freed (C-86). */
CUresult sim_graph_prepare(const struct sim_graph *g, bool auto_free)
{
	CUresult r = CUDA_SUCCESS;
	uint32_t i;

	for (const struct sim_node *n = g->first; n != NULL && r == CUDA_SUCCESS; n = n->next) {
		if (n->child != NULL) {
			r = sim_graph_prepare(n->child, auto_free);
		} else if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
			pthread_mutex_lock(&n->arena->lock);
			i = sim_arena_at(n->arena, n->dptr);
			if (n->arena->blocks[i].state == SIM_LIVE) {
				r = auto_free ? sim_graph_free_block(n->arena, i)
					      : CUDA_ERROR_INVALID_VALUE;
			}
			pthread_mutex_unlock(&n->arena->lock);
		}
	}
	return r;
}

/* A launch failed half way: what it has made live is taken back. */
void sim_graph_undo(const struct sim_graph *g)
{
	sim_graph_prepare(g, true);
}

/* Physical memory comes with the launch: what graphs have held before is used first. */
CUresult sim_launch_alloc(struct sim_node *n)
{
	struct sim_arena *a = n->arena;
	CUresult r = CUDA_SUCCESS;
	struct sim_device *d;
	uint32_t i;

	pthread_mutex_lock(&a->lock);
	i = sim_arena_at(a, n->dptr);
	d = &sim_devices[a->blocks[i].dev];
	if (d->graph_used + n->size > d->graph_reserved) {
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

CUresult sim_launch_free(struct sim_node *n)
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

static CUresult alloc_params(CUgraphNode h, CUDA_MEM_ALLOC_NODE_PARAMS *ret)
{
	struct sim_node *n = sim_obj_get(h, SIM_NODE);

	if (n == NULL || ret == NULL || n->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	memset(ret, 0, sizeof(*ret));
	ret->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	ret->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	for (int i = 0; i < sim_n_devices; i++) {
		if (n->arena == &sim_devices[i].arena) {
			ret->poolProps.location.id = i;
		}
	}
	ret->bytesize = n->size;
	ret->dptr = n->dptr;
	return CUDA_SUCCESS;
}

static CUresult free_params(CUgraphNode h, CUdeviceptr *ret)
{
	struct sim_node *n = sim_obj_get(h, SIM_NODE);

	if (n == NULL || ret == NULL || n->type != CU_GRAPH_NODE_TYPE_MEM_FREE) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ret = n->dptr;
	return CUDA_SUCCESS;
}

static CUresult trim(CUdevice dev)
{
	struct sim_device *d;
	CUresult r = sim_device_get(dev, &d);

	if (r == CUDA_SUCCESS) {
		pthread_mutex_lock(&d->arena.lock);
		d->graph_reserved = d->graph_used;
		atomic_store(&d->used[CUWEIR_SIM_GRAPH], d->graph_reserved);
		pthread_mutex_unlock(&d->arena.lock);
	}
	return r;
}

static CUresult attribute_get(CUdevice dev, CUgraphMem_attribute attr, void *value)
{
	struct sim_device *d;
	CUresult r = sim_device_get(dev, &d);
	cuuint64_t *out = value;

	if (r == CUDA_SUCCESS && (value == NULL || (unsigned int)attr > 3)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&d->arena.lock);
	switch (attr) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		*out = d->graph_used;
		break;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		*out = d->graph_used_high;
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		*out = d->graph_reserved;
		break;
	default:
		*out = d->graph_reserved_high;
	}
	pthread_mutex_unlock(&d->arena.lock);
	return r;
}

/* "Only the high marks can be set, and only to 0." */
static CUresult attribute_set(CUdevice dev, CUgraphMem_attribute attr, const void *value)
{
	struct sim_device *d;
	CUresult r = sim_device_get(dev, &d);

	if (r == CUDA_SUCCESS && (value == NULL || *(const cuuint64_t *)value != 0 ||
				  (attr != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH &&
				   attr != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&d->arena.lock);
	if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
		d->graph_used_high = d->graph_used;
	} else {
		d->graph_reserved_high = d->graph_reserved;
	}
	pthread_mutex_unlock(&d->arena.lock);
	return r;
}

SIM_API(cuGraphMemAllocNodeGetParams, (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params),
	(node), (0), alloc_params(node, params))
SIM_API(cuGraphMemFreeNodeGetParams, (CUgraphNode node, CUdeviceptr *dptr), (node), (*dptr),
	free_params(node, dptr))
SIM_API(cuDeviceGraphMemTrim, (CUdevice dev), (dev), (0), trim(dev))
SIM_API(cuDeviceGetGraphMemAttribute, (CUdevice dev, CUgraphMem_attribute attr, void *value),
	(dev, attr), (0), attribute_get(dev, attr, value))
SIM_API(cuDeviceSetGraphMemAttribute, (CUdevice dev, CUgraphMem_attribute attr, void *value),
	(dev, attr), (0), attribute_set(dev, attr, value))
