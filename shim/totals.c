/* SPDX-License-Identifier: Apache-2.0 */
/* The rare halves of totals.h. Calls nothing. */
#include "totals.h"

#include <stdbool.h>

struct cw_total cw_totals_[CW_TOTAL_DEVICES + 2][CW_TOTAL_KINDS];

void cw_total_raise_peak_(struct cw_total *cell, uint64_t value)
{
	uint64_t peak = __atomic_load_n(&cell->peak, __ATOMIC_RELAXED);

	while (value > peak && !__atomic_compare_exchange_n(&cell->peak, &peak, value, true,
				__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		/* peak was reloaded */
	}
}

/*
 * before is what this operation found, so (with what was below 0 taken for 0) it knows its
 * own share of the deficit; the shares of all such operations add up to the whole deficit.
 */
void cw_total_mend_(int64_t *value, uint64_t *underflows, int64_t before, int64_t bytes)
{
	int64_t had = before > 0 ? before : 0;

	__atomic_fetch_add(value, bytes - had, __ATOMIC_RELAXED);
	__atomic_fetch_add(underflows, 1, __ATOMIC_RELAXED);
}

void cw_total_reset_peak(int device, unsigned kind)
{
	struct cw_total *cell = cw_total_cell(device, kind);

	__atomic_store_n(&cell->peak_before, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&cell->peak, cw_total_current(device, kind), __ATOMIC_RELAXED);
	/*
	 * An add between the load and the store may have raised the peak that the store
	 * lowered: the peak is never left below what is held now.
	 */
	cw_total_raise_peak_(cell, cw_total_current(device, kind));
}

uint64_t cw_total_mark(int device, unsigned kind)
{
	struct cw_total *cell = cw_total_cell(device, kind);
	uint64_t highest;

	/* Before the exchange: a reader of the whole peak in between must not see it fall. */
	highest = __atomic_load_n(&cell->peak, __ATOMIC_RELAXED);
	if (highest > __atomic_load_n(&cell->peak_before, __ATOMIC_RELAXED)) {
		__atomic_store_n(&cell->peak_before, highest, __ATOMIC_SEQ_CST);
	}
	highest = __atomic_exchange_n(&cell->peak, cw_total_current(device, kind),
				      __ATOMIC_SEQ_CST);
	if (highest > __atomic_load_n(&cell->peak_before, __ATOMIC_RELAXED)) {
		__atomic_store_n(&cell->peak_before, highest, __ATOMIC_RELAXED);
	}
	cw_total_raise_peak_(cell, cw_total_current(device, kind));
	return highest;
}

void cw_totals_postfork_child(void)
{
	for (unsigned row = 0; row < CW_TOTAL_DEVICES + 2; row++) {
		for (unsigned kind = 0; kind < CW_TOTAL_KINDS; kind++) {
			struct cw_total *cell = &cw_totals_[row][kind];

			/* Rows that were never used stay unwritten, and their pages shared. */
			if (cell->peak == 0 && cell->current == 0 && cell->held == 0 &&
					cell->underflows == 0) {
				continue;
			}
			__atomic_store_n(&cell->current, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&cell->peak, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&cell->peak_before, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&cell->held, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&cell->underflows, 0, __ATOMIC_RELAXED);
		}
	}
}
