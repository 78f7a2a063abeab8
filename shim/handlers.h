/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calling a policy: every call into a plugin goes through here, which keeps errno, marks the
 * thread as being in that policy's callback (D-13) and hands over the facts. No lock is held.
 */
#ifndef CW_HANDLERS_H
#define CW_HANDLERS_H

#include "chain.h"
#include "pipeline.h"

/* 0 where the policy has no such callback. A status that CUDA does not know becomes 999. */
int cw_ask_admit(struct cw_policy *policy, const struct cw_request *request);
int cw_tell_alloc_threshold(struct cw_policy *policy, const struct cw_request *request);
int cw_tell_dealloc_threshold(struct cw_policy *policy, const struct cw_request *request);

/* False where the policy has none, is not safe while a capture is open, or says no. */
bool cw_ask_alloc_failure(struct cw_policy *policy, const struct cw_request *request);

void cw_tell_allocated(struct cw_policy *policy, const struct cw_request *request);
void cw_tell_deallocated(struct cw_policy *policy, const struct cw_request *request);
void cw_tell_before_free(struct cw_policy *policy, const struct cw_request *request);
void cw_tell_alloc_failed(struct cw_policy *policy, const struct cw_request *request);
/* Does nothing where the policy has no such callback. */
void cw_ask_memory_info(struct cw_policy *policy, struct cuweir_memory_info *info);

void cw_tell_context_ended(struct cw_policy *policy, void *context, int device);
void cw_tell_stream_ended(struct cw_policy *policy, void *context, void *stream);

#endif
