/* SPDX-License-Identifier: Apache-2.0 */
#include "release.h"

#include "account.h"
#include "handlers.h"
#include "wait.h"

CW_COLD void cw_release_announce(const struct cw_request *request, uint32_t outermost)
{
	uint32_t count = cw_heard_by(request);

	for (uint32_t i = outermost; i < count; i++) {
		if (cw_listens(&cw_chain.policies[i], request)) {
			cw_tell_before_free(&cw_chain.policies[i], request);
		}
	}
}

void cw_release_settle(struct cw_request *request)
{
	if (CW_UNLIKELY(request->keep_claim && request->owner == 0)) {
		request->before = cw_account_sub_kept(request->device, request->kind,
						      request->charged);
	} else {
		request->before = cw_account_sub(request->device, request->kind,
						 request->charged, request->owner);
	}
	request->after = request->before > request->charged
				 ? request->before - request->charged : 0;
	cw_wait_freed();
}

int cw_release_tell(struct cw_request *request, uint32_t outermost)
{
	int result = CUWEIR_SUCCESS;

	if (CW_LIKELY(outermost == CW_PLACE_PROGRAM)) {
		outermost = cw_chain_first();
	}
	for (uint32_t i = cw_heard_by(request); i > outermost; i--) {
		struct cw_policy *policy = &cw_chain.policies[i - 1];

		if (cw_watches(policy, request) &&
		    CW_UNLIKELY(cw_thresholds_down(cw_list(&policy->dealloc), request->device,
						   request->before, request->after))) {
			int status = cw_tell_dealloc_threshold(policy, request);

			result = result == CUWEIR_SUCCESS ? status : result;
		}
		if (cw_gets_debug(policy, request)) {
			cw_tell_deallocated(policy, request);
		}
	}
	return result;
}
