/* SPDX-License-Identifier: Apache-2.0 */
/* Pools between processes, and the pools of places other than a device (13.0). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "pool.h"
#include "space.h"

#define MAGIC 0x6377504fU

/* What the file of an exported pool holds. Its memory is named block by block. */
struct pool_file {
	uint32_t magic;
	int32_t pid;
	uint64_t id;
	CUmemLocation location;
	CUmemAllocationType type;
};

_Static_assert(sizeof(struct sim_share) <= sizeof(CUmemPoolPtrExportData), "fits");

static CUresult export_pool(void *ret, CUmemoryPool h, CUmemAllocationHandleType type,
			    unsigned long long flags)
{
	struct sim_pool *p = sim_obj_get(h, SIM_POOL);
	struct pool_file f = {.magic = MAGIC, .pid = (int32_t)getpid()};
	int fd;

	if (p == NULL || ret == NULL || flags != 0 || p->imported ||
	    type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || (p->handle_types & type) == 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	f.id = p->obj.id;
	f.location.type = p->location;
	f.location.id = p->dev->ordinal;
	f.type = p->alloc_type;
	fd = memfd_create("cuweir-sim-pool", MFD_CLOEXEC);
	if (fd < 0 || write(fd, &f, sizeof(f)) != (ssize_t)sizeof(f)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*(int *)ret = fd;
	return CUDA_SUCCESS;
}

static CUresult import_pool(CUmemoryPool *ret, void *os, CUmemAllocationHandleType type,
			    unsigned long long flags)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
	struct pool_file f;
	struct sim_pool *p;

	if (ret == NULL || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    pread((int)(intptr_t)os, &f, sizeof(f), 0) != (ssize_t)sizeof(f) ||
	    f.magic != MAGIC) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	props.location = f.location;
	props.allocType = f.type;
	pthread_mutex_lock(&sim_lock);
	p = sim_pool_new(&sim_devices[f.location.id < sim_n_devices ? f.location.id : 0], &props);
	if (p != NULL) {
		p->imported = true;
		p->remote = f.id;
	}
	pthread_mutex_unlock(&sim_lock);
	if (p == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUmemoryPool)p;
	return CUDA_SUCCESS;
}

static CUresult export_pointer(CUmemPoolPtrExportData *ret, CUdeviceptr ptr)
{
	struct sim_arena *a = sim_arena_of(ptr);
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sim_share s;
	uint32_t i;

	if (ret == NULL || a == NULL) {
		return r;
	}
	pthread_mutex_lock(&a->lock);
	i = sim_arena_at(a, ptr);
	if (i != 0 && a->blocks[i].state == SIM_LIVE && a->blocks[i].origin == SIM_ASYNC) {
		const struct sim_pool *p = a->blocks[i].owner;

		if (p->handle_types != CU_MEM_HANDLE_TYPE_NONE) {
			r = sim_share_block(a, i, &s) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
			s.pool = p->obj.id;
		}
	}
	pthread_mutex_unlock(&a->lock);
	if (r == CUDA_SUCCESS) {
		memset(ret, 0, sizeof(*ret));
		memcpy(ret, &s, sizeof(s));
	}
	return r;
}

static CUresult import_pointer(CUdeviceptr *ret, CUmemoryPool h, const CUmemPoolPtrExportData *d)
{
	struct sim_pool *p = sim_obj_get(h, SIM_POOL);
	struct sim_space s = {.type = SIM_SPACE_POOL_PTR};
	struct sim_share from;
	bool ok;

	if (p == NULL || ret == NULL || d == NULL || !p->imported) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	memcpy(&from, d, sizeof(from));
	if (from.pool != p->remote) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	s.dev = p->dev->ordinal;
	s.owner = p;
	s.host = p->kind == CUWEIR_SIM_HOST;
	pthread_mutex_lock(&sim_space_lock);
	ok = sim_share_map(&from, &s) && sim_space_add(&s) != NULL;
	if (ok) {
		sim_charge(p->dev, CUWEIR_SIM_IMPORTED, s.size);
	}
	pthread_mutex_unlock(&sim_space_lock);
	if (!ok) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ret = s.addr;
	return CUDA_SUCCESS;
}

/* The pools of a place: pinned memory of the host and of its one NUMA node; managed memory that
 * prefers the host, the node, nothing, or a device. */
struct place {
	struct sim_pool *dflt, *current;
};

static struct place pinned_host[2], managed[3 + SIM_MAX_DEVICES]; /* under sim_lock */

static struct place *place_of(const CUmemLocation *l, CUmemAllocationType type)
{
	bool m = type == CU_MEM_ALLOCATION_TYPE_MANAGED;

	if (!m && type != CU_MEM_ALLOCATION_TYPE_PINNED) {
		return NULL;
	}
	switch (l->type) {
	case CU_MEM_LOCATION_TYPE_HOST:
		return m ? &managed[0] : &pinned_host[0];
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return m ? &managed[1] : &pinned_host[1];
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return m && l->id >= 0 && l->id < sim_n_devices ? &managed[3 + l->id] : NULL;
	case CU_MEM_LOCATION_TYPE_INVALID: /* the same number as NONE */
		return m ? &managed[2] : NULL;
	default:
		return NULL;
	}
}

static struct sim_pool *place_default(struct place *at, const CUmemLocation *l,
				      CUmemAllocationType type)
{
	CUmemPoolProps props = {.allocType = type, .location = *l};

	if (at->dflt == NULL) {
		at->dflt = sim_pool_new(&sim_devices[at >= &managed[3] && at < &managed[3] +
								SIM_MAX_DEVICES
							     ? at - &managed[3]
							     : 0],
					&props);
		if (at->dflt != NULL) {
			at->dflt->is_default = true;
		}
	}
	return at->dflt;
}

static bool device_pinned(const CUmemLocation *l, CUmemAllocationType type)
{
	return l != NULL && l->type == CU_MEM_LOCATION_TYPE_DEVICE &&
	       type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

static CUresult get(CUmemoryPool *ret, const CUmemLocation *l, CUmemAllocationType type, bool dflt)
{
	struct sim_pool *p;
	struct place *at;

	if (ret == NULL || l == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (device_pinned(l, type)) {
		return sim_pool_of_device(ret, l->id, dflt);
	}
	at = place_of(l, type);
	if (at == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_lock);
	p = at->current;
	if (dflt || p == NULL || p->destroyed) {
		p = place_default(at, l, type);
	}
	pthread_mutex_unlock(&sim_lock);
	if (p == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUmemoryPool)p;
	return CUDA_SUCCESS;
}

static CUresult set(const CUmemLocation *l, CUmemAllocationType type, CUmemoryPool h)
{
	struct sim_pool *p = sim_obj_get(h, SIM_POOL);
	struct place *at;

	if (device_pinned(l, type)) {
		return sim_pool_set_device(l->id, h);
	}
	at = l != NULL ? place_of(l, type) : NULL;
	if (at == NULL || p == NULL || p->imported || p->location != l->type ||
	    p->alloc_type != type ||
	    (l->type == CU_MEM_LOCATION_TYPE_DEVICE && p->dev->ordinal != l->id)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_lock);
	at->current = p;
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

/* The pool is destroyed: where it was current, the default one is again. sim_lock is held. */
void sim_pool_forget(const struct sim_pool *p)
{
	for (size_t i = 0; i < sizeof(managed) / sizeof(managed[0]); i++) {
		managed[i].current = managed[i].current == p ? NULL : managed[i].current;
	}
	for (size_t i = 0; i < sizeof(pinned_host) / sizeof(pinned_host[0]); i++) {
		pinned_host[i].current = pinned_host[i].current == p ? NULL
								     : pinned_host[i].current;
	}
}

SIM_API(cuMemPoolExportToShareableHandle,
	(void *out, CUmemoryPool pool, CUmemAllocationHandleType type, unsigned long long flags),
	(pool, type, flags), (0), export_pool(out, pool, type, flags))
SIM_API(cuMemPoolImportFromShareableHandle,
	(CUmemoryPool *pool, void *os, CUmemAllocationHandleType type, unsigned long long flags),
	(type, flags), (*pool), import_pool(pool, os, type, flags))
SIM_API(cuMemPoolExportPointer, (CUmemPoolPtrExportData *data, CUdeviceptr dptr), (dptr), (0),
	export_pointer(data, dptr))
SIM_ALLOC(cuMemPoolImportPointer, dptr,
	  (CUdeviceptr *dptr, CUmemoryPool pool, CUmemPoolPtrExportData *data), (pool), (*dptr),
	  import_pointer(dptr, pool, data))
SIM_API(cuMemGetDefaultMemPool,
	(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type), (type), (*pool),
	get(pool, location, type, true))
SIM_API(cuMemGetMemPool, (CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type),
	(type), (*pool), get(pool, location, type, false))
SIM_API(cuMemSetMemPool, (CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool),
	(type, pool), (0), set(location, type, pool))
