/* SPDX-License-Identifier: Apache-2.0 */
#include "grant.h"

#include "account.h"
#include "handlers.h"
#include "handles.h"
#include "held.h"
#include "ledger.h"
#include "message.h"
#include "origins.h"
#include "peaks.h"
#include "release.h"
#include "serve.h"
#include "stacks.h"
#include "status.h"
#include "totals.h"

/* Requested bytes of pitched memory are kept aside: a record holds what is charged. */
static void keep_requested(struct cw_request *request)
{
	if (CW_UNLIKELY(request->requested != request->charged) &&
	    cw_handles_set(CW_PITCHED_SPACE, request->pointer, request->requested, 0) >= 0) {
		request->origin_flags |= CW_ORIGIN_PITCHED;
	}
}

/* Its free took a way that no door hears; that the address came again says that it is gone. */
CW_COLD void cw_settle_stale(const struct cw_record *stale)
{
	const struct cw_origin *origin = cw_origin_get(stale->origin);

	cw_account_sub(origin->device, origin->kind, stale->size, origin->policy);
}

/* False where there is no room for the record. */
static bool record(struct cw_request *request)
{
	uint64_t stack = cw_stack_of(request->site);
	struct cw_origin origin = {
		.hook = (uint16_t)request->call,
		.kind = request->kind,
		.device = (int16_t)request->device,
		.policy = request->owner,
		.context = (uint64_t)(uintptr_t)request->context,
		.site = stack,
	};
	struct cw_record stale;
	uint32_t index;
	int replaced = -1;

	request->stack = stack;
	keep_requested(request);
	origin.flags = request->origin_flags;
	index = cw_origin_intern(&origin);
	if (CW_LIKELY(index != CW_ORIGIN_UNKNOWN)) {
		replaced = cw_ledger_replace(cw_request_key(request), request->charged, index,
					     &stale);
	}
	if (CW_UNLIKELY(replaced > 0)) {
		cw_settle_stale(&stale);
	}
	return CW_LIKELY(replaced >= 0);
}

/* Before the driver is asked (D-05). A reservation's claim is there already. */
static bool claim(struct cw_request *request)
{
	request->refused = 0;
	if (request->claimed != 0) {
		return true;
	}
	request->budget = cw_budget_of(request->device, request->kind);
	if (CW_LIKELY(request->budget == NULL)) {
		return true;
	}
	if (!cw_budget_claim(request->budget, request->requested)) {
		return false;
	}
	request->claimed = request->requested;
	return true;
}

static void unclaim(struct cw_request *request)
{
	if (request->claimed != 0 && !request->keep_claim) {
		cw_budget_return(request->budget, request->claimed);
		request->claimed = 0;
	}
}

/*
 * More is charged than was claimed: the pitch is known now, or the device of a runtime's first
 * call. The rest is claimed, or all undone.
 */
static CW_COLD CUresult claim_rest(struct cw_request *request)
{
	CUresult undone;

	if (cw_budget_claim(request->budget, request->charged - request->claimed)) {
		request->claimed = request->charged;
		return CUDA_SUCCESS;
	}
	undone = request->undo != NULL ? request->undo(request) : CUDA_ERROR_NOT_SUPPORTED;
	if (undone != CUDA_SUCCESS) {
		/* It is there to stay, so it counts. */
		cw_budget_force(request->budget, request->charged - request->claimed);
		request->claimed = request->charged;
		return CUDA_SUCCESS;
	}
	unclaim(request);
	request->refused = request->charged;
	request->pointer = 0;
	request->charged = request->requested;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * There is no memory for a record. The program has its own all the same (P-26); but not beside a
 * budget, which could not be given back. A claim on what cannot be undone stays for good.
 */
static CW_COLD CUresult unrecorded(struct cw_request *request)
{
	static unsigned int told;
	bool fails = request->owner != 0 ||
		     (cw_budget_limits(request->budget) && request->undo != NULL &&
		      request->undo(request) == CUDA_SUCCESS);

	cw_message_limited(CW_ERROR, &told,
			   "no memory for a record of %llu B by %s: the allocation %s",
			   (unsigned long long)request->charged, cw_hook_base(request->call),
			   fails ? "fails" : "is not counted");
	if (request->owner != 0) {
		return CUDA_SUCCESS; /* whose it is gets it back, see cw_grant_served */
	}
	if (!fails) {
		if (!cw_budget_limits(request->budget)) {
			unclaim(request);
		}
		return CUDA_SUCCESS;
	}
	if (request->origin_flags & CW_ORIGIN_PITCHED) {
		cw_handles_remove(CW_PITCHED_SPACE, request->pointer, NULL);
		request->origin_flags &= (uint8_t)~CW_ORIGIN_PITCHED;
	}
	unclaim(request);
	request->untold = false;
	request->hopeless = true;
	request->pointer = 0;
	request->charged = request->requested;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The memory is there: into the books. */
static CUresult enter_books(struct cw_request *request)
{
	request->status = CUDA_SUCCESS;
	request->untold = CW_UNLIKELY(!record(request));
	if (CW_UNLIKELY(request->untold)) {
		cw_count_untracked_allocation();
		return unrecorded(request);
	}
	request->before = cw_account_add(request->device, request->kind, request->charged,
					 request->owner);
	request->after = request->before + request->charged;
	if (CW_UNLIKELY(cw_peaks_wanted)) {
		cw_peak_note(request);
	}
	return CUDA_SUCCESS;
}

/* On another device than was thought: the claim is on that one's budget, as claim_rest makes it. */
static CW_COLD void locate(struct cw_request *request)
{
	struct cw_budget *budget;

	request->locate(request);
	budget = cw_budget_of(request->device, request->kind);
	if (budget != request->budget && !request->keep_claim) {
		unclaim(request);
		request->budget = budget;
	}
}

CUresult cw_grant(struct cw_request *request)
{
	CUresult result;

	request->owner = 0;
	if (CW_UNLIKELY(!claim(request))) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = request->perform(request);
	if (CW_UNLIKELY(result != CUDA_SUCCESS)) {
		unclaim(request);
		return result;
	}
	if (CW_UNLIKELY(request->locate != NULL)) {
		locate(request);
	}
	if (CW_UNLIKELY(request->budget != NULL && request->charged > request->claimed)) {
		result = claim_rest(request);
		if (result != CUDA_SUCCESS) {
			return result;
		}
	}
	return enter_books(request);
}

void cw_grant_answered(struct cw_request *request)
{
	request->owner = 0;
	(void)enter_books(request);
}

CUresult cw_grant_held(struct cw_request *request)
{
	CUresult result;

	if (!claim(request)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = request->perform(request);
	if (result != CUDA_SUCCESS) {
		unclaim(request);
		return result;
	}
	request->status = CUDA_SUCCESS;
	request->untold = false;
	if (!cw_held_enter(request)) {
		request->hopeless = true;
		unclaim(request);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

CUresult cw_grant_served(struct cw_request *request, uint32_t place, void *memory)
{
	unclaim(request);
	request->owner = (uint16_t)(place + 1);
	request->pointer = (uint64_t)(uintptr_t)memory;
	cw_held_bind(request);
	enter_books(request);
	if (CW_UNLIKELY(request->untold)) {
		/* Its free would reach the driver, who does not know this memory. */
		(void)cw_serve_undo(request);
		request->hopeless = true;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

static CW_COLD void tell_undo_failed(const struct cw_request *request, int status)
{
	static unsigned int told;

	cw_message_limited(CW_ERROR, &told,
			   "%s of %llu B was refused by a policy, but giving it back failed with "
			   "status %d; it stays allocated",
			   cw_hook_base(request->call), (unsigned long long)request->charged,
			   status);
}

/* What the next attempt at the same request starts from. */
static void begin_anew(struct cw_request *request)
{
	/* Settling gave the claim back, but for a reservation's, which is kept to the end. */
	if (!request->keep_claim) {
		request->claimed = 0;
	}
	request->pointer = 0;
	request->charged = request->requested;
	request->flags &= ~(uint32_t)CUWEIR_EVENT_UNDO;
	request->origin_flags &= (uint8_t)~CW_ORIGIN_PITCHED;
}

/*
 * Undone below the handlers. Those inside the vetoing one were told of the allocation, and are
 * told of its free as of any other (D-12).
 */
static CW_COLD CUresult veto(struct cw_request *request, uint32_t place, int status)
{
	struct cw_record detached;
	CUresult undone;
	bool recorded;

	if (request->undo == NULL && request->owner == 0) {
		static unsigned int told;

		cw_message_limited(CW_ERROR, &told,
				   "%s cannot be undone; status %d of policy %s is ignored",
				   cw_hook_base(request->call), status,
				   cw_chain.policies[place].table.name);
		return CUDA_SUCCESS;
	}
	request->flags |= CUWEIR_EVENT_UNDO;
	recorded = cw_ledger_remove(cw_request_key(request), &detached);
	request->before = cw_total_current(request->device, request->kind);
	request->after = request->before;
	cw_release_announce(request, place + 1);
	undone = request->owner != 0 ? cw_serve_undo(request) : request->undo(request);
	if (undone != CUDA_SUCCESS && !cw_status_ends_context((int)undone)) {
		if (recorded) {
			cw_ledger_replace(detached.address, detached.size, detached.origin, NULL);
		}
		tell_undo_failed(request, (int)undone);
	} else {
		if (request->origin_flags & CW_ORIGIN_PITCHED) {
			cw_handles_remove(CW_PITCHED_SPACE, request->pointer, NULL);
		}
		cw_release_settle(request);
		cw_release_tell(request, place + 1);
	}
	begin_anew(request);
	return (CUresult)status;
}

CUresult cw_grant_tell(struct cw_request *request, uint32_t place)
{
	struct cw_policy *policy = &cw_chain.policies[place];

	if (CW_UNLIKELY(request->untold)) {
		return CUDA_SUCCESS;
	}
	if (cw_watches(policy, request) &&
	    CW_UNLIKELY(cw_thresholds_up(cw_list(&policy->alloc), request->device, request->before,
					 request->after))) {
		int status = cw_tell_alloc_threshold(policy, request);

		if (status != CUWEIR_SUCCESS) {
			CUresult result = veto(request, place, status);

			if (result != CUDA_SUCCESS) {
				return result;
			}
		}
	}
	if (cw_gets_debug(policy, request)) {
		cw_tell_allocated(policy, request);
	}
	return CUDA_SUCCESS;
}
