/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving memory back: the books and the handlers' half of it, for a free and for a veto.
 * `outermost` is the first policy of the chain that is told.
 */
#ifndef CW_RELEASE_H
#define CW_RELEASE_H

#include "chain.h"
#include "host.h"
#include "pipeline.h"

static inline bool cw_is_nested(const struct cw_request *request)
{
	return (request->flags & CUWEIR_EVENT_NESTED) != 0;
}

/* What is not about thresholds reaches every policy that this thread is not in (D-13). */
static inline bool cw_listens(const struct cw_policy *policy, const struct cw_request *request)
{
	return (policy->bit & request->in_callback) == 0;
}

static inline bool cw_watches(const struct cw_policy *policy, const struct cw_request *request)
{
	return (__atomic_load_n(&policy->kinds, __ATOMIC_RELAXED) &
		CUWEIR_KIND_BIT(request->kind)) != 0 &&
	       (request->flags & (CUWEIR_EVENT_NESTED | CUWEIR_EVENT_HELD)) == 0;
}

static inline bool cw_gets_debug(const struct cw_policy *policy, const struct cw_request *request)
{
	return CW_UNLIKELY(cw_debug_any()) && cw_listens(policy, request) &&
	       (cw_debug() || (policy->table.flags & CUWEIR_POLICY_DEBUG) != 0);
}

/* How many policies, from the outermost, hear of it: not those behind the one that serves. */
static inline uint32_t cw_heard_by(const struct cw_request *request)
{
	uint32_t count = cw_chain_count();

	return CW_UNLIKELY(request->owner != 0) && request->owner < count ? request->owner : count;
}

/* Outermost first: a free enters the stack from the program's side. */
void cw_release_announce(const struct cw_request *request, uint32_t outermost);

/* The memory is gone: the total moves, and who waits for a free is woken. */
void cw_release_settle(struct cw_request *request);

/* Innermost first; returns the first status that a dealloc-threshold callback gave. */
int cw_release_tell(struct cw_request *request, uint32_t outermost);

#endif
