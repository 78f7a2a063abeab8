/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline.h"

#include "aliases.h"
#include "attempt.h"
#include "budget.h"
#include "grant.h"
#include "handlers.h"
#include "handles.h"
#include "held.h"
#include "ledger.h"
#include "oom.h"
#include "origins.h"
#include "release.h"
#include "result.h"
#include "serve.h"
#include "status.h"
#include "thread.h"
#include "totals.h"
#include "where.h"

static uint64_t untracked_frees;
static uint64_t untracked_allocations;
static uint64_t failed_allocations;
static uint64_t retries;
static bool context_lost;

uint64_t cw_untracked_frees(void)
{
	return __atomic_load_n(&untracked_frees, __ATOMIC_RELAXED);
}

uint64_t cw_failed_allocations(void)
{
	return __atomic_load_n(&failed_allocations, __ATOMIC_RELAXED);
}

uint64_t cw_retries(void)
{
	return __atomic_load_n(&retries, __ATOMIC_RELAXED);
}

void cw_count_retry(void)
{
	__atomic_fetch_add(&retries, 1, __ATOMIC_RELAXED);
}

uint64_t cw_untracked_allocations(void)
{
	return __atomic_load_n(&untracked_allocations, __ATOMIC_RELAXED);
}

void cw_count_untracked_allocation(void)
{
	__atomic_fetch_add(&untracked_allocations, 1, __ATOMIC_RELAXED);
}

bool cw_context_lost(void)
{
	return __atomic_load_n(&context_lost, __ATOMIC_RELAXED);
}

CW_COLD void cw_count_untracked_free(void)
{
	__atomic_fetch_add(&untracked_frees, 1, __ATOMIC_RELAXED);
}

CW_COLD void cw_note_fatal(int status)
{
	if (status != CUDA_ERROR_DEINITIALIZED) {
		__atomic_store_n(&context_lost, true, __ATOMIC_RELAXED);
		cw_result_lost();
	}
}

static CW_COLD void tell_policies_of_failure(struct cw_request *request)
{
	request->before = cw_total_current(request->device, request->kind);
	request->after = request->before;
	for (uint32_t i = cw_chain_count(); i > 0; i--) {
		if (cw_listens(&cw_chain.policies[i - 1], request)) {
			cw_tell_alloc_failed(&cw_chain.policies[i - 1], request);
		}
	}
}

static CW_COLD void tell_failed(struct cw_request *request)
{
	if (request->status == CUDA_ERROR_OUT_OF_MEMORY) {
		__atomic_fetch_add(&failed_allocations, 1, __ATOMIC_RELAXED);
		cw_result_refused();
		cw_oom_tell(request);
	}
	tell_policies_of_failure(request);
}

static inline void start(struct cw_request *request)
{
	request->in_callback = cw_thread.in_callback;
	if (CW_UNLIKELY(request->in_callback != 0)) {
		request->flags |= CUWEIR_EVENT_NESTED;
	}
	if (CW_UNLIKELY(cw_capture_open())) {
		request->flags |= CUWEIR_EVENT_CAPTURING;
	}
}

static CUresult finish(struct cw_request *request, CUresult result)
{
	request->status = (int)result;
	if (CW_UNLIKELY(result != CUDA_SUCCESS)) {
		if (cw_status_ends_context((int)result)) {
			cw_note_fatal((int)result);
		}
		tell_failed(request);
		return result;
	}
	return CUDA_SUCCESS;
}

CUresult cw_allocate(struct cw_request *request)
{
	start(request);
	return finish(request, cw_attempt(request));
}

CW_COLD CUresult cw_allocate_rest(struct cw_request *request, CUresult result, bool entered)
{
	start(request);
	if (result == CUDA_SUCCESS && !entered) {
		cw_grant_answered(request);
	}
	return finish(request, cw_attempt_answered(request, result));
}

/* What is in no book of ours: the driver's own answer, untouched. */
static CW_COLD CUresult free_unknown(struct cw_request *request)
{
	bool alias = cw_alias_forget(cw_request_key(request));
	CUresult result;

	if (!alias) {
		__atomic_fetch_add(&untracked_frees, 1, __ATOMIC_RELAXED);
	}
	if (request->space == CW_KEY_ADDRESS && cw_is_held(request->pointer)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	result = request->perform(request);
	if (alias && result != CUDA_SUCCESS && !cw_status_ends_context((int)result)) {
		cw_alias_note(cw_request_key(request));
	}
	return result;
}

void cw_facts_of(struct cw_request *request, const struct cw_record *detached)
{
	const struct cw_origin *origin = cw_origin_get(detached->origin);
	struct cw_handle entry;

	request->kind = origin->kind;
	request->device = origin->device;
	request->context = (void *)(uintptr_t)origin->context;
	request->origin_flags = origin->flags;
	request->owner = origin->policy;
	request->charged = detached->size;
	request->requested = detached->size;
	if (CW_UNLIKELY(origin->flags & CW_ORIGIN_PITCHED) &&
	    cw_handles_remove(CW_PITCHED_SPACE, request->pointer, &entry)) {
		request->requested = entry.value;
	}
}

static CW_COLD void put_back(struct cw_request *request, const struct cw_record *detached)
{
	if (request->origin_flags & CW_ORIGIN_PITCHED) {
		cw_handles_set(CW_PITCHED_SPACE, request->pointer, request->requested, 0);
	}
	/* An address that was handed out again meanwhile belongs to its new record. */
	cw_ledger_insert(detached->address, detached->size, detached->origin);
}

CUresult cw_deallocate(struct cw_request *request)
{
	struct cw_record detached;

	if (CW_UNLIKELY(!cw_ledger_remove(cw_request_key(request), &detached))) {
		return free_unknown(request);
	}
	return cw_deallocate_detached(request, &detached);
}

/* The driver, or the policy that served it, has answered. */
static CUresult settle(struct cw_request *request, const struct cw_record *detached,
		       CUresult result, bool settled)
{
	int told;

	request->status = (int)result;
	if (CW_UNLIKELY(result != CUDA_SUCCESS)) {
		if (!cw_status_ends_context((int)result)) {
			put_back(request, detached);
			return result;
		}
		cw_note_fatal((int)result);
	}
	if (!settled) {
		cw_release_settle(request);
	}
	told = cw_release_tell(request, 0);
	return result == CUDA_SUCCESS ? (CUresult)told : result;
}

CW_COLD CUresult cw_deallocate_rest(struct cw_request *request, const struct cw_record *detached,
				    CUresult result, bool settled)
{
	cw_facts_of(request, detached);
	start(request);
	return settle(request, detached, result, settled);
}

CUresult cw_deallocate_detached(struct cw_request *request, const struct cw_record *detached)
{
	CUresult result;

	cw_facts_of(request, detached);
	start(request);
	if (CW_UNLIKELY(cw_chain_wants(CW_CHAIN_BEFORE_FREE))) {
		request->before = cw_total_current(request->device, request->kind);
		request->after = request->before;
		cw_release_announce(request, 0);
	}
	result = CW_UNLIKELY(request->owner != 0) ? cw_serve_free(request)
						  : request->perform(request);
	return settle(request, detached, result, false);
}

static CUresult already_done(struct cw_request *request)
{
	(void)request;
	return CUDA_SUCCESS;
}

void cw_adopt(struct cw_request *request)
{
	start(request);
	request->perform = already_done;
	request->undo = NULL;
	/* It is there, over a budget too; some of it may have been claimed beforehand. */
	request->budget = cw_budget_of(request->device, request->kind);
	if (CW_UNLIKELY(request->budget != NULL)) {
		cw_budget_force(request->budget, request->charged - request->claimed);
		request->claimed = request->charged;
	}
	(void)cw_grant(request);
	for (uint32_t i = cw_chain_count(); i > 0; i--) {
		(void)cw_grant_tell(request, i - 1);
	}
}

CUresult cw_forget(struct cw_request *request)
{
	struct cw_record detached;

	if (!cw_ledger_remove(cw_request_key(request), &detached)) {
		request->charged = 0;
		return CUDA_SUCCESS;
	}
	cw_facts_of(request, &detached);
	start(request);
	if (CW_UNLIKELY(cw_chain_wants(CW_CHAIN_BEFORE_FREE))) {
		request->before = cw_total_current(request->device, request->kind);
		request->after = request->before;
		cw_release_announce(request, 0);
	}
	cw_release_settle(request);
	return (CUresult)cw_release_tell(request, 0);
}

CUresult cw_ask_for_launch(struct cw_request *request)
{
	start(request);
	return cw_admit(request);
}

void cw_refuse_launch(struct cw_request *request, CUresult status, bool refused)
{
	start(request);
	if (refused) {
		(void)finish(request, status);
	} else {
		request->status = (int)status;
		tell_policies_of_failure(request);
	}
}
