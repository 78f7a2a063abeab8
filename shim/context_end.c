/* SPDX-License-Identifier: Apache-2.0 */
#include "context_end.h"

#include <time.h>

#include "account.h"
#include "handlers.h"
#include "handles.h"
#include "held.h"
#include "lock.h"
#include "origins.h"
#include "release.h"
#include "thread.h"
#include "totals.h"
#include "wait.h"

static struct cw_context_end *ending; /* on the stacks of their threads */
static uint32_t ending_count;
static struct cw_lock ending_lock;    /* a leaf */

static bool belongs(const struct cw_record *record, void *argument)
{
	const struct cw_origin *origin = cw_origin_get(record->origin);

	return origin->context == (uint64_t)(uintptr_t)argument &&
	       (origin->flags & CW_ORIGIN_CONTEXT_BOUND) != 0;
}

struct sums {
	const struct cw_batch *batch;
	uint64_t bytes[CUWEIR_KIND_COUNT];
	uint64_t running[CUWEIR_KIND_COUNT]; /* the total, as far as it has been told */
	int device;
};

/* Told one by one, what was one step of the total comes down in as many (P-51). */
static bool tell_deallocated(const struct cw_record *record, void *argument)
{
	struct sums *sums = argument;
	struct cw_request request = cw_batch_request(sums->batch, record);

	if (request.kind < CUWEIR_KIND_COUNT && request.device == sums->device) {
		uint64_t *running = &sums->running[request.kind];

		request.before = *running;
		*running -= *running > request.charged ? request.charged : *running;
		request.after = *running;
	}
	for (uint32_t i = cw_heard_by(&request); i > 0; i--) {
		if (cw_gets_debug(&cw_chain.policies[i - 1], &request)) {
			cw_tell_deallocated(&cw_chain.policies[i - 1], &request);
		}
	}
	cw_handles_remove(CW_PITCHED_SPACE, request.pointer, NULL);
	return true;
}

void cw_context_end_begin(struct cw_context_end *end, CUcontext context, int device,
			  enum cw_hook_id hook, const void *site)
{
	cw_batch_begin(&end->batch, hook, site);
	end->batch.context = context;
	end->batch.flags |= CUWEIR_EVENT_CONTEXT_END;
	end->device = device;
	end->thread = cw_thread_id();
	cw_lock_acquire(&ending_lock);
	end->next = ending;
	ending = end;
	__atomic_fetch_add(&ending_count, 1, __ATOMIC_SEQ_CST);
	cw_lock_release(&ending_lock);
	cw_batch_take_if(&end->batch, belongs, context);
	cw_batch_announce(&end->batch);
	cw_held_context_ending(&end->batch);
}

static void ended_now(struct cw_context_end *end)
{
	cw_lock_acquire(&ending_lock);
	for (struct cw_context_end **link = &ending; *link != NULL; link = &(*link)->next) {
		if (*link == end) {
			*link = end->next;
			__atomic_fetch_sub(&ending_count, 1, __ATOMIC_SEQ_CST);
			break;
		}
	}
	cw_lock_release(&ending_lock);
}

static bool is_ending(CUcontext context)
{
	uint32_t self = cw_thread_id();
	bool found = false;

	cw_lock_acquire(&ending_lock);
	for (const struct cw_context_end *end = ending; end != NULL; end = end->next) {
		found |= end->batch.context == context && end->thread != self;
	}
	cw_lock_release(&ending_lock);
	return found;
}

void cw_context_end_wait(CUcontext context)
{
	const struct timespec pause = { .tv_nsec = 20000 };

	for (int i = 0; i < 5 * 50000; i++) {
		if (CW_LIKELY(__atomic_load_n(&ending_count, __ATOMIC_SEQ_CST) == 0) ||
		    !is_ending(context)) {
			return;
		}
		nanosleep(&pause, NULL);
	}
}

/* Threads of the parent are not there to end theirs. */
void cw_context_end_postfork_child(void)
{
	cw_lock_reset(&ending_lock);
	ending = NULL;
	ending_count = 0;
}

static bool add_up(const struct cw_record *record, void *argument)
{
	const struct cw_origin *origin = cw_origin_get(record->origin);
	struct sums *sums = argument;

	if (origin->kind >= CUWEIR_KIND_COUNT || origin->device != sums->device) {
		/* Made while the device could not be told: its total is another. */
		cw_account_sub(origin->device, origin->kind, record->size, origin->policy);
		return true;
	}
	sums->bytes[origin->kind] += record->size;
	cw_account_leave(origin->device, origin->kind, record->size, origin->policy);
	return true;
}

/* One check, with the final total. */
static int tell_thresholds(const struct cw_context_end *end, uint8_t kind, struct sums *sums)
{
	uint64_t bytes = sums->bytes[kind];
	int device = sums->device;
	struct cw_request request = {
		.hook = end->batch.hook,
		.call = end->batch.call,
		.site = end->batch.site,
		.context = end->batch.context,
		.device = device,
		.kind = kind,
		.flags = end->batch.flags,
		.requested = bytes,
		.charged = bytes,
		.in_callback = cw_thread.in_callback,
	};
	int result = CUWEIR_SUCCESS;

	request.before = cw_total_sub(device, kind, bytes);
	request.after = request.before > bytes ? request.before - bytes : 0;
	sums->running[kind] = request.before;
	if (cw_thread.in_callback != 0) {
		return result;
	}
	for (uint32_t i = cw_chain_count(); i > 0; i--) {
		struct cw_policy *policy = &cw_chain.policies[i - 1];

		if ((policy->kinds & CUWEIR_KIND_BIT(kind)) != 0 &&
		    cw_thresholds_down(cw_list(&policy->dealloc), device, request.before,
				       request.after)) {
			int status = cw_tell_dealloc_threshold(policy, &request);

			result = result == CUWEIR_SUCCESS ? status : result;
		}
	}
	return result;
}

int cw_context_end_finish(struct cw_context_end *end, bool ended)
{
	struct sums sums = { .batch = &end->batch, .device = end->device };
	int result = CUWEIR_SUCCESS;

	if (!ended) {
		cw_batch_put_back(&end->batch);
		ended_now(end);
		return CUWEIR_SUCCESS;
	}
	cw_batch_visit(&end->batch, add_up, &sums);
	for (uint8_t kind = 1; kind < CUWEIR_KIND_COUNT; kind++) {
		if (sums.bytes[kind] != 0) {
			int status = tell_thresholds(end, kind, &sums);

			result = result == CUWEIR_SUCCESS ? status : result;
		}
	}
	if (cw_batch_count(&end->batch) != 0) {
		cw_wait_freed();
	}
	cw_batch_visit(&end->batch, tell_deallocated, &sums);
	cw_batch_release(&end->batch);
	cw_held_context_ended(&end->batch);
	for (uint32_t i = cw_chain_count(); i > 0; i--) {
		cw_tell_context_ended(&cw_chain.policies[i - 1], end->batch.context,
				      end->device);
	}
	ended_now(end);
	return result;
}
