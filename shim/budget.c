/* SPDX-License-Identifier: Apache-2.0 */
#include "budget.h"

#include <cuweir/policy.h>
#include <stddef.h>

#include "lock.h"
#include "plain.h"
#include "totals.h"

enum { BUDGETS_MAX = 128 };

uint32_t cw_budgets_set_;

static struct cw_budget budgets[BUDGETS_MAX];
static uint32_t budget_count;
static struct cw_lock setting; /* of new budgets only; never while the driver is called */

/* Which budget a kind of a device belongs to, as index + 1. */
static uint8_t assigned[CW_TOTAL_DEVICES][CUWEIR_KIND_COUNT];

struct cw_budget *cw_budget_find(int device, unsigned int kind)
{
	uint8_t index;

	if (device < 0 || device >= CW_TOTAL_DEVICES || kind >= CUWEIR_KIND_COUNT) {
		return NULL;
	}
	index = __atomic_load_n(&assigned[device][kind], __ATOMIC_ACQUIRE);
	return index != 0 ? &budgets[index - 1] : NULL;
}

bool cw_budget_claim(struct cw_budget *budget, uint64_t bytes)
{
	uint64_t taken;

	if (budget == NULL) {
		return true;
	}
	taken = __atomic_load_n(&budget->taken, __ATOMIC_RELAXED);
	do {
		uint64_t limit = __atomic_load_n(&budget->limit, __ATOMIC_RELAXED);

		if (taken > limit || bytes > limit - taken) {
			return false;
		}
	} while (!__atomic_compare_exchange_n(&budget->taken, &taken, taken + bytes, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}

void cw_budget_force(struct cw_budget *budget, uint64_t bytes)
{
	if (budget != NULL) {
		__atomic_fetch_add(&budget->taken, bytes, __ATOMIC_RELAXED);
	}
}

/* Not below 0: what was under way when a budget was set may not have been counted in it. */
static void subtract(uint64_t *word, uint64_t bytes)
{
	uint64_t value = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(word, &value, value > bytes ? value - bytes : 0, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
	}
}

void cw_budget_return(struct cw_budget *budget, uint64_t bytes)
{
	if (budget != NULL) {
		subtract(&budget->taken, bytes);
	}
}

bool cw_budget_reserve(struct cw_budget *budget, uint64_t bytes)
{
	if (!cw_budget_claim(budget, bytes)) {
		return false;
	}
	if (budget != NULL) {
		__atomic_fetch_add(&budget->reserved, bytes, __ATOMIC_RELAXED);
	}
	return true;
}

void cw_budget_use(struct cw_budget *budget, uint64_t bytes)
{
	if (budget != NULL) {
		subtract(&budget->reserved, bytes);
	}
}

void cw_budget_unreserve(struct cw_budget *budget, uint64_t bytes)
{
	cw_budget_use(budget, bytes);
	cw_budget_return(budget, bytes);
}

static uint64_t taken_now(int device, uint32_t kinds)
{
	uint64_t sum = 0;

	for (unsigned int kind = 1; kind < CUWEIR_KIND_COUNT; kind++) {
		if ((kinds & CUWEIR_KIND_BIT(kind)) != 0) {
			sum += cw_total_current(device, kind) + cw_total_held(device, kind);
		}
	}
	return sum;
}

/* What kinds that move to another budget have taken is no longer the old one's. Lock held. */
static void leave_old(int device, uint32_t kinds)
{
	for (unsigned int kind = 1; kind < CUWEIR_KIND_COUNT; kind++) {
		struct cw_budget *old = cw_budget_find(device, kind);

		if ((kinds & CUWEIR_KIND_BIT(kind)) != 0 && old != NULL) {
			old->kinds &= ~CUWEIR_KIND_BIT(kind);
			subtract(&old->taken, taken_now(device, CUWEIR_KIND_BIT(kind)));
		}
	}
}

/* Lock held. */
static void limit_by(struct cw_budget *budget, uint32_t owner, uint64_t limit)
{
	uint64_t most = 0;

	budget->below_none[owner] = UINT64_MAX - limit;
	for (uint32_t i = 0; i < CW_BUDGET_OWNERS; i++) {
		most = budget->below_none[i] > most ? budget->below_none[i] : most;
	}
	__atomic_store_n(&budget->limit, UINT64_MAX - most, __ATOMIC_RELAXED);
}

/* The budget of exactly this mask on the device, made where there is none; limited. Lock held. */
static struct cw_budget *make(int device, uint32_t kinds, uint32_t owner, uint64_t limit)
{
	struct cw_budget *budget = NULL;

	for (unsigned int kind = 1; kind < CUWEIR_KIND_COUNT && budget == NULL; kind++) {
		if ((kinds & CUWEIR_KIND_BIT(kind)) != 0) {
			budget = cw_budget_find(device, kind);
		}
	}
	if (budget != NULL && budget->kinds == kinds) {
		limit_by(budget, owner, limit);
		return budget;
	}
	if (budget_count == BUDGETS_MAX) {
		return NULL;
	}
	leave_old(device, kinds);
	budget = &budgets[budget_count++];
	budget->kinds = kinds;
	limit_by(budget, owner, limit); /* before it is anybody's */
	budget->taken = taken_now(device, kinds);
	for (unsigned int kind = 1; kind < CUWEIR_KIND_COUNT; kind++) {
		if ((kinds & CUWEIR_KIND_BIT(kind)) != 0) {
			__atomic_store_n(&assigned[device][kind], (uint8_t)budget_count,
					 __ATOMIC_RELEASE);
		}
	}
	return budget;
}

/*
 * Whether a kind of the mask belongs to a budget of other kinds on which somebody else has a
 * limit: that one cannot be held any more if the kind is taken away. Lock held.
 */
static bool is_anothers(uint32_t owner, int device, uint32_t kinds)
{
	for (unsigned int kind = 1; kind < CUWEIR_KIND_COUNT; kind++) {
		const struct cw_budget *budget = cw_budget_find(device, kind);

		if ((kinds & CUWEIR_KIND_BIT(kind)) == 0 || budget == NULL ||
		    budget->kinds == kinds) {
			continue;
		}
		for (uint32_t i = 0; i < CW_BUDGET_OWNERS; i++) {
			if (i != owner && budget->below_none[i] != 0) {
				return true;
			}
		}
	}
	return false;
}

int cw_budget_set(uint32_t owner, int device, uint32_t kinds, uint64_t limit)
{
	struct cw_budget *budget;

	if (kinds == 0) {
		kinds = CUWEIR_KIND_BIT(CUWEIR_KIND_DEVICE);
	}
	if (device < 0 || device >= CW_TOTAL_DEVICES || (kinds & 1) != 0 ||
	    kinds >> CUWEIR_KIND_COUNT != 0) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	cw_lock_acquire(&setting);
	if (is_anothers(owner, device, kinds)) {
		cw_lock_release(&setting);
		return CUWEIR_ERROR_NOT_PERMITTED;
	}
	budget = make(device, kinds, owner, limit);
	if (budget != NULL) {
		__atomic_store_n(&cw_budgets_set_, 1, __ATOMIC_RELEASE);
		cw_plain_set(CW_PLAIN_BUDGET);
	}
	cw_lock_release(&setting);
	return budget != NULL ? CUWEIR_SUCCESS : CUWEIR_ERROR_OUT_OF_MEMORY;
}

void cw_budgets_disown(uint32_t owner)
{
	cw_lock_acquire(&setting);
	for (uint32_t i = 0; i < budget_count; i++) {
		limit_by(&budgets[i], owner, UINT64_MAX);
	}
	cw_lock_release(&setting);
}

void cw_budgets_postfork_child(void)
{
	cw_lock_reset(&setting);
	for (uint32_t i = 0; i < budget_count; i++) {
		budgets[i].taken = 0;
		budgets[i].reserved = 0;
	}
}
