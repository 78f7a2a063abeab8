/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Budgets (D-05): for a device and one or more kinds, how much may be taken from the driver and
 * reserved together. One word moves by compare-and-swap, so it is never exceeded, not even for
 * a moment, and no thread is refused because another one only tried. Any thread, no lock.
 */
#ifndef CW_BUDGET_H
#define CW_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "common.h"

/* Who sets a limit: a place in the chain each (chain.h). */
enum { CW_BUDGET_OWNERS = 18 };

struct cw_budget {
	uint64_t limit;    /* the lowest of all that were set; UINT64_MAX: none */
	uint64_t taken;    /* used and reserved */
	uint64_t reserved; /* for reports: this much of `taken` */
	uint32_t kinds;
	uint64_t below_none[CW_BUDGET_OWNERS]; /* what each has set, as UINT64_MAX less it */
};

extern CW_HIDDEN uint32_t cw_budgets_set_;
struct cw_budget *cw_budget_find(int device, unsigned int kind);

/* NULL where there is none, which is one load and a branch while no budget was ever set. */
static inline struct cw_budget *cw_budget_of(int device, unsigned int kind)
{
	if (CW_LIKELY(!CW_IS_SET(cw_budgets_set_, __ATOMIC_ACQUIRE))) {
		return (struct cw_budget *)0;
	}
	return cw_budget_find(device, kind);
}

/* False for none, and for one that was lifted. */
static inline bool cw_budget_limits(const struct cw_budget *budget)
{
	return budget != (struct cw_budget *)0 &&
	       __atomic_load_n(&budget->limit, __ATOMIC_RELAXED) != UINT64_MAX;
}

/* Inclusive: landing on the limit is allowed. False, and nothing is changed, where it would
 * be exceeded. A NULL budget always says true. */
bool cw_budget_claim(struct cw_budget *budget, uint64_t bytes);

/* Counts what can no longer be refused, over the limit too. */
void cw_budget_force(struct cw_budget *budget, uint64_t bytes);
void cw_budget_return(struct cw_budget *budget, uint64_t bytes);

/* As a claim, and remembered as reserved; use turns reserved bytes into used ones. */
bool cw_budget_reserve(struct cw_budget *budget, uint64_t bytes);
void cw_budget_unreserve(struct cw_budget *budget, uint64_t bytes);
void cw_budget_use(struct cw_budget *budget, uint64_t bytes);

/*
 * Sets the owner's limit of the kinds in the mask on the device: of several owners' the lowest
 * holds. What is taken already counts, and is exact when nothing is under way, as in a policy's
 * open. UINT64_MAX lifts it. CUWEIR_ERROR_NOT_PERMITTED where a kind would be taken away from
 * another mask on which somebody else has a limit. 0, or a CUresult.
 */
int cw_budget_set(uint32_t owner, int device, uint32_t kinds, uint64_t limit);

/* The policy does not open after all: what it has set holds no longer. */
void cw_budgets_disown(uint32_t owner);

void cw_budgets_postfork_child(void);

#endif
