/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two gauges of D-11 moved together: what the program has, whose before and after decide
 * crossings; and what was taken from the driver, which budgets limit. Memory of the driver's
 * own moves both. Memory that a policy serves was taken from the driver when the policy took
 * it: it only changes from held to the program's, and back.
 */
#ifndef CW_ACCOUNT_H
#define CW_ACCOUNT_H

#include <stdint.h>

#include "budget.h"
#include "counts.h"
#include "totals.h"

/* Returns the program's total before; the budget was claimed before the driver was asked. */
static inline uint64_t cw_account_add(int device, unsigned int kind, uint64_t bytes,
				      unsigned int owner)
{
	if (CW_UNLIKELY(owner != 0)) {
		cw_total_unhold(device, kind, bytes);
	}
	cw_count_allocation(device, kind);
	return cw_total_add(device, kind, bytes);
}

/* Undone, while the claim on the budget is kept for another attempt. */
static inline uint64_t cw_account_sub_kept(int device, unsigned int kind, uint64_t bytes)
{
	cw_count_free(device, kind);
	return cw_total_sub(device, kind, bytes);
}

/* All but the program's total, which the caller moves: for many records at once. */
static inline void cw_account_leave(int device, unsigned int kind, uint64_t bytes,
				    unsigned int owner)
{
	if (CW_UNLIKELY(owner != 0)) {
		cw_total_hold(device, kind, bytes);
	} else {
		cw_budget_return(cw_budget_of(device, kind), bytes);
	}
	cw_count_free(device, kind);
}

static inline uint64_t cw_account_sub(int device, unsigned int kind, uint64_t bytes,
				      unsigned int owner)
{
	cw_account_leave(device, kind, bytes, owner);
	return cw_total_sub(device, kind, bytes);
}

#endif
