/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many operations there were, for each device and kind. Striped by thread, so that
 * counting puts no second shared cache line on the hot path; read by adding up. Any thread,
 * no lock, plain static storage.
 */
#ifndef CW_COUNTS_H
#define CW_COUNTS_H

#include <stdint.h>

#include "thread.h"
#include "totals.h"

enum { CW_COUNT_STRIPES = 16 };

struct cw_count {
	uint64_t allocations;
	uint64_t frees;
};

struct cw_count_stripe {
	struct cw_count cells[(CW_TOTAL_DEVICES + 2) * CW_TOTAL_KINDS]; /* cw_total_index */
} __attribute__((aligned(64)));

extern struct cw_count_stripe cw_count_stripes_[CW_COUNT_STRIPES];

struct cw_count *cw_count_choose_stripe(void);

static inline struct cw_count *cw_count_at(size_t index)
{
	struct cw_count *cells = cw_thread.counts;

	return (CW_LIKELY(cells != NULL) ? cells : cw_count_choose_stripe()) + index;
}

_Static_assert(sizeof(struct cw_total) == 4 * sizeof(struct cw_count), "see cw_count_of");

/* The counts that go with a total: as far from the first as that, but in smaller steps. */
static inline struct cw_count *cw_count_of(const struct cw_total *total)
{
	size_t bytes = (size_t)((const char *)total - (const char *)cw_totals_) / 4;

	return (struct cw_count *)(void *)((char *)cw_count_at(0) + bytes);
}

static inline struct cw_count *cw_count_cell(int device, unsigned int kind)
{
	return cw_count_at(cw_total_index(device, kind));
}

static inline void cw_count_allocation(int device, unsigned int kind)
{
	__atomic_fetch_add(&cw_count_cell(device, kind)->allocations, 1, __ATOMIC_RELAXED);
}

static inline void cw_count_free(int device, unsigned int kind)
{
	__atomic_fetch_add(&cw_count_cell(device, kind)->frees, 1, __ATOMIC_RELAXED);
}

void cw_counts_read(int device, unsigned int kind, uint64_t *ret_allocations,
		    uint64_t *ret_frees);
void cw_counts_postfork_child(void);

#endif
