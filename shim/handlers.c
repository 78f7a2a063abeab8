/* SPDX-License-Identifier: Apache-2.0 */
#include "handlers.h"

#include <errno.h>
#include <pthread.h>

#include "host.h"
#include "message.h"
#include "status.h"
#include "thread.h"
#include "where.h"

/* What a call into a policy changes of the thread, and what it was. */
struct visit {
	const struct cw_request *request;
	const struct cuweir_event *event;
	const void *runtime_site;
	uint32_t in_callback;
	uint16_t runtime_hook;
	int cancel_state;
	int saved_errno;
};

/* After the closing no callback starts, in operations that are under way as well (P-40). */
static inline bool closed(void)
{
	return CW_UNLIKELY(cw_chain_count() == 0);
}

static void enter(struct visit *visit, const struct cw_policy *policy,
		  const struct cw_request *request, const struct cuweir_event *event)
{
	visit->request = cw_thread.request;
	visit->event = cw_thread.event;
	visit->runtime_site = cw_thread.runtime_site;
	visit->in_callback = cw_thread.in_callback;
	visit->runtime_hook = cw_thread.runtime_hook;
	visit->saved_errno = errno;
	/* No CUDA call is a point of cancellation, and what is written within one must not be. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &visit->cancel_state);
	/* What the policy calls is not the program's call that it is told of. */
	cw_thread.runtime_hook = 0;
	cw_thread.runtime_site = NULL;
	cw_thread.request = request;
	cw_thread.event = event;
	cw_thread.in_callback |= policy->bit;
}

static void leave(const struct visit *visit)
{
	cw_thread.request = visit->request;
	cw_thread.event = visit->event;
	cw_thread.in_callback = visit->in_callback;
	cw_thread.runtime_hook = visit->runtime_hook;
	cw_thread.runtime_site = visit->runtime_site;
	pthread_setcancelstate(visit->cancel_state, NULL);
	errno = visit->saved_errno;
}

typedef int (*ask_fn)(void *state, const struct cuweir_event *event);
typedef int (*threshold_fn)(void *state, uint64_t total, const struct cuweir_event *event);
typedef void (*debug_fn)(void *state, uint64_t size, const struct cuweir_event *event);
typedef void (*tell_fn)(void *state, const struct cuweir_event *event);

static int checked(const struct cw_policy *policy, const char *callback, int status)
{
	static unsigned int told;

	if (CW_LIKELY(cw_status_is_known(status))) {
		return status;
	}
	if (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED) == 0) {
		cw_message(CW_ERROR,
			   "policy %s: %s returned %d, which is no CUresult; want one of cuda.h; "
			   "it counts as CUDA_ERROR_UNKNOWN (999)",
			   policy->table.name, callback, status);
	}
	return CUWEIR_ERROR_UNKNOWN;
}

static int threshold(struct cw_policy *policy, threshold_fn callback, const char *name,
		     const struct cw_request *request)
{
	struct cuweir_event event;
	struct visit visit;
	int status;

	if (callback == NULL || closed()) {
		return CUWEIR_SUCCESS;
	}
	cw_event_fill(&event, request);
	enter(&visit, policy, request, &event);
	status = callback(policy->state, request->after, &event);
	leave(&visit);
	return status == CUWEIR_SUCCESS ? status : checked(policy, name, status);
}

int cw_tell_alloc_threshold(struct cw_policy *policy, const struct cw_request *request)
{
	return threshold(policy, policy->table.on_alloc_threshold, "on_alloc_threshold", request);
}

int cw_tell_dealloc_threshold(struct cw_policy *policy, const struct cw_request *request)
{
	return threshold(policy, policy->table.on_dealloc_threshold, "on_dealloc_threshold",
			 request);
}

int cw_ask_admit(struct cw_policy *policy, const struct cw_request *request)
{
	ask_fn callback = policy->table.admit;
	struct cuweir_event event;
	struct visit visit;
	int status;

	if (callback == NULL || closed()) {
		return CUWEIR_SUCCESS;
	}
	cw_event_fill(&event, request);
	enter(&visit, policy, request, &event);
	status = callback(policy->state, &event);
	leave(&visit);
	return status == CUWEIR_SUCCESS ? status : checked(policy, "admit", status);
}

bool cw_ask_alloc_failure(struct cw_policy *policy, const struct cw_request *request)
{
	const struct cuweir_policy *table = &policy->table;
	struct cuweir_event event;
	struct visit visit;
	bool again;

	if ((table->on_alloc_failure == NULL && table->on_alloc_failure_size == NULL) ||
	    closed()) {
		return false;
	}
	if ((request->flags & CUWEIR_EVENT_CAPTURING) != 0 &&
	    (table->flags & CUWEIR_POLICY_CAPTURE_SAFE) == 0) {
		return false;
	}
	cw_event_fill(&event, request);
	enter(&visit, policy, request, &event);
	if (table->on_alloc_failure != NULL) {
		again = table->on_alloc_failure(policy->state, request->requested,
						request->retry_count, &event);
	} else {
		again = table->on_alloc_failure_size(policy->state, request->requested);
	}
	leave(&visit);
	return again;
}

static void debug_event(struct cw_policy *policy, debug_fn callback,
			const struct cw_request *request)
{
	struct cuweir_event event;
	struct visit visit;

	if (callback == NULL || closed()) {
		return;
	}
	cw_event_fill(&event, request);
	enter(&visit, policy, request, &event);
	callback(policy->state, request->requested, &event);
	leave(&visit);
}

void cw_tell_allocated(struct cw_policy *policy, const struct cw_request *request)
{
	debug_event(policy, policy->table.on_allocated, request);
}

void cw_tell_deallocated(struct cw_policy *policy, const struct cw_request *request)
{
	debug_event(policy, policy->table.on_deallocated, request);
}

static void tell(struct cw_policy *policy, tell_fn callback, const struct cw_request *request)
{
	struct cuweir_event event;
	struct visit visit;

	if (callback == NULL || closed()) {
		return;
	}
	cw_event_fill(&event, request);
	enter(&visit, policy, request, &event);
	callback(policy->state, &event);
	leave(&visit);
}

void cw_tell_before_free(struct cw_policy *policy, const struct cw_request *request)
{
	tell(policy, policy->table.before_free, request);
}

void cw_tell_alloc_failed(struct cw_policy *policy, const struct cw_request *request)
{
	tell(policy, policy->table.on_alloc_failed, request);
}

void cw_ask_memory_info(struct cw_policy *policy, struct cuweir_memory_info *info)
{
	struct visit visit;

	if (policy->table.memory_info == NULL) {
		return;
	}
	enter(&visit, policy, NULL, NULL);
	policy->table.memory_info(policy->state, info);
	leave(&visit);
}

/* What ends is no operation on memory: only where, and whether a capture is open. */
static struct cuweir_event end_event(void *context, int device, void *stream)
{
	return (struct cuweir_event){
		.struct_size = sizeof(struct cuweir_event),
		.context = context,
		.device = device,
		.stream = stream,
		.thread = cw_thread_id(),
		.flags = cw_capture_open() ? CUWEIR_EVENT_CAPTURING : 0,
	};
}

void cw_tell_context_ended(struct cw_policy *policy, void *context, int device)
{
	struct cuweir_event event = end_event(context, device, NULL);
	struct visit visit;

	if (policy->table.on_context_ended == NULL ||
	    (policy->bit & cw_thread.in_callback) != 0) {
		return;
	}
	enter(&visit, policy, NULL, &event);
	policy->table.on_context_ended(policy->state, context, device);
	leave(&visit);
}

void cw_tell_stream_ended(struct cw_policy *policy, void *context, void *stream)
{
	struct cuweir_event event = end_event(context, -1, stream);
	struct visit visit;

	if (policy->table.on_stream_ended == NULL ||
	    (policy->bit & cw_thread.in_callback) != 0) {
		return;
	}
	enter(&visit, policy, NULL, &event);
	policy->table.on_stream_ended(policy->state, context, stream);
	leave(&visit);
}
