/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call that gives several allocations back: an unmapping that spans many, the end of a
 * context. Begun before the call, with the records taken out of the ledger; finished after it,
 * when each is settled and told, or all are put back. A call that ends none costs nothing.
 *
 * A batch lives on the stack of one thread. No lock is held; policies are called in announce
 * and in finish.
 */
#ifndef CW_BATCH_H
#define CW_BATCH_H

#include <stdbool.h>

#include "cuda_api.h"
#include "hooks.h"
#include "ledger.h"
#include "pipeline.h"

enum { CW_BATCH_NEAR = 8 };

struct cw_batch {
	enum cw_hook_id hook;
	enum cw_hook_id call;
	const void *site;
	void *context; /* that of the records where this is NULL */
	void *stream;
	uint32_t flags; /* CUWEIR_EVENT_... */
	/* The first few; an unmapping rarely ends more. */
	struct cw_record near[CW_BATCH_NEAR];
	uint32_t near_count;
	struct cw_record_list far;
};

void cw_batch_begin(struct cw_batch *batch, enum cw_hook_id hook, const void *site);

static inline size_t cw_batch_count(const struct cw_batch *batch)
{
	return batch->near_count + batch->far.count;
}

/* Takes the record with this key (cw_key) out of the ledger; false where there is none. */
bool cw_batch_take(struct cw_batch *batch, uint64_t key);

/* Takes all for which match is true (see cw_ledger_detach_if). */
void cw_batch_take_if(struct cw_batch *batch,
		      bool (*match)(const struct cw_record *record, void *argument),
		      void *argument);

void cw_batch_visit(const struct cw_batch *batch,
		    bool (*visit)(const struct cw_record *record, void *argument), void *argument);

/* The free of one of the batch's allocations, as the handlers are told of it. */
struct cw_request cw_batch_request(const struct cw_batch *batch, const struct cw_record *record);

/* before_free for each. */
void cw_batch_announce(const struct cw_batch *batch);

/* Whether what a call was to give back is gone after this result (D-07). */
bool cw_batch_gone(CUresult result);

/*
 * After the call: each allocation is settled and told as a free of its own, or all go back.
 * The result for the program: the call's own, or else the first status of a dealloc-threshold
 * callback.
 */
CUresult cw_batch_finish(struct cw_batch *batch, CUresult result);

/* The parts of finish, for a caller who tells otherwise. */
void cw_batch_put_back(struct cw_batch *batch);
void cw_batch_release(struct cw_batch *batch);

#endif
