/* SPDX-License-Identifier: Apache-2.0 */
/* The driver door for linear, managed and stream-ordered memory, and its frees. */
#include "driver_limited.h"

#include "bodies.h"
#include "driver_door.h"
#include "driver_pool.h"
#include "graph_books.h"
#include "held.h"

typedef CUresult (*alloc_v1_fn)(CUdeviceptr_v1 *, unsigned int);
typedef CUresult (*alloc_fn)(CUdeviceptr *, size_t);
typedef CUresult (*managed_fn)(CUdeviceptr *, size_t, unsigned int);
typedef CUresult (*async_fn)(CUdeviceptr *, size_t, CUstream);
typedef CUresult (*free_v1_fn)(CUdeviceptr_v1);
typedef CUresult (*free_fn)(CUdeviceptr);
typedef CUresult (*free_async_fn)(CUdeviceptr, CUstream);

CUresult cw_driver_undo_free(struct cw_request *request)
{
	free_fn real = (free_fn)cw_real_of(CW_HOOK_cuMemFree_v2);

	return real != NULL ? real((CUdeviceptr)request->pointer) : CUDA_ERROR_NOT_FOUND;
}

static CUresult undo_free_async(struct cw_request *request)
{
	bool per_thread = (request->flags & CUWEIR_EVENT_PER_THREAD) != 0;
	free_async_fn real = (free_async_fn)cw_real_of(per_thread ? CW_HOOK_cuMemFreeAsync_ptsz
								  : CW_HOOK_cuMemFreeAsync);

	return real != NULL ? real((CUdeviceptr)request->pointer, request->stream)
			    : CUDA_ERROR_NOT_FOUND;
}

/* ---- cuMemAlloc --------------------------------------------------------------------- */

static CUresult perform_alloc(struct cw_request *request)
{
	CUdeviceptr pointer = 0;
	CUresult result = ((alloc_fn)request->real)(&pointer, (size_t)request->requested);

	request->pointer = pointer;
	return result;
}

static void fill_alloc(struct cw_request *request, enum cw_hook_id hook, const void *site,
		       void *real, size_t bytesize)
{
	cw_driver_request(request, hook, site, real, bytesize);
	cw_driver_here(request);
	request->perform = perform_alloc;
	request->servable = request->context != NULL; /* else the driver says what is wrong */
	request->undo = cw_driver_undo_free;
}

CUresult cw_mem_alloc_general(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
			      size_t bytesize)
{
	struct cw_request request;
	alloc_fn real = (alloc_fn)cw_real_of(hook);
	CUresult result;

	if (CW_UNLIKELY(real == NULL)) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (CW_UNLIKELY(!cw_driver_door_open() || dptr == NULL || bytesize == 0)) {
		return real(dptr, bytesize);
	}
	fill_alloc(&request, hook, site, (void *)real, bytesize);
	result = cw_allocate(&request);
	if (CW_LIKELY(result == CUDA_SUCCESS)) {
		*dptr = (CUdeviceptr)request.pointer;
	}
	return result;
}

/* cw_mem_alloc is in driver_plain.h. This is all of it where it is not plain from the start. */
CUresult cw_mem_alloc_whole(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
			    size_t bytesize)
{
	if (CW_LIKELY(cw_is_limited_only(hook)) && dptr != NULL && bytesize != 0) {
		return cw_mem_alloc_limited(hook, site, dptr, bytesize);
	}
	return cw_mem_alloc_general(hook, site, dptr, bytesize);
}

static CW_COLD CUresult alloc_rest(struct cw_request *request, CUdeviceptr *dptr,
				   CUresult result, bool entered)
{
	result = cw_allocate_rest(request, result, entered);
	if (result == CUDA_SUCCESS) {
		*dptr = (CUdeviceptr)request->pointer;
	}
	return result;
}

CW_COLD CUresult cw_mem_alloc_answered(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
				       size_t bytesize, CUresult result, CUdeviceptr pointer)
{
	struct cw_request request;

	fill_alloc(&request, hook, site, cw_real_known(hook), bytesize);
	request.pointer = pointer;
	return alloc_rest(&request, dptr, result, false);
}

CW_COLD CUresult cw_mem_alloc_entered(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
				      size_t bytesize, CUdeviceptr pointer, uint64_t before)
{
	struct cw_request request;

	fill_alloc(&request, hook, site, cw_real_known(hook), bytesize);
	request.pointer = pointer;
	request.before = before;
	request.after = before + bytesize;
	cw_plain_move_band(request.device, request.kind, request.after);
	return alloc_rest(&request, dptr, CUDA_SUCCESS, true);
}

static CUresult perform_alloc_v1(struct cw_request *request)
{
	CUdeviceptr_v1 pointer = 0;
	CUresult result = ((alloc_v1_fn)request->real)(&pointer, (unsigned int)request->requested);

	request->pointer = pointer;
	return result;
}

CUresult cw_mem_alloc_v1(enum cw_hook_id hook, const void *site, CUdeviceptr_v1 *dptr,
			 unsigned int bytesize)
{
	struct cw_request request;
	alloc_v1_fn real = (alloc_v1_fn)cw_real_of(hook);
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || dptr == NULL || bytesize == 0) {
		return real(dptr, bytesize);
	}
	cw_driver_request(&request, hook, site, (void *)real, bytesize);
	cw_driver_here(&request);
	request.perform = perform_alloc_v1;
	request.undo = cw_driver_undo_free;
	result = cw_allocate(&request);
	if (result == CUDA_SUCCESS) {
		*dptr = (CUdeviceptr_v1)request.pointer;
	}
	return result;
}

/* ---- cuMemAllocManaged ---------------------------------------------------------------- */

static CUresult perform_managed(struct cw_request *request)
{
	CUdeviceptr pointer = 0;
	CUresult result = ((managed_fn)request->real)(&pointer, (size_t)request->requested,
						      (unsigned int)request->arguments[0]);

	request->pointer = pointer;
	return result;
}

CUresult cw_mem_alloc_managed(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
			      size_t bytesize, unsigned int flags)
{
	struct cw_request request;
	managed_fn real = (managed_fn)cw_real_of(hook);
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || dptr == NULL || bytesize == 0) {
		return real(dptr, bytesize, flags);
	}
	cw_driver_request(&request, hook, site, (void *)real, bytesize);
	cw_driver_here(&request);
	request.arguments[0] = flags;
	request.perform = perform_managed;
	request.servable = flags == CU_MEM_ATTACH_GLOBAL && request.context != NULL;
	request.undo = cw_driver_undo_free;
	result = cw_allocate(&request);
	if (result == CUDA_SUCCESS) {
		*dptr = (CUdeviceptr)request.pointer;
	}
	return result;
}

/* ---- cuMemAllocAsync -------------------------------------------------------------------- */

static CUresult perform_async(struct cw_request *request)
{
	CUdeviceptr pointer = 0;
	CUresult result = ((async_fn)request->real)(&pointer, (size_t)request->requested,
						    request->stream);

	request->pointer = pointer;
	return result;
}

/* A captured allocation is a plan: nothing is taken now, and there is nothing to undo. */
static CUresult plan_async(async_fn real, CUdeviceptr *dptr, size_t bytesize, CUstream stream,
			   bool per_thread)
{
	struct cw_graph_step step = { .bytes = bytesize, .kind = CUWEIR_KIND_DEVICE };
	struct cw_where where;
	CUresult result;

	cw_where_of_stream(stream, &where);
	result = real(dptr, bytesize, stream);
	if (result == CUDA_SUCCESS) {
		step.pointer = *dptr;
		step.device = where.device;
		cw_graph_captured(stream, per_thread, &step);
	}
	return result;
}

CUresult cw_mem_alloc_async(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
			    size_t bytesize, CUstream stream)
{
	struct cw_request request;
	async_fn real = (async_fn)cw_real_of(hook);
	bool per_thread = cw_hooks[hook].stream == CW_PTDS;
	CUresult result;

	if (CW_UNLIKELY(real == NULL)) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (CW_UNLIKELY(!cw_driver_door_open() || dptr == NULL || bytesize == 0)) {
		return real(dptr, bytesize, stream);
	}
	if (CW_UNLIKELY(cw_stream_is_capturing(stream, per_thread))) {
		return plan_async(real, dptr, bytesize, stream, per_thread);
	}
	cw_driver_request(&request, hook, site, (void *)real, bytesize);
	cw_driver_on_stream(&request, stream, per_thread);
	request.perform = perform_async;
	request.servable = request.stream_context != NULL;
	cw_pool_place_current(&request);
	request.undo = undo_free_async;
	result = cw_allocate(&request);
	if (CW_LIKELY(result == CUDA_SUCCESS)) {
		*dptr = (CUdeviceptr)request.pointer;
	}
	return result;
}

/* ---- frees -------------------------------------------------------------------------------- */

static CUresult perform_free(struct cw_request *request)
{
	return ((free_fn)request->real)((CUdeviceptr)request->pointer);
}

static void fill_free(struct cw_request *request, enum cw_hook_id hook, const void *site,
		      void *real, CUdeviceptr dptr)
{
	cw_driver_request(request, hook, site, real, 0);
	request->pointer = dptr;
	request->perform = perform_free;
}

CUresult cw_mem_free_general(enum cw_hook_id hook, const void *site, CUdeviceptr dptr)
{
	struct cw_request request;
	free_fn real = (free_fn)cw_real_of(hook);

	if (CW_UNLIKELY(real == NULL)) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (CW_UNLIKELY(!cw_driver_door_open() || dptr == 0)) {
		return real(dptr);
	}
	fill_free(&request, hook, site, (void *)real, dptr);
	return cw_deallocate(&request);
}

/* cw_mem_free is in driver_plain.h, too. */
CUresult cw_mem_free_whole(enum cw_hook_id hook, const void *site, CUdeviceptr dptr)
{
	if (CW_LIKELY(cw_is_limited_only(hook)) && dptr != 0) {
		return cw_mem_free_limited(hook, site, dptr);
	}
	return cw_mem_free_general(hook, site, dptr);
}

CW_COLD CUresult cw_mem_free_detached(enum cw_hook_id hook, const void *site, CUdeviceptr dptr,
				      uint64_t size, uint32_t origin)
{
	struct cw_record detached = { dptr, size, origin };
	struct cw_request request;

	fill_free(&request, hook, site, cw_real_known(hook), dptr);
	return cw_deallocate_detached(&request, &detached);
}

CW_COLD CUresult cw_mem_free_refused(enum cw_hook_id hook, const void *site, CUdeviceptr dptr,
				     uint64_t size, uint32_t origin, CUresult result)
{
	struct cw_record detached = { dptr, size, origin };
	struct cw_request request;

	fill_free(&request, hook, site, cw_real_known(hook), dptr);
	return cw_deallocate_rest(&request, &detached, result, false);
}

CW_COLD CUresult cw_mem_free_left(enum cw_hook_id hook, const void *site, CUdeviceptr dptr,
				  uint64_t size, uint32_t origin, uint64_t before)
{
	const struct cw_origin *facts = cw_origin_get(origin);
	struct cw_record detached = { dptr, size, origin };
	struct cw_request request;

	fill_free(&request, hook, site, cw_real_known(hook), dptr);
	request.before = before;
	request.after = before > size ? before - size : 0;
	cw_plain_move_band(facts->device, facts->kind, request.after);
	return cw_deallocate_rest(&request, &detached, CUDA_SUCCESS, true);
}

static CUresult perform_free_v1(struct cw_request *request)
{
	return ((free_v1_fn)request->real)((CUdeviceptr_v1)request->pointer);
}

CUresult cw_mem_free_v1(enum cw_hook_id hook, const void *site, CUdeviceptr_v1 dptr)
{
	struct cw_request request;
	free_v1_fn real = (free_v1_fn)cw_real_of(hook);

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || dptr == 0) {
		return real(dptr);
	}
	cw_driver_request(&request, hook, site, (void *)real, 0);
	request.pointer = dptr;
	request.perform = perform_free_v1;
	return cw_deallocate(&request);
}

static CUresult perform_free_async(struct cw_request *request)
{
	return ((free_async_fn)request->real)((CUdeviceptr)request->pointer, request->stream);
}

/* A free in a capturing stream is a node of the graph: nothing is given back now. */
static CUresult plan_free(free_async_fn real, CUdeviceptr dptr, CUstream stream, bool per_thread)
{
	CUresult result = real(dptr, stream);

	if (result == CUDA_SUCCESS) {
		cw_graph_captured_free(stream, per_thread, dptr);
	}
	return result;
}

CUresult cw_mem_free_async(enum cw_hook_id hook, const void *site, CUdeviceptr dptr,
			   CUstream stream)
{
	struct cw_request request;
	free_async_fn real = (free_async_fn)cw_real_of(hook);
	bool per_thread = cw_hooks[hook].stream == CW_PTDS;

	if (CW_UNLIKELY(real == NULL)) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (CW_UNLIKELY(!cw_driver_door_open() || dptr == 0)) {
		return real(dptr, stream);
	}
	if (CW_UNLIKELY(cw_stream_is_capturing(stream, per_thread) && !cw_is_policys(dptr))) {
		return plan_free(real, dptr, stream, per_thread);
	}
	cw_driver_request(&request, hook, site, (void *)real, 0);
	request.stream = stream;
	request.flags = CUWEIR_EVENT_STREAM_ORDERED | (per_thread ? CUWEIR_EVENT_PER_THREAD : 0u);
	request.pointer = dptr;
	request.perform = perform_free_async;
	return cw_deallocate(&request);
}
