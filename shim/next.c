/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `next`: what stands behind a policy that serves. Inner policies admit, are asked after a
 * failure and hear debug events of what passes them, with CUWEIR_EVENT_HELD; the totals of the
 * program do not move, and no threshold is crossed.
 */
#include "account.h"
#include "attempt.h"
#include "batch.h"
#include "driver_door.h"
#include "held.h"
#include "serve.h"

typedef CUresult (*alloc_fn)(CUdeviceptr *, size_t);
typedef CUresult (*managed_fn)(CUdeviceptr *, size_t, unsigned int);
typedef CUresult (*host_fn)(void **, size_t, unsigned int);
typedef CUresult (*async_fn)(CUdeviceptr *, size_t, CUstream);
static CUresult perform_next(struct cw_request *request)
{
	CUdeviceptr pointer = 0;
	size_t bytes = (size_t)request->requested;
	CUresult result;

	if (request->flags & CUWEIR_EVENT_STREAM_ORDERED) {
		result = ((async_fn)request->real)(&pointer, bytes, request->stream);
	} else if (request->kind == CUWEIR_KIND_MANAGED) {
		result = ((managed_fn)request->real)(&pointer, bytes, CU_MEM_ATTACH_GLOBAL);
	} else if (request->kind == CUWEIR_KIND_HOST) {
		void *memory = NULL;

		result = ((host_fn)request->real)(&memory, bytes, 0);
		pointer = (CUdeviceptr)(uintptr_t)memory;
	} else {
		result = ((alloc_fn)request->real)(&pointer, bytes);
	}
	request->pointer = pointer;
	return result;
}

static enum cw_hook_id hook_of(uint8_t kind, bool async, bool per_thread)
{
	if (async && kind == CUWEIR_KIND_DEVICE) {
		return per_thread ? CW_HOOK_cuMemAllocAsync_ptsz : CW_HOOK_cuMemAllocAsync;
	}
	switch (kind) {
	case CUWEIR_KIND_MANAGED:
		return CW_HOOK_cuMemAllocManaged;
	case CUWEIR_KIND_HOST:
		return CW_HOOK_cuMemHostAlloc;
	default:
		return CW_HOOK_cuMemAlloc_v2;
	}
}

/* Fills everything but the stream from the operation that is being served, if there is one. */
static bool prepare(struct cw_request *request, const struct cw_policy *policy, uint64_t size,
		    bool async, void *stream)
{
	const struct cw_request *outer = cw_thread.request;
	bool per_thread = outer != NULL && (outer->flags & CUWEIR_EVENT_PER_THREAD) != 0;
	uint8_t kind = outer != NULL && outer->kind != CUWEIR_KIND_NONE ? outer->kind
									: CUWEIR_KIND_DEVICE;
	enum cw_hook_id hook = hook_of(kind, async, per_thread);

	cw_driver_request(request, hook, outer != NULL ? outer->site : NULL,
			  cw_real_of(hook), size);
	if (outer != NULL) {
		request->call = outer->call;
		request->site = outer->site;
	}
	if (request->real == NULL) {
		return false;
	}
	if (async && kind == CUWEIR_KIND_DEVICE) {
		cw_driver_on_stream(request, stream, per_thread);
	} else {
		cw_driver_here(request);
	}
	request->kind = kind;
	request->flags |= CUWEIR_EVENT_HELD | (cw_capture_open() ? CUWEIR_EVENT_CAPTURING : 0u);
	request->perform = perform_next;
	request->in_callback = cw_thread.in_callback & ~policy->bit;
	if (request->in_callback != 0 &&
	    (outer == NULL || (outer->flags & CUWEIR_EVENT_NESTED) != 0)) {
		request->flags |= CUWEIR_EVENT_NESTED;
	}
	request->in_callback = cw_thread.in_callback;
	return true;
}

/*
 * A block for a reservation's buffer is paid for by what the reservation has claimed; only what
 * it is larger is claimed anew. Returns how much of the claim went over.
 */
static uint64_t pass_claim(struct cw_request *request, struct cw_request *outer)
{
	uint64_t rest;

	if (outer == NULL || !outer->keep_claim || outer->claimed == 0 ||
	    outer->budget != cw_budget_of(request->device, request->kind)) {
		return 0;
	}
	rest = request->requested > outer->claimed ? request->requested - outer->claimed : 0;
	if (request->requested < outer->claimed || !cw_budget_claim(outer->budget, rest)) {
		return 0;
	}
	request->budget = outer->budget;
	request->claimed = request->requested;
	request->keep_claim = true;
	return outer->claimed;
}

static void settle_claim(struct cw_request *request, struct cw_request *outer, uint64_t passed,
			 bool success)
{
	if (success) {
		outer->claimed = 0;
		outer->keep_claim = false;
	} else {
		cw_budget_return(request->budget, request->requested - passed);
	}
}

static void *next_allocate_any(void *state, uint64_t size, uint64_t alignment, bool async,
			       void *stream)
{
	struct cw_policy *policy = state;
	uint32_t place = (uint32_t)(policy - cw_chain.policies) + 1;
	struct cw_request *outer = (struct cw_request *)(uintptr_t)cw_thread.request;
	struct cw_request request;
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	uint64_t passed = 0;

	if (size == 0 || (alignment & (alignment - 1)) != 0 || alignment > 256) {
		return NULL;
	}
	if (prepare(&request, policy, size, async, stream)) {
		/* Retries are those of the program's allocation, wherever they are made (D-01). */
		if (outer != NULL) {
			request.retries = outer->retries;
			request.first_failure_ns = outer->first_failure_ns;
			request.slow_told = outer->slow_told;
		}
		request.arguments[CW_HELD_PLACE] = place;
		passed = pass_claim(&request, outer);
		result = cw_attempt_behind(&request, place);
		if (outer != NULL) {
			outer->retries = request.retries;
			outer->first_failure_ns = request.first_failure_ns;
			outer->slow_told = request.slow_told;
			outer->hopeless = request.hopeless;
		}
	}
	if (passed != 0) {
		settle_claim(&request, outer, passed, result == CUDA_SUCCESS);
	}
	if (result != CUDA_SUCCESS) {
		if (outer != NULL) {
			outer->next_status = (int)result;
		}
		return NULL;
	}
	return (void *)(uintptr_t)request.pointer;
}

static void *next_allocate_async(void *state, uint64_t size, uint64_t alignment, uint32_t flags,
				 void *stream)
{
	(void)flags;
	return next_allocate_any(state, size, alignment, true, stream);
}

static void *next_allocate(void *state, uint64_t size, uint64_t alignment, uint32_t flags)
{
	(void)flags;
	return next_allocate_any(state, size, alignment, false, NULL);
}

/* What the driver says of it is what a free of the program's returns that is served by this. */
static bool next_deallocate_any(void *memory, void *stream)
{
	struct cw_request *outer = (struct cw_request *)(uintptr_t)cw_thread.request;
	CUresult result;

	if (memory == NULL) {
		return true;
	}
	if (!cw_held_free((uint64_t)(uintptr_t)memory, stream, &result)) {
		return false;
	}
	if (outer != NULL) {
		outer->next_freed = (int)result;
	}
	return cw_batch_gone(result);
}

static bool next_deallocate_async(void *state, void *memory, void *stream)
{
	(void)state;
	return next_deallocate_any(memory, stream);
}

static bool next_deallocate(void *state, void *memory)
{
	(void)state;
	return next_deallocate_any(memory, NULL);
}

/* The driver cannot: the block is as it was. */
static void *next_reallocate(void *state, void *memory, uint64_t alignment, uint64_t new_size)
{
	(void)state, (void)memory, (void)alignment, (void)new_size;
	return NULL;
}

const struct cuweir_allocator cw_next = {
	.struct_size = sizeof(struct cuweir_allocator),
	.allocate_async = next_allocate_async,
	.deallocate_async = next_deallocate_async,
	.reallocate = next_reallocate,
	.allocate = next_allocate,
	.deallocate = next_deallocate,
};
