/* SPDX-License-Identifier: Apache-2.0 */
#include "attempt.h"

#include <time.h>

#include "config.h"
#include "grant.h"
#include "handlers.h"
#include "message.h"
#include "release.h"
#include "serve.h"
#include "totals.h"
#include "wait.h"

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Told while it lasts: a handler that always says yes may never return to the program. */
static void watch_time(struct cw_request *request)
{
	const int64_t patience_ns = 10000000000;
	int64_t now = now_ns();

	if (request->first_failure_ns == 0) {
		request->first_failure_ns = now;
	} else if (!request->slow_told && now - request->first_failure_ns > patience_ns) {
		request->slow_told = true;
		cw_message(CW_ERROR,
			   "%s of %llu B has been retried for 10 s, %lld times; CUWEIR_MAX_RETRIES "
			   "would end it",
			   cw_hook_base(request->call), (unsigned long long)request->requested,
			   (long long)request->retries);
	}
}

/* From the first failure on every free is heard, so that a handler can wait for one. */
static void listen(struct cw_request *request)
{
	uint32_t seen;

	if (!request->listening) {
		seen = cw_wait_listen();
		request->frees_seen = seen;
		request->listening = true;
	}
}

static void show_current_total(struct cw_request *request)
{
	request->before = cw_total_current(request->device, request->kind);
	request->after = request->before;
}

static bool retries(struct cw_policy *policy, struct cw_request *request, int retry_count)
{
	if (cw_is_nested(request) || request->hopeless) {
		return false;
	}
	if (cw_config.max_retries >= 0 && request->retries >= cw_config.max_retries) {
		return false;
	}
	listen(request);
	watch_time(request);
	request->retry_count = retry_count;
	request->status = CUDA_ERROR_OUT_OF_MEMORY;
	show_current_total(request);
	if (!cw_ask_alloc_failure(policy, request)) {
		return false;
	}
	request->retries++;
	cw_count_retry();
	request->frees_seen = cw_wait_frees_heard();
	return true;
}

static CUresult admitted(struct cw_policy *policy, struct cw_request *request)
{
	if (policy->table.admit == NULL || !cw_listens(policy, request)) {
		return CUDA_SUCCESS;
	}
	show_current_total(request);
	return (CUresult)cw_ask_admit(policy, request);
}

/*
 * The policy at `place`, all that stands behind it, and the driver. Where an attempt has been
 * made already that failed behind the policy at request->resume - 1, its outcome stands for
 * the first one there.
 */
static CUresult attempt_from(struct cw_request *request, uint32_t place, uint32_t count)
{
	struct cw_policy *policy;
	CUresult result;

	if (request->resume == place + 1) {
		request->resume = 0;
		return (CUresult)request->status;
	}
	/* At or past: the chain may have been closed since a policy took its turn. */
	if (place >= count) {
		return request->flags & CUWEIR_EVENT_HELD ? cw_grant_held(request)
							  : cw_grant(request);
	}
	policy = &cw_chain.policies[place];
	if (request->resume == 0) {
		result = admitted(policy, request);
		if (result != CUDA_SUCCESS) {
			return result;
		}
	}
	for (int retry_count = 0;; retry_count++) {
		if (request->resume == 0 && cw_serves(policy, request)) {
			result = cw_serve(request, place);
		} else {
			result = attempt_from(request, place + 1, count);
		}
		if (result == CUDA_SUCCESS) {
			return cw_grant_tell(request, place);
		}
		if (result != CUDA_ERROR_OUT_OF_MEMORY ||
		    !retries(policy, request, retry_count)) {
			return result;
		}
	}
}

static CW_COLD CUresult attempt_stack(struct cw_request *request, uint32_t place, uint32_t count)
{
	CUresult result = attempt_from(request, place, count);

	if (request->listening) {
		cw_wait_leave();
		request->listening = false;
	}
	request->retry_count = 0;
	return result;
}

/* As attempt_from at the outermost; for the common case: nobody refuses beforehand. */
CUresult cw_attempt(struct cw_request *request)
{
	if (CW_UNLIKELY(cw_chain_wants(CW_CHAIN_ASKS))) {
		return attempt_stack(request, cw_chain_first(), cw_chain_count());
	}
	return cw_attempt_answered(request, cw_grant(request));
}

CUresult cw_attempt_answered(struct cw_request *request, CUresult result)
{
	uint32_t count = cw_chain_count();
	uint32_t first = cw_chain_first();
	uint32_t place = count;

	while (CW_LIKELY(result == CUDA_SUCCESS) && place > first) {
		result = cw_grant_tell(request, --place);
	}
	if (CW_LIKELY(result != CUDA_ERROR_OUT_OF_MEMORY) || place <= first) {
		return result;
	}
	request->status = (int)result;
	request->resume = place + 1;
	return attempt_stack(request, first, count);
}

CUresult cw_attempt_behind(struct cw_request *request, uint32_t place)
{
	return attempt_stack(request, place, cw_chain_count());
}

CUresult cw_admit(struct cw_request *request)
{
	uint32_t count = cw_chain_wants(CW_CHAIN_ASKS) ? cw_chain_count() : 0;
	CUresult result = CUDA_SUCCESS;

	for (uint32_t i = cw_chain_first(); i < count && result == CUDA_SUCCESS; i++) {
		result = admitted(&cw_chain.policies[i], request);
	}
	return result;
}
