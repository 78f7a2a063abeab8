/* SPDX-License-Identifier: Apache-2.0 */
/* The stream-ordered allocator's functions: what they refuse, and which pool they mean. */
#include "internal.h"
#include "graph.h"
#include "pool.h"

static struct sim_pool *current(struct sim_device *d)
{
	struct sim_pool *p = atomic_load_explicit(&d->pool, memory_order_acquire);

	return p != NULL ? p : sim_pool_default(d);
}

static CUresult find(CUmemoryPool h, struct sim_pool **ret)
{
	*ret = sim_obj_get(h, SIM_POOL);
	return *ret != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* In a capturing stream the allocation becomes a node with a fixed address and no bytes (C-80). */
static CUresult capture_alloc(CUdeviceptr *dptr, size_t size, struct sim_pool *p,
			      struct sim_stream *s)
{
	struct sim_node *n = sim_capture_node(s, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	CUresult r = n == NULL ? CUDA_ERROR_OUT_OF_MEMORY : sim_node_alloc(n, p->dev, size);

	if (r == CUDA_SUCCESS) {
		*dptr = n->dptr;
	}
	return r;
}

/* GPU?: size 0; refused here (C-06). */
static CUresult alloc(CUdeviceptr *dptr, size_t size, CUmemoryPool h, bool from_pool,
		      CUstream hs, bool per_thread)
{
	struct sim_pool *p = NULL;
	struct sim_stream *s;
	CUresult r = sim_stream_use(hs, per_thread, &s);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (dptr == NULL || size == 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (from_pool) {
		r = find(h, &p);
		if (r != CUDA_SUCCESS || p->imported) {
			return CUDA_ERROR_INVALID_VALUE;
		}
	} else {
		p = current(s->ctx->dev);
		if (p == NULL) {
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (sim_capture_of(s, &r) != NULL) {
		return capture_alloc(dptr, size, p, s);
	}
	return r == CUDA_SUCCESS ? sim_pool_alloc(dptr, size, p, s) : r;
}

/* A captured free takes memory that the same capture, or another graph, allocates (C-81). */
static CUresult capture_free(CUdeviceptr p, struct sim_stream *s)
{
	const struct sim_capture *c = atomic_load(&s->capture);
	struct sim_arena *a;
	struct sim_node *n;

	if (!sim_graph_is_block(p, &a) || (c != NULL && sim_graph_frees(c->graph, p))) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	n = sim_capture_node(s, CU_GRAPH_NODE_TYPE_MEM_FREE);
	if (n == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	n->arena = a;
	n->dptr = p;
	n->graph->has_memory = true;
	return CUDA_SUCCESS;
}

/* GPU?: a NULL pointer; refused like any unknown one (C-12). */
static CUresult free_async(CUdeviceptr p, CUstream hs, bool per_thread)
{
	struct sim_stream *s;
	CUresult r = sim_stream_use(hs, per_thread, &s);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (sim_capture_of(s, &r) != NULL) {
		return capture_free(p, s);
	}
	return r == CUDA_SUCCESS ? sim_free_block(p, true, s) : r;
}

static bool props_ok(const CUmemPoolProps *p)
{
	if (p->allocType != CU_MEM_ALLOCATION_TYPE_PINNED &&
	    p->allocType != CU_MEM_ALLOCATION_TYPE_MANAGED) {
		return false;
	}
	switch (p->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return p->location.id >= 0 && p->location.id < sim_n_devices;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return true;
	default:
		return p->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
	}
}

static CUresult create(CUmemoryPool *ret, const CUmemPoolProps *props)
{
	struct sim_pool *p;
	bool device;

	if (ret == NULL || props == NULL || !props_ok(props)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	pthread_mutex_lock(&sim_lock);
	p = sim_pool_new(&sim_devices[device ? props->location.id : 0], props);
	pthread_mutex_unlock(&sim_lock);
	if (p == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUmemoryPool)p;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUmemoryPool h)
{
	struct sim_pool *p;
	CUresult r = find(h, &p);

	return r == CUDA_SUCCESS ? sim_pool_destroy(p) : r;
}

static CUresult trim_to(CUmemoryPool h, size_t keep)
{
	struct sim_pool *p;
	CUresult r = find(h, &p);

	if (r == CUDA_SUCCESS) {
		sim_pool_trim(p, keep);
	}
	return r;
}

static CUresult set_attribute(CUmemoryPool h, CUmemPool_attribute attr, void *value)
{
	struct sim_pool *p;
	CUresult r = find(h, &p);

	if (r != CUDA_SUCCESS || value == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&p->arena->lock);
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		p->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(int *)value;
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		p->threshold = *(cuuint64_t *)value;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(cuuint64_t *)value != 0) {
			r = CUDA_ERROR_INVALID_VALUE;
		} else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
			p->reserved_high = p->reserved;
		} else {
			p->used_high = p->used;
		}
		break;
	default:
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&p->arena->lock);
	return r;
}

static CUresult get_attribute(CUmemoryPool h, CUmemPool_attribute attr, void *value)
{
	struct sim_pool *p;
	cuuint64_t *big = value;
	CUresult r = find(h, &p);

	if (r != CUDA_SUCCESS || value == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&p->arena->lock);
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = p->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*big = p->threshold;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*big = p->reserved;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*big = p->reserved_high;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*big = p->used;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*big = p->used_high;
		break;
	default:
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&p->arena->lock);
	return r;
}

static CUresult set_access(CUmemoryPool h, const CUmemAccessDesc *map, size_t n)
{
	struct sim_pool *p;
	CUresult r = find(h, &p);

	if (r != CUDA_SUCCESS || map == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < n; i++) {
		bool own = map[i].location.id == p->dev->ordinal;

		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || map[i].location.id < 0 ||
		    map[i].location.id >= sim_n_devices ||
		    (own && map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)) {
			return CUDA_ERROR_INVALID_VALUE;
		}
		pthread_mutex_lock(&p->arena->lock);
		p->peers &= ~(1U << map[i].location.id);
		p->peers |= (unsigned int)(map[i].flags != 0) << map[i].location.id;
		pthread_mutex_unlock(&p->arena->lock);
	}
	return CUDA_SUCCESS;
}

static CUresult get_access(CUmemAccess_flags *flags, CUmemoryPool h, CUmemLocation *location)
{
	struct sim_pool *p;
	CUresult r = find(h, &p);

	if (r != CUDA_SUCCESS || flags == NULL || location == NULL || location->id < 0 ||
	    location->id >= sim_n_devices) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*flags = (p->peers >> location->id & 1U) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
						       : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

CUresult sim_pool_of_device(CUmemoryPool *ret, CUdevice dev, bool dflt)
{
	struct sim_device *d;
	struct sim_pool *p;
	CUresult r = sim_device_get(dev, &d);

	if (r == CUDA_SUCCESS && ret == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		p = dflt ? sim_pool_default(d) : current(d);
		if (p == NULL) {
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		*ret = (CUmemoryPool)p;
	}
	return r;
}

CUresult sim_pool_set_device(CUdevice dev, CUmemoryPool h)
{
	struct sim_device *d;
	struct sim_pool *p;
	CUresult r = sim_device_get(dev, &d);

	if (r == CUDA_SUCCESS) {
		r = find(h, &p);
	}
	/* "The memory pool must be local to the specified device." */
	if (r == CUDA_SUCCESS && (p->dev != d || p->arena != &d->arena || p->imported)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		atomic_store_explicit(&d->pool, p, memory_order_release);
	}
	return r;
}

SIM_ALLOC_PTSZ(cuMemAllocAsync, dptr, (CUdeviceptr *dptr, size_t size, CUstream s), (size, s),
	       (*dptr), alloc(dptr, size, NULL, false, ST(s)))
SIM_ALLOC_PTSZ(cuMemAllocFromPoolAsync, dptr,
	       (CUdeviceptr *dptr, size_t size, CUmemoryPool pool, CUstream s), (size, pool, s),
	       (*dptr), alloc(dptr, size, pool, true, ST(s)))
SIM_API_PTSZ(cuMemFreeAsync, (CUdeviceptr dptr, CUstream s), (dptr, s), (0),
	     free_async(dptr, ST(s)))
SIM_API(cuMemPoolCreate, (CUmemoryPool *pool, const CUmemPoolProps *props), (props != NULL),
	(*pool), create(pool, props))
SIM_API(cuMemPoolDestroy, (CUmemoryPool pool), (pool), (0), destroy(pool))
SIM_API(cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep), (pool, keep), (0), trim_to(pool, keep))
SIM_API(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void *value),
	(pool, attr), (0), set_attribute(pool, attr, value))
SIM_API(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void *value),
	(pool, attr), (0), get_attribute(pool, attr, value))
SIM_API(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count),
	(pool, count), (0), set_access(pool, map, count))
SIM_API(cuMemPoolGetAccess,
	(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location), (pool), (*flags),
	get_access(flags, pool, location))
SIM_API(cuDeviceGetDefaultMemPool, (CUmemoryPool *pool, CUdevice dev), (dev), (*pool),
	sim_pool_of_device(pool, dev, true))
SIM_API(cuDeviceGetMemPool, (CUmemoryPool *pool, CUdevice dev), (dev), (*pool),
	sim_pool_of_device(pool, dev, false))
SIM_API(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool pool), (dev, pool), (0),
	sim_pool_set_device(dev, pool))
