/* SPDX-License-Identifier: Apache-2.0 */
/* The driver door for stream-ordered pools: which memory they give, and giving it. */
#include "driver_pool.h"

#include <time.h>

#include "bodies.h"
#include "driver_door.h"
#include "graph_books.h"
#include "handles.h"

typedef CUresult (*create_fn)(CUmemoryPool *, const CUmemPoolProps *);
typedef CUresult (*pool_fn)(CUmemoryPool);
typedef CUresult (*trim_fn)(CUmemoryPool, size_t);
typedef CUresult (*attribute_fn)(CUmemoryPool, CUmemPool_attribute, void *);
typedef CUresult (*device_pool_fn)(CUmemoryPool *, CUdevice);
typedef CUresult (*set_device_pool_fn)(CUdevice, CUmemoryPool);
typedef CUresult (*location_pool_fn)(CUmemoryPool *, CUmemLocation *, CUmemAllocationType);
typedef CUresult (*set_location_pool_fn)(CUmemLocation *, CUmemAllocationType, CUmemoryPool);
typedef CUresult (*from_pool_fn)(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
typedef CUresult (*free_async_fn)(CUdeviceptr, CUstream);

struct cw_current_pool cw_current_pools_[CW_TOTAL_DEVICES];

void cw_pool_place_(struct cw_request *request, uint32_t gives)
{
	request->kind = (uint8_t)gives;
	request->device = (int)(gives >> 8) - 1;
	request->servable = false;
}

/* The numbers are older than their names: managed pools and pools of the host came with 13.0. */
static uint32_t gives_by(const CUmemLocation *location, CUmemAllocationType type)
{
	enum { MANAGED = 2 };
	bool of_device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;

	if ((int)type == MANAGED) {
		return cw_pool_gives(CUWEIR_KIND_MANAGED, of_device ? location->id : -1);
	}
	return of_device ? cw_pool_gives(CUWEIR_KIND_DEVICE, location->id)
			 : cw_pool_gives(CUWEIR_KIND_HOST, -1);
}

static uint64_t key_of(CUmemoryPool pool)
{
	return (uint64_t)(uintptr_t)pool;
}

/* 0: never heard of. */
static uint32_t gives_of_pool(CUmemoryPool pool)
{
	struct cw_handle entry;

	return cw_handles_get(CW_HANDLE_POOL, key_of(pool), &entry) ? (uint32_t)entry.value : 0;
}

/* value2 of a pool: it is no device's own, but one that somebody made. */
enum { MADE = 1 };

static CUresult heard_pool(CUresult result, const CUmemoryPool *pool, uint32_t gives)
{
	if (result == CUDA_SUCCESS && pool != NULL && cw_following()) {
		cw_handles_put(CW_HANDLE_POOL, key_of(*pool), gives, 0);
	}
	return result;
}

/* ---- pools that come and go --------------------------------------------------------------- */

CUresult cw_mem_pool_create(enum cw_hook_id hook, const void *site, CUmemoryPool *pool,
			    const CUmemPoolProps *props)
{
	create_fn real = (create_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(pool, props);
	if (result == CUDA_SUCCESS && pool != NULL && props != NULL && cw_following()) {
		/* In place of what the handle stood for, should its end not have been heard. */
		cw_handles_set(CW_HANDLE_POOL, key_of(*pool),
			       gives_by(&props->location, props->allocType), MADE);
	}
	return result;
}

/* NULL: the device's own. Of one that was never heard of, only that it is another is known. */
static void make_current(unsigned int device, CUmemoryPool pool)
{
	struct cw_current_pool *current;
	struct cw_handle entry = { .value2 = MADE };
	uint32_t gives;

	if (device >= CW_TOTAL_DEVICES) {
		return;
	}
	current = &cw_current_pools_[device];
	gives = cw_pool_gives(CUWEIR_KIND_DEVICE, (int)device);
	if (pool == NULL ||
	    (cw_handles_get(CW_HANDLE_POOL, key_of(pool), &entry) && entry.value == gives &&
	     (entry.value2 & MADE) == 0)) {
		gives = 0;
	} else if (entry.value != 0) {
		gives = (uint32_t)entry.value;
	}
	__atomic_store_n(&current->pool, key_of(pool), __ATOMIC_RELAXED);
	__atomic_store_n(&current->gives, gives, __ATOMIC_RELAXED);
}

/* "Destroying the current mempool of a device sets the default mempool" (cuda.h). */
static void not_current(CUmemoryPool pool)
{
	for (unsigned int device = 0; device < CW_TOTAL_DEVICES; device++) {
		uint64_t current = __atomic_load_n(&cw_current_pools_[device].pool,
						   __ATOMIC_RELAXED);

		if (current != 0 && current == key_of(pool)) {
			make_current(device, NULL);
		}
	}
}

static uint32_t asking; /* threads that go through the pools: none is destroyed meanwhile */

static void wait_for_askers(void)
{
	const struct timespec pause = { .tv_nsec = 20000 };

	for (int i = 0; i < 50000 && __atomic_load_n(&asking, __ATOMIC_SEQ_CST) != 0; i++) {
		nanosleep(&pause, NULL);
	}
}

/* Memory that is out keeps its records: it lives until it is freed (C-68). */
CUresult cw_mem_pool_destroy(enum cw_hook_id hook, const void *site, CUmemoryPool pool)
{
	pool_fn real = (pool_fn)cw_real_of(hook);
	struct cw_handle entry;
	bool known;
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	/* Before the call: the handle may be that of a new pool at once. */
	known = cw_handles_remove(CW_HANDLE_POOL, key_of(pool), &entry);
	wait_for_askers();
	result = real(pool);
	if (result == CUDA_SUCCESS) {
		not_current(pool);
	} else if (known) {
		cw_handles_put(CW_HANDLE_POOL, entry.key, entry.value, entry.value2);
	}
	return result;
}

/* ---- pools that are there ----------------------------------------------------------------- */

CUresult cw_device_get_mem_pool(enum cw_hook_id hook, const void *site, CUmemoryPool *pool,
				CUdevice dev)
{
	device_pool_fn real = (device_pool_fn)cw_real_of(hook);

	(void)site;
	return real != NULL ? heard_pool(real(pool, dev), pool, cw_pool_gives(CUWEIR_KIND_DEVICE, dev))
			    : CUDA_ERROR_NOT_FOUND;
}

CUresult cw_mem_get_mem_pool(enum cw_hook_id hook, const void *site, CUmemoryPool *pool,
			     CUmemLocation *location, CUmemAllocationType type)
{
	location_pool_fn real = (location_pool_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(pool, location, type);
	return location != NULL ? heard_pool(result, pool, gives_by(location, type)) : result;
}

/* A pool that the driver takes for a device's is the device's, whatever it gives. */
CUresult cw_device_set_mem_pool(enum cw_hook_id hook, const void *site, CUdevice dev,
				CUmemoryPool pool)
{
	set_device_pool_fn real = (set_device_pool_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(dev, pool);
	if (result == CUDA_SUCCESS && cw_following()) {
		make_current((unsigned int)dev, pool);
	}
	return result;
}

/*
 * Each location and type has a current pool of its own. That of a device for pinned memory is
 * the one that cuMemAllocAsync takes from (cuda.h: the call is cuDeviceSetMemPool then).
 */
CUresult cw_mem_set_mem_pool(enum cw_hook_id hook, const void *site, CUmemLocation *location,
			     CUmemAllocationType type, CUmemoryPool pool)
{
	set_location_pool_fn real = (set_location_pool_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(location, type, pool);
	if (result == CUDA_SUCCESS && location != NULL && cw_following() &&
	    location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
	    type == CU_MEM_ALLOCATION_TYPE_PINNED) {
		make_current((unsigned int)location->id, pool);
	}
	return result;
}

/* ---- the gauge ---------------------------------------------------------------------------- */

struct reserve {
	int device;
	uint64_t bytes;
	bool known; /* all pools have answered */
};

static bool add_reserved(const struct cw_handle *entry, void *argument)
{
	enum { RESERVED_MEM_CURRENT = 5 };
	attribute_fn ask = (attribute_fn)cw_real_of(CW_HOOK_cuMemPoolGetAttribute);
	struct reserve *reserve = argument;
	uint64_t bytes = 0;

	/* An imported pool is its exporter's. */
	if ((uint8_t)entry->value == CUWEIR_KIND_IMPORTED ||
	    (int)(entry->value >> 8) - 1 != reserve->device) {
		return true;
	}
	if (ask == NULL || ask((CUmemoryPool)(uintptr_t)entry->key,
			       (CUmemPool_attribute)RESERVED_MEM_CURRENT, &bytes) != CUDA_SUCCESS) {
		reserve->known = false;
		return false;
	}
	reserve->bytes += bytes;
	return true;
}

void cw_pool_ask_reserved(int device)
{
	device_pool_fn ask_default =
		(device_pool_fn)cw_real_of(CW_HOOK_cuDeviceGetDefaultMemPool);
	struct reserve reserve = { .device = device, .known = true };
	CUmemoryPool pool = NULL;

	if (device < 0 || cw_capture_open() || ask_default == NULL ||
	    heard_pool(ask_default(&pool, device), &pool,
		       cw_pool_gives(CUWEIR_KIND_DEVICE, device)) != CUDA_SUCCESS) {
		return;
	}
	__atomic_fetch_add(&asking, 1, __ATOMIC_SEQ_CST);
	cw_handles_walk(CW_HANDLE_POOL, add_reserved, &reserve);
	__atomic_fetch_sub(&asking, 1, __ATOMIC_SEQ_CST);
	if (reserve.known) {
		cw_total_set_gauge(device, CUWEIR_KIND_POOL, reserve.bytes);
	}
}

static bool trim(const struct cw_handle *entry, void *argument)
{
	trim_fn real = (trim_fn)cw_real_of(CW_HOOK_cuMemPoolTrimTo);

	if ((uint8_t)entry->value != CUWEIR_KIND_IMPORTED && real != NULL &&
	    (int)(entry->value >> 8) - 1 == *(const int *)argument) {
		real((CUmemoryPool)(uintptr_t)entry->key, 0);
	}
	return true;
}

void cw_pool_trim_made(int device)
{
	__atomic_fetch_add(&asking, 1, __ATOMIC_SEQ_CST);
	cw_handles_walk(CW_HANDLE_POOL, trim, &device);
	__atomic_fetch_sub(&asking, 1, __ATOMIC_SEQ_CST);
}

/* ---- memory ------------------------------------------------------------------------------- */

enum { POOL };

static CUresult undo_from_pool(struct cw_request *request)
{
	bool per_thread = (request->flags & CUWEIR_EVENT_PER_THREAD) != 0;
	free_async_fn real = (free_async_fn)cw_real_of(per_thread ? CW_HOOK_cuMemFreeAsync_ptsz
								  : CW_HOOK_cuMemFreeAsync);

	return real != NULL ? real((CUdeviceptr)request->pointer, request->stream)
			    : CUDA_ERROR_NOT_FOUND;
}

static CUresult perform_from_pool(struct cw_request *request)
{
	CUdeviceptr pointer = 0;
	CUresult result = ((from_pool_fn)request->real)(
		&pointer, (size_t)request->requested,
		(CUmemoryPool)(uintptr_t)request->arguments[POOL], request->stream);

	request->pointer = pointer;
	return result;
}

void cw_pool_place(struct cw_request *request, CUmemoryPool pool)
{
	uint32_t gives = gives_of_pool(pool);

	if (gives != 0) {
		cw_pool_place_(request, gives);
	}
}

/* A captured allocation is a plan: nothing is taken now, and there is nothing to undo. */
static CUresult plan_from_pool(from_pool_fn real, const struct cw_request *request,
			       CUdeviceptr *dptr, CUmemoryPool pool, bool per_thread)
{
	struct cw_graph_step step = { .bytes = request->requested, .kind = request->kind,
				      .device = request->device };
	CUresult result = real(dptr, (size_t)request->requested, pool, request->stream);

	if (result == CUDA_SUCCESS) {
		step.pointer = *dptr;
		cw_graph_captured(request->stream, per_thread, &step);
	}
	return result;
}

CUresult cw_mem_alloc_from_pool_async(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
				      size_t bytesize, CUmemoryPool pool, CUstream stream)
{
	struct cw_request request;
	from_pool_fn real = (from_pool_fn)cw_real_of(hook);
	bool per_thread = cw_hooks[hook].stream == CW_PTDS;
	CUresult result;

	if (CW_UNLIKELY(real == NULL)) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (CW_UNLIKELY(!cw_driver_door_open() || dptr == NULL || bytesize == 0)) {
		return real(dptr, bytesize, pool, stream);
	}
	cw_driver_request(&request, hook, site, (void *)real, bytesize);
	cw_driver_on_stream(&request, stream, per_thread);
	cw_pool_place(&request, pool);
	if (CW_UNLIKELY(cw_stream_is_capturing(stream, per_thread))) {
		return plan_from_pool(real, &request, dptr, pool, per_thread);
	}
	request.arguments[POOL] = key_of(pool);
	request.perform = perform_from_pool;
	request.undo = undo_from_pool;
	result = cw_allocate(&request);
	if (CW_LIKELY(result == CUDA_SUCCESS)) {
		*dptr = (CUdeviceptr)request.pointer;
	}
	return result;
}
