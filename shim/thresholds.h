/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sorted list of thresholds and the question whether a total that moved crossed any. The
 * list is made once and then only read; what is remembered between calls is a hint, checked
 * before it is used, so any thread may ask at any time. Nothing crossed costs the same for
 * one threshold and for ten thousand; otherwise O(log n).
 */
#ifndef CW_THRESHOLDS_H
#define CW_THRESHOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common.h"

enum { CW_THRESHOLD_HINTS = 64 };

struct cw_thresholds {
	/* Ascending, between a 0 and a UINT64_MAX of ours; NULL for an empty list. */
	const uint64_t *values;
	size_t count; /* with ours */
	/* Where the total of a device lay: values[hint] <= total < values[hint + 1]. */
	uint32_t hints[CW_THRESHOLD_HINTS];
};

/*
 * Copies and sorts `list` (any order, duplicates and zeros welcome; not kept). count 0 is an
 * empty list. 0, or -ENOMEM and an empty list.
 */
int cw_thresholds_init(struct cw_thresholds *thresholds, const uint64_t *list, size_t count);

/* Back to an empty list; nobody may be asking. */
void cw_thresholds_release(struct cw_thresholds *thresholds);

/* The index of the last value <= total. */
uint32_t cw_thresholds_search(const struct cw_thresholds *thresholds, uint64_t total);

static inline const uint64_t *cw_thresholds_band(struct cw_thresholds *thresholds, int device,
						 uint64_t total)
{
	uint32_t *hint = &thresholds->hints[(unsigned int)device % CW_THRESHOLD_HINTS];
	const uint64_t *band = thresholds->values + __atomic_load_n(hint, __ATOMIC_RELAXED);

	if (CW_UNLIKELY(total < band[0] || total >= band[1])) {
		uint32_t found = cw_thresholds_search(thresholds, total);

		__atomic_store_n(hint, found, __ATOMIC_RELAXED);
		band = thresholds->values + found;
	}
	return band;
}

/* Whether an allocation that moved the total crossed a threshold: before < T <= after. */
static inline bool cw_thresholds_up(struct cw_thresholds *thresholds, int device,
				    uint64_t before, uint64_t after)
{
	if (thresholds->values == NULL) {
		return false;
	}
	return after >= cw_thresholds_band(thresholds, device, before)[1];
}

/* Whether a free did: before >= T > after. */
static inline bool cw_thresholds_down(struct cw_thresholds *thresholds, int device,
				      uint64_t before, uint64_t after)
{
	if (thresholds->values == NULL) {
		return false;
	}
	return after < cw_thresholds_band(thresholds, device, before)[0];
}

#endif
