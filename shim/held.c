/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks that policies hold (D-11): taken through `next`, and not yet given back to it. */
#include "held.h"

#include "account.h"
#include "batch.h"
#include "driver_door.h"
#include "handlers.h"
#include "handles.h"
#include "ledger.h"
#include "origins.h"
#include "release.h"
#include "serve.h"
#include "wait.h"

/* Namespace in handles.h: address -> size, and kind and family and context. */
enum { HELD_SPACE = 81 };

typedef CUresult (*free_fn)(CUdeviceptr);
typedef CUresult (*free_host_fn)(void *);
typedef CUresult (*free_async_fn)(CUdeviceptr, CUstream);

/* value of a held block: whose it is, as the place behind it, above its bytes. */
enum { PLACE_SHIFT = 56 };
#define BYTES_MASK (((uint64_t)1 << PLACE_SHIFT) - 1)

/* value2 of it: the context it goes with in the upper bits, then these. */
enum { FACT_KIND_MASK = 0xf, FACT_ASYNC = 0x10, FACT_DEVICE_SHIFT = 8, FACT_CONTEXT_SHIFT = 16 };

static uint64_t bytes_of(const struct cw_handle *held)
{
	return held->value & BYTES_MASK;
}

static uint32_t place_of(const struct cw_handle *held)
{
	return (uint32_t)(held->value >> PLACE_SHIFT);
}

static uint64_t facts(const struct cw_request *request)
{
	uint64_t context = request->origin_flags & CW_ORIGIN_CONTEXT_BOUND
				   ? (uint64_t)(uintptr_t)request->context : 0;

	return context << FACT_CONTEXT_SHIFT |
	       (uint64_t)((unsigned int)request->device & 0xff) << FACT_DEVICE_SHIFT |
	       (request->flags & CUWEIR_EVENT_STREAM_ORDERED ? FACT_ASYNC : 0) | request->kind;
}

static CUresult give_to_driver(const struct cw_handle *held, void *stream, bool per_thread)
{
	uint64_t kind = held->value2 & FACT_KIND_MASK;
	void *real;

	if (held->value2 & FACT_ASYNC) {
		real = cw_real_of(per_thread ? CW_HOOK_cuMemFreeAsync_ptsz
					     : CW_HOOK_cuMemFreeAsync);
		return real != NULL ? ((free_async_fn)real)((CUdeviceptr)held->key, stream)
				    : CUDA_ERROR_NOT_FOUND;
	}
	if (kind == CUWEIR_KIND_HOST) {
		real = cw_real_of(CW_HOOK_cuMemFreeHost);
		return real != NULL ? ((free_host_fn)real)((void *)(uintptr_t)held->key)
				    : CUDA_ERROR_NOT_FOUND;
	}
	real = cw_real_of(CW_HOOK_cuMemFree_v2);
	return real != NULL ? ((free_fn)real)((CUdeviceptr)held->key) : CUDA_ERROR_NOT_FOUND;
}

bool cw_held_enter(struct cw_request *request)
{
	struct cw_handle held = {
		.key = request->pointer,
		.value = request->charged | request->arguments[CW_HELD_PLACE] << PLACE_SHIFT,
		.value2 = facts(request),
	};

	if (cw_handles_set(HELD_SPACE, held.key, held.value, held.value2) < 0) {
		give_to_driver(&held, request->stream,
			       (request->flags & CUWEIR_EVENT_PER_THREAD) != 0);
		return false;
	}
	cw_total_hold(request->device, request->kind, request->charged);
	request->before = cw_total_current(request->device, request->kind);
	request->after = request->before;
	return true;
}

void cw_held_bind(struct cw_request *request)
{
	struct cw_handle held;
	uint64_t context;

	if (!cw_handles_get(HELD_SPACE, request->pointer, &held)) {
		return;
	}
	context = held.value2 >> FACT_CONTEXT_SHIFT;
	request->origin_flags &= (uint8_t)~CW_ORIGIN_CONTEXT_BOUND;
	if (context != 0) {
		request->origin_flags |= CW_ORIGIN_CONTEXT_BOUND;
	}
	request->context = (void *)(uintptr_t)context;
}

bool cw_is_held(uint64_t pointer)
{
	struct cw_handle held;

	return cw_chain_wants(CW_CHAIN_SERVES) && cw_handles_get(HELD_SPACE, pointer, &held);
}

bool cw_is_served(uint64_t pointer)
{
	struct cw_record found;

	return cw_chain_wants(CW_CHAIN_SERVES) && cw_ledger_find(pointer, &found) &&
	       cw_origin_get(found.origin)->policy != 0;
}

static void settle_held(const struct cw_handle *held)
{
	int device = (int)(int8_t)(held->value2 >> FACT_DEVICE_SHIFT & 0xff);
	unsigned int kind = (unsigned int)(held->value2 & FACT_KIND_MASK);

	cw_total_unhold(device, kind, bytes_of(held));
	cw_budget_return(cw_budget_of(device, kind), bytes_of(held));
}

/* Inner policies hear of the free as of the allocation. */
static void tell_inner(struct cw_request *request, uint32_t place, bool before)
{
	if (before) {
		cw_release_announce(request, place);
	} else {
		cw_release_tell(request, place);
	}
}

static enum cw_hook_id free_hook_of(const struct cw_handle *held, bool per_thread)
{
	if (held->value2 & FACT_ASYNC) {
		return per_thread ? CW_HOOK_cuMemFreeAsync_ptsz : CW_HOOK_cuMemFreeAsync;
	}
	return (held->value2 & FACT_KIND_MASK) == CUWEIR_KIND_HOST ? CW_HOOK_cuMemFreeHost
								     : CW_HOOK_cuMemFree_v2;
}

/* A free of such a block, in the operation that is under way, if there is one. */
static void prepare_free(struct cw_request *request, const struct cw_handle *held, void *stream)
{
	const struct cw_request *outer = cw_thread.request;
	bool per_thread = outer != NULL && (outer->flags & CUWEIR_EVENT_PER_THREAD) != 0;
	bool async = (held->value2 & FACT_ASYNC) != 0;

	cw_driver_request(request, free_hook_of(held, per_thread), NULL, NULL,
			  bytes_of(held));
	if (outer != NULL) {
		request->call = outer->call;
		request->site = outer->site;
		request->flags = outer->flags & (CUWEIR_EVENT_NESTED | CUWEIR_EVENT_UNDO);
	} else {
		request->flags = CUWEIR_EVENT_NESTED;
	}
	request->flags |= CUWEIR_EVENT_HELD | (async ? CUWEIR_EVENT_STREAM_ORDERED : 0u) |
			  (async && per_thread ? CUWEIR_EVENT_PER_THREAD : 0u) |
			  (cw_capture_open() ? CUWEIR_EVENT_CAPTURING : 0u);
	if ((cw_thread.in_callback & ~cw_chain.policies[place_of(held) - 1].bit) != 0) {
		request->flags |= CUWEIR_EVENT_NESTED;
	}
	request->kind = (uint8_t)(held->value2 & FACT_KIND_MASK);
	request->device = (int)(int8_t)(held->value2 >> FACT_DEVICE_SHIFT & 0xff);
	request->context = (void *)(uintptr_t)(held->value2 >> FACT_CONTEXT_SHIFT);
	request->pointer = held->key;
	request->stream = stream;
	request->in_callback = cw_thread.in_callback;
	request->before = cw_total_current(request->device, request->kind);
	request->after = request->before;
}

bool cw_held_free(uint64_t pointer, void *stream, CUresult *ret_result)
{
	struct cw_request request;
	struct cw_handle held;

	if (!cw_handles_remove(HELD_SPACE, pointer, &held)) {
		return false;
	}
	prepare_free(&request, &held, stream);
	tell_inner(&request, place_of(&held), true);
	*ret_result = give_to_driver(&held, stream,
				     (request.flags & CUWEIR_EVENT_PER_THREAD) != 0);
	request.status = (int)*ret_result;
	if (!cw_batch_gone(*ret_result)) {
		cw_handles_set(HELD_SPACE, held.key, held.value, held.value2);
		return true;
	}
	settle_held(&held);
	cw_wait_freed();
	tell_inner(&request, place_of(&held), false);
	return true;
}

/* What goes with a context, as the program's own does: told one by one. */
static void tell_of_end(const struct cw_handle *held, const struct cw_batch *end, bool before)
{
	struct cw_request request;

	prepare_free(&request, held, NULL);
	request.hook = end->hook;
	request.call = end->call;
	request.site = end->site;
	request.flags = end->flags | CUWEIR_EVENT_HELD;
	tell_inner(&request, place_of(held), before);
}

static bool is_of(const struct cw_handle *held, const struct cw_batch *end)
{
	return held->value2 >> FACT_CONTEXT_SHIFT == (uint64_t)(uintptr_t)end->context;
}

static bool announce_if_of(const struct cw_handle *entry, void *argument)
{
	if (is_of(entry, argument)) {
		tell_of_end(entry, argument, true);
	}
	return true;
}

void cw_held_context_ending(const struct cw_batch *end)
{
	if (cw_chain_wants(CW_CHAIN_SERVES) && cw_chain_wants(CW_CHAIN_BEFORE_FREE)) {
		cw_handles_walk(HELD_SPACE, announce_if_of, (void *)(uintptr_t)end);
	}
}

static bool end_if_of(const struct cw_handle *entry, void *argument)
{
	struct cw_handle held;

	if (is_of(entry, argument) && cw_handles_remove(HELD_SPACE, entry->key, &held)) {
		settle_held(&held);
		tell_of_end(&held, argument, false);
	}
	return true;
}

void cw_held_context_ended(const struct cw_batch *end)
{
	cw_handles_walk(HELD_SPACE, end_if_of, (void *)(uintptr_t)end);
}
