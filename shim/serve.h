/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies that serve memory: asking one for it, giving it back to the one whose it is, and
 * what stands behind such a policy (`next`). Memory that a policy takes through `next` is held
 * by it (D-11): not the program's, but taken from the driver.
 */
#ifndef CW_SERVE_H
#define CW_SERVE_H

#include "chain.h"
#include "pipeline.h"

/* Whether the policy has an allocator for this, and is not at work in this thread already. */
bool cw_serves(const struct cw_policy *policy, const struct cw_request *request);

/* Asks it; on success the memory is in the books. */
CUresult cw_serve(struct cw_request *request, uint32_t place);

/* request->pointer back to request->owner: of a veto, and of a free. */
CUresult cw_serve_undo(struct cw_request *request);
CUresult cw_serve_free(struct cw_request *request);

/*
 * Has the policy whose memory it is grow or shrink it; `detached` is its record, out of the
 * ledger, and the request's facts are those of it. NULL: not done, and all is as it was.
 */
struct cw_record;
bool cw_serve_can_reallocate(const struct cw_record *record);
void *cw_serve_reallocate(struct cw_request *request, const struct cw_record *detached,
			  uint64_t alignment, uint64_t new_size);

/*
 * Makes the context current that memory is for, where another one is: its blocks are then taken and
 * ordered in the right one. True: to be undone, with what the thread was before.
 */
struct cw_thread;
bool cw_context_push(CUcontext wanted);
void cw_context_pop(const struct cw_thread *before);

/* The next of struct cuweir_host. */
extern const struct cuweir_allocator cw_next;

#endif
