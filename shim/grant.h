/* SPDX-License-Identifier: Apache-2.0 */
/* The memory is there: recording it, telling a policy of it, and undoing it (D-06). */
#ifndef CW_GRANT_H
#define CW_GRANT_H

#include "ledger.h"
#include "pipeline.h"

/*
 * Asks the driver; on success the allocation is in the books. request->untold is set where
 * there was no room for a record: then it is the program's all the same, and nobody is told.
 */
CUresult cw_grant(struct cw_request *request);

/* The same, where the driver has been asked already and has given the memory. */
void cw_grant_answered(struct cw_request *request);

/* A record whose free no door heard is out of the ledger: out of the totals, too. */
void cw_settle_stale(const struct cw_record *stale);

/* As cw_grant, for memory that a policy takes through `next`: it is held, not the program's. */
CUresult cw_grant_held(struct cw_request *request);

/* The policy at this place has served the request with memory of its own. */
CUresult cw_grant_served(struct cw_request *request, uint32_t place, void *memory);

/*
 * Tells the policy at this place in the chain: its threshold, then its debug event. The
 * status of a veto, when the allocation has been undone and those inside were told.
 */
CUresult cw_grant_tell(struct cw_request *request, uint32_t place);

#endif
