/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

#include <cuweir/policy.h>

#include "handlers.h"
#include "handles.h"
#include "message.h"
#include "origins.h"
#include "release.h"
#include "status.h"
#include "thread.h"
#include "totals.h"
#include "where.h"

void cw_batch_begin(struct cw_batch *batch, enum cw_hook_id hook, const void *site)
{
	batch->hook = hook;
	batch->call = hook;
	batch->site = site;
	if (cw_thread.runtime_hook != 0) {
		/* Within a runtime call: that is what the program called, and from where. */
		batch->call = (enum cw_hook_id)(cw_thread.runtime_hook - 1);
		batch->site = cw_thread.runtime_site;
	}
	batch->context = NULL;
	batch->stream = NULL;
	batch->flags = cw_thread.in_callback != 0 ? CUWEIR_EVENT_NESTED : 0u;
	if (CW_UNLIKELY(cw_capture_open())) {
		batch->flags |= CUWEIR_EVENT_CAPTURING;
	}
	batch->near_count = 0;
	batch->far = (struct cw_record_list){ 0 };
}

bool cw_batch_take(struct cw_batch *batch, uint64_t key)
{
	if (CW_LIKELY(batch->near_count < CW_BATCH_NEAR)) {
		if (!cw_ledger_remove(key, &batch->near[batch->near_count])) {
			return false;
		}
		batch->near_count++;
		return true;
	}
	return cw_ledger_detach(key, &batch->far);
}

void cw_batch_take_if(struct cw_batch *batch,
		      bool (*match)(const struct cw_record *record, void *argument),
		      void *argument)
{
	cw_ledger_detach_if(match, argument, &batch->far);
}

void cw_batch_visit(const struct cw_batch *batch,
		    bool (*visit)(const struct cw_record *record, void *argument), void *argument)
{
	for (uint32_t i = 0; i < batch->near_count; i++) {
		if (!visit(&batch->near[i], argument)) {
			return;
		}
	}
	cw_record_list_visit(&batch->far, visit, argument);
}

struct cw_request cw_batch_request(const struct cw_batch *batch, const struct cw_record *record)
{
	const struct cw_origin *origin = cw_origin_get(record->origin);
	struct cw_request request = {
		.hook = batch->hook,
		.call = batch->call,
		.site = batch->site,
		.context = batch->context != NULL ? batch->context
						  : (void *)(uintptr_t)origin->context,
		.stream = batch->stream,
		.device = origin->device,
		.kind = origin->kind,
		.origin_flags = origin->flags,
		.owner = origin->policy,
		.flags = batch->flags,
		.requested = record->size,
		.charged = record->size,
		.pointer = cw_key_handle(record->address),
		.space = (uint8_t)(record->address >> CW_KEY_SHIFT),
		.in_callback = cw_thread.in_callback,
	};
	struct cw_handle entry;

	if ((origin->flags & CW_ORIGIN_PITCHED) != 0 &&
	    cw_handles_get(CW_PITCHED_SPACE, request.pointer, &entry)) {
		request.requested = entry.value;
	}
	request.before = cw_total_current(request.device, request.kind);
	request.after = request.before;
	return request;
}

static bool announce(const struct cw_record *record, void *argument)
{
	struct cw_request request = cw_batch_request(argument, record);

	cw_release_announce(&request, 0);
	return true;
}

void cw_batch_announce(const struct cw_batch *batch)
{
	if (cw_chain_wants(CW_CHAIN_BEFORE_FREE)) {
		cw_batch_visit(batch, announce, (void *)(uintptr_t)batch);
	}
}

bool cw_batch_gone(CUresult result)
{
	return result == CUDA_SUCCESS || cw_status_ends_context((int)result);
}

struct settling {
	struct cw_batch *batch;
	int result;
	int told;
};

static bool settle(const struct cw_record *record, void *argument)
{
	struct settling *settling = argument;
	struct cw_request request = cw_batch_request(settling->batch, record);
	int told;

	request.status = settling->result;
	if ((request.origin_flags & CW_ORIGIN_PITCHED) != 0) {
		cw_handles_remove(CW_PITCHED_SPACE, request.pointer, NULL);
	}
	cw_release_settle(&request);
	told = cw_release_tell(&request, 0);
	settling->told = settling->told == CUWEIR_SUCCESS ? told : settling->told;
	return true;
}

CUresult cw_batch_finish(struct cw_batch *batch, CUresult result)
{
	struct settling settling = { .batch = batch, .result = (int)result };

	if (!cw_batch_gone(result)) {
		cw_batch_put_back(batch);
		return result;
	}
	if (result != CUDA_SUCCESS) {
		cw_note_fatal((int)result);
	}
	cw_batch_visit(batch, settle, &settling);
	cw_batch_release(batch);
	return result == CUDA_SUCCESS ? (CUresult)settling.told : result;
}

CW_COLD void cw_batch_put_back(struct cw_batch *batch)
{
	size_t lost = 0;

	for (uint32_t i = 0; i < batch->near_count; i++) {
		const struct cw_record *record = &batch->near[i];

		lost += cw_ledger_insert(record->address, record->size, record->origin) < 0;
	}
	batch->near_count = 0;
	lost += cw_record_list_reinsert(&batch->far);
	if (lost != 0) {
		cw_message(CW_ERROR, "%zu allocations that were not given back could not be "
				     "recorded again and are no longer counted", lost);
	}
}

void cw_batch_release(struct cw_batch *batch)
{
	batch->near_count = 0;
	cw_record_list_release(&batch->far);
}
