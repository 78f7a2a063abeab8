/* SPDX-License-Identifier: Apache-2.0 */
#include "context_end.h"

#include <string.h>

#include "counts.h"
#include "handlers.h"
#include "handles.h"
#include "message.h"
#include "origins.h"
#include "pipeline.h"
#include "release.h"
#include "thread.h"
#include "totals.h"
#include "wait.h"

static bool belongs(const struct cw_record *record, void *argument)
{
	const struct cw_origin *origin = cw_origin_get(record->origin);

	return origin->context == (uint64_t)(uintptr_t)argument &&
	       (origin->flags & CW_ORIGIN_CONTEXT_BOUND) != 0;
}

static struct cw_request request_of(const struct cw_context_end *end,
				    const struct cw_record *record)
{
	const struct cw_origin *origin = cw_origin_get(record->origin);
	struct cw_request request = {
		.hook = end->call,
		.call = end->call,
		.site = end->site,
		.context = end->context,
		.device = origin->device,
		.kind = origin->kind,
		.origin_flags = origin->flags,
		.flags = CUWEIR_EVENT_CONTEXT_END,
		.requested = record->size,
		.charged = record->size,
		.pointer = cw_key_handle(record->address),
		.space = (uint8_t)(record->address >> CW_KEY_SHIFT),
		.in_callback = cw_thread.in_callback,
	};
	struct cw_handle entry;

	if ((origin->flags & CW_ORIGIN_PITCHED) != 0 &&
	    cw_handles_get(CW_PITCHED_SPACE, record->address, &entry)) {
		request.requested = entry.value;
	}
	request.before = cw_total_current(request.device, request.kind);
	request.after = request.before;
	return request;
}

static bool tell_before_free(const struct cw_record *record, void *argument)
{
	struct cw_request request = request_of(argument, record);

	cw_release_announce(&request, 0);
	return true;
}

static bool tell_deallocated(const struct cw_record *record, void *argument)
{
	struct cw_request request = request_of(argument, record);

	for (uint32_t i = cw_chain_count(); i > 0; i--) {
		if (cw_gets_debug(&cw_chain.policies[i - 1], &request)) {
			cw_tell_deallocated(&cw_chain.policies[i - 1], &request);
		}
	}
	cw_handles_remove(CW_PITCHED_SPACE, record->address, NULL);
	return true;
}

void cw_context_end_begin(struct cw_context_end *end, CUcontext context, int device,
			  enum cw_hook_id call, const void *site)
{
	memset(end, 0, sizeof(*end));
	end->context = context;
	end->device = device;
	end->call = call;
	end->site = site;
	cw_ledger_detach_if(belongs, context, &end->records);
	if (cw_chain.has_before_free) {
		cw_record_list_visit(&end->records, tell_before_free, end);
	}
}

struct sums {
	uint64_t bytes[CUWEIR_KIND_COUNT];
	int device;
};

static bool add_up(const struct cw_record *record, void *argument)
{
	const struct cw_origin *origin = cw_origin_get(record->origin);
	struct sums *sums = argument;

	if (origin->kind < CUWEIR_KIND_COUNT) {
		sums->bytes[origin->kind] += record->size;
	}
	sums->device = origin->device;
	cw_count_free(origin->device, origin->kind);
	return true;
}

/* One check, with the final total. */
static int tell_thresholds(const struct cw_context_end *end, int device, uint8_t kind,
			   uint64_t bytes)
{
	struct cw_request request = {
		.hook = end->call,
		.call = end->call,
		.site = end->site,
		.context = end->context,
		.device = device,
		.kind = kind,
		.flags = CUWEIR_EVENT_CONTEXT_END,
		.requested = bytes,
		.charged = bytes,
	};
	int result = CUWEIR_SUCCESS;

	request.before = cw_total_sub(device, kind, bytes);
	request.after = request.before > bytes ? request.before - bytes : 0;
	if (cw_thread.in_callback != 0) {
		return result;
	}
	for (uint32_t i = cw_chain_count(); i > 0; i--) {
		struct cw_policy *policy = &cw_chain.policies[i - 1];

		if ((policy->kinds & CUWEIR_KIND_BIT(kind)) != 0 &&
		    cw_thresholds_down(&policy->dealloc, device, request.before,
				       request.after)) {
			int status = cw_tell_dealloc_threshold(policy, &request);

			result = result == CUWEIR_SUCCESS ? status : result;
		}
	}
	return result;
}

static CW_COLD int put_back(struct cw_context_end *end)
{
	size_t lost = cw_record_list_reinsert(&end->records);

	if (lost != 0) {
		cw_message(CW_ERROR, "%zu allocations of a context that was not ended could not be "
				     "recorded again and are no longer counted", lost);
	}
	return CUWEIR_SUCCESS;
}

int cw_context_end_finish(struct cw_context_end *end, bool ended)
{
	struct sums sums = { .device = end->device };
	int result = CUWEIR_SUCCESS;

	if (!ended) {
		return put_back(end);
	}
	cw_record_list_visit(&end->records, add_up, &sums);
	for (uint8_t kind = 1; kind < CUWEIR_KIND_COUNT; kind++) {
		if (sums.bytes[kind] != 0) {
			int status = tell_thresholds(end, sums.device, kind, sums.bytes[kind]);

			result = result == CUWEIR_SUCCESS ? status : result;
		}
	}
	if (end->records.count != 0) {
		cw_wait_freed();
	}
	cw_record_list_visit(&end->records, tell_deallocated, end);
	cw_record_list_release(&end->records);
	for (uint32_t i = cw_chain_count(); i > 0; i--) {
		cw_tell_context_ended(&cw_chain.policies[i - 1], end->context, end->device);
	}
	return result;
}
