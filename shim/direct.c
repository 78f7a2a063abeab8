/* SPDX-License-Identifier: Apache-2.0 */
#include "direct.h"

#include "driver_door.h"
#include "held.h"
#include "ledger.h"
#include "origins.h"
#include "serve.h"

typedef CUresult (*alloc_fn)(CUdeviceptr *, size_t);
typedef CUresult (*alloc_async_fn)(CUdeviceptr *, size_t, CUstream);
typedef CUresult (*free_fn)(CUdeviceptr);
typedef CUresult (*free_async_fn)(CUdeviceptr, CUstream);
typedef CUresult (*is_capturing_fn)(CUstream, CUstreamCaptureStatus *);
typedef CUresult (*synchronize_fn)(void);
typedef CUresult (*copy_fn)(CUdeviceptr, CUdeviceptr, size_t);

static bool alone;

void cw_direct_set_alone(void)
{
	__atomic_store_n(&alone, true, __ATOMIC_RELAXED);
}

bool cw_direct_alone(void)
{
	return __atomic_load_n(&alone, __ATOMIC_RELAXED);
}

/* A capture would make a plan of it, and the memory would not be there. */
static bool is_capturing(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	is_capturing_fn ask;

	if (!cw_direct_alone()) {
		return cw_stream_is_capturing(stream, false);
	}
	ask = (is_capturing_fn)cw_real_of(CW_HOOK_cuStreamIsCapturing);
	return ask != NULL && ask(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static bool stream_ordered(const struct cw_request *request)
{
	return (request->flags & CUWEIR_EVENT_STREAM_ORDERED) != 0;
}

static CUresult perform(struct cw_request *request)
{
	CUdeviceptr pointer = 0;
	CUresult result;

	if (stream_ordered(request)) {
		result = ((alloc_async_fn)request->real)(&pointer, (size_t)request->requested,
							 request->stream);
	} else {
		result = ((alloc_fn)request->real)(&pointer, (size_t)request->requested);
	}
	request->pointer = pointer;
	return result;
}

static CUresult give_to_driver(struct cw_request *request)
{
	void *real = cw_real_of(stream_ordered(request) ? CW_HOOK_cuMemFreeAsync
							: CW_HOOK_cuMemFree_v2);

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	return stream_ordered(request)
		       ? ((free_async_fn)real)((CUdeviceptr)request->pointer, request->stream)
		       : ((free_fn)real)((CUdeviceptr)request->pointer);
}

/* Another thread was faster to give it back: its size is filled in from its record. */
static CUresult perform_free(struct cw_request *request)
{
	return request->charged != 0 ? give_to_driver(request) : CUDA_ERROR_INVALID_VALUE;
}

static void fill(struct cw_request *request, const struct cw_direct *direct, enum cw_hook_id hook)
{
	cw_driver_request(request, hook, direct->site, cw_real_of(hook), direct->size);
	if (direct->ordered) {
		cw_driver_on_stream(request, direct->stream, false);
	} else {
		cw_driver_here(request);
	}
	request->origin_flags |= CW_ORIGIN_DIRECT;
	if (direct->resizable) {
		request->origin_flags |= CW_ORIGIN_RESIZABLE;
	}
	request->perform = perform;
	request->undo = give_to_driver;
	request->servable = true;
	request->alignment = direct->alignment;
	request->budget = direct->budget;
	request->claimed = direct->claimed;
	request->keep_claim = direct->claimed != 0;
}

CUresult cw_direct_allocate(struct cw_direct *direct)
{
	enum cw_hook_id hook = direct->ordered ? CW_HOOK_cuMemAllocAsync : CW_HOOK_cuMemAlloc_v2;
	struct cw_request request;
	CUresult result;

	direct->memory = NULL;
	direct->claim_used = false;
	if (!cw_ready()) {
		return CUDA_ERROR_NOT_INITIALIZED;
	}
	if (cw_real_of(hook) == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (direct->ordered && is_capturing(direct->stream)) {
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	fill(&request, direct, hook);
	result = cw_allocate(&request);
	/* Used by a block that a policy took for it even where all failed in the end. */
	direct->claim_used = direct->claimed != 0 && !request.keep_claim;
	if (result == CUDA_SUCCESS) {
		direct->memory = (void *)(uintptr_t)request.pointer;
		direct->claim_used |= request.owner == 0 && !request.untold;
	}
	return result;
}

/* Whether it came from here; *ret_record, and the flags of its origin. */
static bool find(void *memory, struct cw_record *ret_record, uint8_t *ret_flags)
{
	if (!cw_ledger_find((uint64_t)(uintptr_t)memory, ret_record)) {
		return false;
	}
	*ret_flags = cw_origin_get(ret_record->origin)->flags;
	return (*ret_flags & CW_ORIGIN_DIRECT) != 0;
}

/* The default stream is that of the memory's device, whichever is current. */
static bool push_home(const struct cw_record *known)
{
	int device = cw_origin_get(known->origin)->device;
	struct cw_where where;
	int references;

	cw_where_current(&where);
	return where.device != device && cw_context_push(cw_primary_context(device, &references));
}

CUresult cw_direct_free(void *memory, bool ordered, CUstream stream, const void *site)
{
	struct cw_thread before = cw_thread;
	struct cw_request request;
	struct cw_record known;
	uint8_t flags;
	bool pushed;
	CUresult result;

	if (!find(memory, &known, &flags)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* It would only become a part of the graph. */
	if (ordered && is_capturing(stream) && !cw_is_served(known.address)) {
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	cw_driver_request(&request, ordered ? CW_HOOK_cuMemFreeAsync : CW_HOOK_cuMemFree_v2, site,
			  NULL, 0);
	request.pointer = known.address;
	request.perform = perform_free;
	if (ordered) {
		request.stream = stream;
		request.flags = CUWEIR_EVENT_STREAM_ORDERED;
	}
	pushed = ordered && stream == NULL && push_home(&known);
	result = cw_deallocate(&request);
	if (pushed) {
		cw_context_pop(&before);
	}
	return result;
}

/* Nothing says in which streams the memory is used: so all of them are waited for. */
static CUresult copy(void *to, void *from, uint64_t size)
{
	synchronize_fn synchronize = (synchronize_fn)cw_real_of(CW_HOOK_cuCtxSynchronize);
	copy_fn copy_now = (copy_fn)cw_real_of(CW_HOOK_cuMemcpyDtoD_v2);
	CUresult result;

	if (synchronize == NULL || copy_now == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = synchronize();
	if (result == CUDA_SUCCESS) {
		result = copy_now((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from,
				  (size_t)size);
	}
	return result == CUDA_SUCCESS ? synchronize() : result;
}

/* By the policy that serves it; NULL where it does not. */
static void *reallocate_served(const struct cw_record *known, uint64_t alignment,
			       uint64_t new_size, const void *site)
{
	struct cw_request request;
	struct cw_record detached;

	if (!cw_serve_can_reallocate(known) || !cw_ledger_remove(known->address, &detached)) {
		return NULL;
	}
	cw_driver_request(&request, CW_HOOK_cuMemAlloc_v2, site, NULL, 0);
	cw_facts_of(&request, &detached);
	request.pointer = detached.address;
	request.in_callback = cw_thread.in_callback;
	if (request.in_callback != 0) {
		request.flags |= CUWEIR_EVENT_NESTED;
	}
	return cw_serve_reallocate(&request, &detached, alignment, new_size);
}

void *cw_direct_reallocate(void *memory, uint64_t alignment, uint64_t new_size,
			   const void *site)
{
	struct cw_direct direct = { .size = new_size, .alignment = (uint16_t)alignment,
				    .resizable = true, .site = site };
	void *moved;
	struct cw_record known;
	struct cw_where where;
	uint8_t flags;

	if (!find(memory, &known, &flags) || (flags & CW_ORIGIN_RESIZABLE) == 0) {
		return NULL;
	}
	moved = reallocate_served(&known, alignment, new_size, site);
	if (moved != NULL) {
		return moved;
	}
	if (new_size <= known.size) {
		return memory;
	}
	cw_where_current(&where);
	if (cw_capture_open() || is_capturing(NULL) ||
	    where.device != cw_origin_get(known.origin)->device ||
	    cw_direct_allocate(&direct) != CUDA_SUCCESS) {
		return NULL;
	}
	if (copy(direct.memory, memory, known.size) != CUDA_SUCCESS) {
		cw_direct_free(direct.memory, false, NULL, site);
		return NULL;
	}
	/* A status of a threshold callback changes nothing: the memory is gone. */
	cw_direct_free(memory, false, NULL, site);
	return direct.memory;
}
