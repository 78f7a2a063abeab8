/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain way of an operation, on which all but a few calls of a program go: no policy is to
 * be asked beforehand, the driver does what it is asked, no total comes to a threshold and
 * nobody wants events. It does what pipeline.c does of it, in the same order, and nothing else;
 * as soon as anything is not plain, pipeline.c goes on from there. Costs are counted here by
 * the instruction: docs/performance.md, tests/bench/limits.txt.
 */
#ifndef CW_PLAIN_H
#define CW_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "budget.h"
#include "counts.h"
#include "host.h"
#include "hooks.h"
#include "ledger_inline.h"
#include "origins.h"
#include "pipeline.h"
#include "thread.h"
#include "totals.h"
#include "wait.h"

/* Why no call of the process is plain. */
enum {
	CW_PLAIN_NOT_OPEN = 1u << 0, /* or the driver door is off */
	CW_PLAIN_ASKS = 1u << 1,     /* a policy admits, serves, or hears of frees before */
	CW_PLAIN_BUDGET = 1u << 2,
	CW_PLAIN_PROGRAM = 1u << 3,  /* the program's own handler, which comes and goes */
	CW_PLAIN_RESULT = 1u << 4,   /* the ledger is watched, which plain calls do not tell */
	CW_PLAIN_STACKS = 1u << 5,   /* call sites are stacks, which take time */
};

extern CW_HIDDEN uint32_t cw_plain_reasons_; /* 0: calls may be plain */

/* At the end of the opening, when the chain is complete. */
void cw_plain_open(void);
void cw_plain_set(uint32_t reason);
void cw_plain_clear(uint32_t reason);
void cw_plain_postfork_child(void);

static inline bool cw_is_plain(void)
{
	/* Acquire: whoever sees the opening sees the chain. */
	return CW_LIKELY(!CW_IS_SET(cw_plain_reasons_, __ATOMIC_ACQUIRE)) &&
	       CW_LIKELY(cw_thread_is_free());
}

/*
 * What this thread's last plain allocation had in common with the next one, as likely as not:
 * where it was made, and which books that means. One for each thread, of cuMemAlloc alone.
 */
struct cw_plain_place {
	const void *caller; /* of the driver's function */
	const void *runtime_site;
	const void *context;
	uint64_t how;       /* cw_thread_how */
	struct cw_total *total;
	struct cw_count *count;
	uint32_t origin;
};

extern CW_HIDDEN CW_TLS struct cw_plain_place cw_plain_place_;

/* False: this allocation is not plain, for want of an origin or of a known context. */
bool cw_plain_find_place(enum cw_hook_id hook, const void *caller);
/* After cw_ledger_enter found a record, or no room. False: nothing was recorded. */
bool cw_plain_replaced(int result, const struct cw_record *stale);
void cw_plain_raise_peak(uint64_t after);
/* A budget was set since the call began. */
void cw_plain_return(const struct cw_total *total, uint64_t bytes);
/* The rest of such a free, after cw_total_mend_: what the value before is taken for. */
uint64_t cw_plain_mend(struct cw_total *total, int64_t before, uint64_t bytes);

/* How far an allocation has come that turned out not to be plain. */
enum cw_plain_stage {
	CW_PLAIN_ANSWERED, /* the driver has been asked */
	CW_PLAIN_ENTERED,  /* and the books have it: before and after are known */
	CW_PLAIN_DONE,     /* and there is nothing to tell */
};

/* Between the totals before and after lies a threshold of some policy, or somebody logs. */
static inline bool cw_plain_is_told(const struct cw_total *total, uint64_t low, uint64_t high)
{
	const uint64_t *band = __atomic_load_n(&total->band, __ATOMIC_RELAXED);

	return CW_UNLIKELY(low < band[0]) || CW_UNLIKELY(high >= band[1]) ||
	       CW_UNLIKELY(cw_debug_any());
}

/* Where the total lies now: the next calls look there. */
void cw_plain_move_band(int device, unsigned int kind, uint64_t now);

/* That this thread's place is that of the next allocation. False: it is not plain. */
CW_INLINE bool cw_plain_at_place(enum cw_hook_id hook, const void *caller)
{
	const struct cw_plain_place *place = &cw_plain_place_;

	return (CW_LIKELY(place->caller == caller) &&
		CW_LIKELY(place->runtime_site == cw_thread.runtime_site) &&
		CW_LIKELY(place->context == cw_thread.context) &&
		CW_LIKELY(place->how == cw_thread_how())) ||
	       cw_plain_find_place(hook, caller);
}

/* The ledger has answered; what the totals make of that. */
CW_INLINE enum cw_plain_stage cw_plain_count(int result, const struct cw_record *stale,
					     uint64_t bytes, uint64_t *ret_before)
{
	struct cw_plain_place *place = &cw_plain_place_;
	struct cw_total *total;
	uint64_t before, after;

	if (CW_UNLIKELY(result != 0) && !cw_plain_replaced(result, stale)) {
		return CW_PLAIN_ANSWERED;
	}
	__atomic_fetch_add(&place->count->allocations, 1, __ATOMIC_RELAXED);
	total = place->total;
	before = cw_total_add_only(total, bytes);
	after = before + bytes;
	if (CW_UNLIKELY(after > __atomic_load_n(&total->peak, __ATOMIC_RELAXED))) {
		cw_plain_raise_peak(after);
	}
	*ret_before = before;
	return cw_plain_is_told(total, before, after) ? CW_PLAIN_ENTERED : CW_PLAIN_DONE;
}

/* Memory of the current context is there: into the books. */
CW_INLINE enum cw_plain_stage cw_plain_enter(enum cw_hook_id hook, const void *caller,
					     uint64_t pointer, uint64_t bytes, uint64_t *ret_before)
{
	struct cw_record stale;
	int result;

	if (CW_UNLIKELY(!cw_plain_at_place(hook, caller))) {
		return CW_PLAIN_ANSWERED;
	}
	result = cw_ledger_enter(pointer, bytes, cw_plain_place_.origin, &stale);
	return cw_plain_count(result, &stale, bytes, ret_before);
}

/* Memory that the driver has taken back. False: somebody is to be told. */
CW_INLINE bool cw_plain_leave(struct cw_total *total, uint64_t bytes, uint64_t *ret_before)
{
	int64_t before;

	if (CW_UNLIKELY(CW_IS_SET(cw_budgets_set_, __ATOMIC_ACQUIRE))) {
		cw_plain_return(total, bytes);
	}
	__atomic_fetch_add(&cw_count_of(total)->frees, 1, __ATOMIC_RELAXED);
	/* As cw_total_sub_at. */
	before = __atomic_fetch_sub(&total->current, (int64_t)bytes, __ATOMIC_RELAXED);
	if (CW_UNLIKELY(before < (int64_t)bytes)) {
		*ret_before = cw_plain_mend(total, before, bytes);
		return false;
	}
	cw_wait_freed();
	*ret_before = (uint64_t)before;
	return !cw_plain_is_told(total, (uint64_t)before - bytes, (uint64_t)before);
}

#endif
