/* SPDX-License-Identifier: Apache-2.0 */
/* The host services of cuweir/policy.h. */
#ifndef CW_HOST_H
#define CW_HOST_H

#include "chain.h"
#include "pipeline.h"

/* Fills policy->host. */
void cw_host_init(struct cw_policy *policy);

/* Debug events: bit 0 for all policies, bit 1 where some policy always gets them, bit 2 where
 * the program's own handler wants them. */
extern CW_HIDDEN uint32_t cw_debug_;

static inline bool cw_debug_any(void)
{
	return CW_IS_SET(cw_debug_, __ATOMIC_RELAXED);
}

static inline bool cw_debug(void)
{
	return (__atomic_load_n(&cw_debug_, __ATOMIC_RELAXED) & 1) != 0;
}

void cw_debug_set(bool on);
void cw_debug_always(void);
void cw_debug_program(bool on);

/* The facts of a request as policies see them. */
void cw_event_fill(struct cuweir_event *event, const struct cw_request *request);

/* A record of the ledger as policies see it. */
struct cw_record;
void cw_record_fill(struct cuweir_record *ret, const struct cw_record *record);

#endif
