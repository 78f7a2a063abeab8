/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

#include <errno.h>
#include <pthread.h>

#include "batch.h"
#include "grant.h"
#include "handlers.h"
#include "host.h"
#include "ledger.h"
#include "origins.h"
#include "release.h"
#include "resolve.h"
#include "thread.h"
#include "where.h"

typedef CUresult (*synchronize_fn)(void);
typedef CUresult (*stream_synchronize_fn)(CUstream);
typedef CUresult (*push_fn)(CUcontext);
typedef CUresult (*pop_fn)(CUcontext *);

/* What a call of an allocator changes of the thread, and what it was. */
struct visit {
	struct cw_thread thread;
	int saved_errno;
	int cancel_state;
	bool pushed;
};

bool cw_context_push(CUcontext wanted)
{
	push_fn push = (push_fn)cw_real_of(CW_HOOK_cuCtxPushCurrent_v2);
	struct cw_where here;

	cw_where_current(&here);
	if (CW_LIKELY(wanted == NULL || wanted == here.context)) {
		return false;
	}
	if (cw_capture_open() || push == NULL || push(wanted) != CUDA_SUCCESS) {
		return false;
	}
	cw_heard_current(wanted);
	return true;
}

void cw_context_pop(const struct cw_thread *before)
{
	pop_fn pop = (pop_fn)cw_real_of(CW_HOOK_cuCtxPopCurrent_v2);
	CUcontext popped;

	if (pop != NULL) {
		pop(&popped);
		cw_thread.context = before->context;
		cw_thread.context_known = before->context_known;
		cw_thread.device = before->device;
	}
}

/* As a callback: the policy's calls are nested, and its allocator learns the facts. */
static struct visit enter(const struct cw_policy *policy, struct cw_request *request,
			  CUcontext context, struct cuweir_event *event)
{
	struct visit visit = { .thread = cw_thread, .saved_errno = errno };

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &visit.cancel_state);
	visit.pushed = cw_context_push(context);
	cw_event_fill(event, request);
	event->context = context;
	cw_thread.request = request;
	cw_thread.event = event;
	cw_thread.runtime_hook = 0;
	cw_thread.runtime_site = NULL;
	cw_thread.in_callback |= policy->bit;
	return visit;
}

static void leave(const struct visit *visit)
{
	cw_thread.request = visit->thread.request;
	cw_thread.event = visit->thread.event;
	cw_thread.in_callback = visit->thread.in_callback;
	cw_thread.runtime_hook = visit->thread.runtime_hook;
	cw_thread.runtime_site = visit->thread.runtime_site;
	if (CW_UNLIKELY(visit->pushed)) {
		cw_context_pop(&visit->thread);
	}
	pthread_setcancelstate(visit->cancel_state, NULL);
	errno = visit->saved_errno;
}

static bool is_stream_ordered(const struct cw_request *request)
{
	return (request->flags & CUWEIR_EVENT_STREAM_ORDERED) != 0;
}

bool cw_serves(const struct cw_policy *policy, const struct cw_request *request)
{
	return (policy->serves & CUWEIR_KIND_BIT(request->kind)) != 0 &&
	       request->space == CW_KEY_ADDRESS && request->servable &&
	       (request->flags & CUWEIR_EVENT_CAPTURING) == 0 &&
	       (cw_thread.in_callback & policy->bit) == 0;
}

static uint32_t flags_of(const struct cw_request *request)
{
	return request->origin_flags & CW_ORIGIN_RESIZABLE ? CUWEIR_ALLOCATOR_RESIZABLE : 0;
}

/*
 * Memory of a synchronous call is valid in every stream at once (D-20): where the policy has
 * only the stream-ordered form, its stream, the legacy one, is waited for.
 */
static void *allocate_sync(const struct cw_policy *policy, struct cw_request *request)
{
	const struct cuweir_allocator *allocator = policy->table.allocator;
	stream_synchronize_fn synchronize;
	void *memory;

	if (allocator->allocate != NULL) {
		return allocator->allocate(policy->state, request->requested, request->alignment,
					   flags_of(request));
	}
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): a table without both is refused */
	memory = allocator->allocate_async(policy->state, request->requested, request->alignment,
					   flags_of(request), CU_STREAM_LEGACY);
	synchronize = (stream_synchronize_fn)cw_real_of(CW_HOOK_cuStreamSynchronize);
	if (memory != NULL && synchronize != NULL) {
		synchronize(CU_STREAM_LEGACY);
	}
	return memory;
}

CUresult cw_serve(struct cw_request *request, uint32_t place)
{
	const struct cw_policy *policy = &cw_chain.policies[place];
	CUcontext context = request->context;
	struct cuweir_event event;
	struct visit visit;
	void *memory;

	request->next_status = CUDA_SUCCESS;
	if (is_stream_ordered(request)) {
		context = request->stream_context;
	}
	visit = enter(policy, request, context, &event);
	if (is_stream_ordered(request) && policy->table.allocator->allocate_async != NULL) {
		memory = policy->table.allocator->allocate_async(
			policy->state, request->requested, request->alignment, flags_of(request),
			request->stream);
	} else {
		memory = allocate_sync(policy, request);
	}
	leave(&visit);
	if (memory == NULL) {
		return request->next_status != CUDA_SUCCESS ? (CUresult)request->next_status
							    : CUDA_ERROR_OUT_OF_MEMORY;
	}
	return cw_grant_served(request, place, memory);
}

/* A synchronous free waits for the device, so that nobody uses the block any more (D-20). */
static bool free_sync(const struct cw_policy *policy, const struct cw_request *request)
{
	const struct cuweir_allocator *allocator = policy->table.allocator;
	synchronize_fn synchronize = (synchronize_fn)cw_real_of(CW_HOOK_cuCtxSynchronize);
	void *memory = (void *)(uintptr_t)request->pointer;

	if (!cw_capture_open() && synchronize != NULL) {
		synchronize();
	}
	if (allocator->deallocate != NULL) {
		return allocator->deallocate(policy->state, memory);
	}
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): likewise */
	return allocator->deallocate_async(policy->state, memory, CU_STREAM_LEGACY);
}

/*
 * Whether the allocator can keep the order of the stream: one of another context has nothing
 * to do with those that its blocks are ordered in, and is waited for.
 */
static bool keeps_order(const struct cw_request *request)
{
	stream_synchronize_fn synchronize;
	struct cw_where where;

	cw_where_of_stream(request->stream, &where);
	if (CW_LIKELY(request->context == NULL || where.context == request->context)) {
		return true;
	}
	synchronize = (stream_synchronize_fn)cw_real_of(CW_HOOK_cuStreamSynchronize);
	if (!cw_capture_open() && synchronize != NULL) {
		synchronize(request->stream);
	}
	return false;
}

static CUresult give_back(struct cw_request *request, bool stream_ordered)
{
	const struct cw_policy *policy = &cw_chain.policies[request->owner - 1];
	struct cuweir_event event;
	struct visit visit;
	bool done;

	/* At exit policies are closed, and what they hold is left to the driver (D-21). */
	if (request->owner > cw_chain_count()) {
		return CUDA_SUCCESS;
	}
	stream_ordered = stream_ordered && keeps_order(request);
	request->next_freed = CUDA_SUCCESS;
	visit = enter(policy, request, request->context, &event);
	if (stream_ordered && policy->table.allocator->deallocate_async != NULL) {
		done = policy->table.allocator->deallocate_async(
			policy->state, (void *)(uintptr_t)request->pointer, request->stream);
	} else {
		done = free_sync(policy, request);
	}
	leave(&visit);
	if (done) {
		/* Another block that the policy gave up meanwhile may have failed: its own affair. */
		return cw_batch_gone((CUresult)request->next_freed)
			       ? (CUresult)request->next_freed : CUDA_SUCCESS;
	}
	return request->next_freed != CUDA_SUCCESS ? (CUresult)request->next_freed
						   : CUDA_ERROR_INVALID_VALUE;
}

CUresult cw_serve_undo(struct cw_request *request)
{
	return give_back(request, is_stream_ordered(request));
}

CUresult cw_serve_free(struct cw_request *request)
{
	return give_back(request, is_stream_ordered(request));
}

/* What a move means to the handlers; a status of theirs changes nothing, as it is done. */
static void tell_moved(struct cw_request *request, uint32_t place)
{
	for (uint32_t i = place + 1; i > cw_chain_first(); i--) {
		struct cw_policy *policy = &cw_chain.policies[i - 1];

		if (cw_watches(policy, request) &&
		    cw_thresholds_up(cw_list(&policy->alloc), request->device, request->before,
				     request->after)) {
			(void)cw_tell_alloc_threshold(policy, request);
		}
		if (cw_gets_debug(policy, request)) {
			cw_tell_allocated(policy, request);
		}
	}
}

void *cw_serve_reallocate(struct cw_request *request, const struct cw_record *detached,
			  uint64_t alignment, uint64_t new_size)
{
	uint32_t place = request->owner - 1u;
	const struct cw_policy *policy = &cw_chain.policies[place];
	uint8_t origin_flags = request->origin_flags;
	struct cuweir_event event;
	struct visit visit;
	void *moved;

	visit = enter(policy, request, request->context, &event);
	moved = policy->table.allocator->reallocate(policy->state,
						    (void *)(uintptr_t)request->pointer,
						    alignment, new_size);
	leave(&visit);
	if (moved == NULL) {
		cw_ledger_insert(detached->address, detached->size, detached->origin);
		return NULL;
	}
	cw_release_settle(request);
	(void)cw_release_tell(request, 0);
	request->requested = new_size;
	request->charged = new_size;
	request->origin_flags = origin_flags;
	if (cw_grant_served(request, place, moved) == CUDA_SUCCESS) {
		tell_moved(request, place);
	}
	return moved;
}

bool cw_serve_can_reallocate(const struct cw_record *record)
{
	uint32_t owner = cw_origin_get(record->origin)->policy;

	return owner != 0 && owner <= cw_chain_count() &&
	       cw_chain.policies[owner - 1].table.allocator->reallocate != NULL &&
	       (cw_thread.in_callback & cw_chain.policies[owner - 1].bit) == 0;
}
