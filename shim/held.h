/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What policies hold that serve memory (D-11): blocks that they have taken through `next`. They
 * were taken from the driver, and count against budgets; they are not the program's. Any thread.
 */
#ifndef CW_HELD_H
#define CW_HELD_H

#include "pipeline.h"

/* Of a request's arguments: the place behind the policy that takes the block. */
enum { CW_HELD_PLACE };

/* A block taken through `next` enters the books as held; false: no room, and it went back. */
bool cw_held_enter(struct cw_request *request);

/* Memory that is handed out goes with the context that its block goes with. */
void cw_held_bind(struct cw_request *request);

/* Whether this memory is some policy's, so that its free never is the driver's. */
bool cw_is_served(uint64_t pointer);

/*
 * Whether a policy has it from `next`. A free of it that finds no record is of memory that the
 * policy has back already, and the driver would take the policy's block.
 */
bool cw_is_held(uint64_t pointer);

/* Either: a captured free of it is none of the graph's. */
static inline bool cw_is_policys(uint64_t pointer)
{
	return cw_is_served(pointer) || cw_is_held(pointer);
}

/* Memory held through `next` that goes with a context: announced, and no longer held. */
struct cw_batch;
void cw_held_context_ending(const struct cw_batch *end);
void cw_held_context_ended(const struct cw_batch *end);

/*
 * Gives a block back to the driver, and tells the policies behind. *ret_result is the driver's
 * answer; where that leaves the memory there (cw_batch_gone), it is still held. False: it is no
 * block of theirs.
 */
bool cw_held_free(uint64_t pointer, void *stream, CUresult *ret_result);

#endif
