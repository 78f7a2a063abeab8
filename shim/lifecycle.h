/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When things start and end (D-16): the settings are copied when the object is loaded; policies
 * and logs open at the first call that creates a context, takes memory or asks for memory
 * figures; at exit policies close, and the report is written last. Nothing is torn down: hooks
 * are called after our destructor, and go on working.
 */
#ifndef CW_LIFECYCLE_H
#define CW_LIFECYCLE_H

#include <stdbool.h>

#include "common.h"

enum cw_phase {
	CW_PHASE_NEW,      /* nothing opened yet */
	CW_PHASE_OPENING,
	CW_PHASE_OPEN,
	CW_PHASE_DISABLED, /* doors only forward */
};

extern int cw_phase_;

bool cw_open_(void);

/*
 * Opens on the first call. False: this call is to be forwarded and nothing else. True while
 * this thread is opening (a policy's own calls: accounted, told to nobody).
 */
static inline bool cw_ready(void)
{
	return CW_LIKELY(__atomic_load_n(&cw_phase_, __ATOMIC_ACQUIRE) == CW_PHASE_OPEN) ||
	       cw_open_();
}

/* Whether hooks may follow what they hear, without opening anything. */
static inline bool cw_following(void)
{
	return CW_LIKELY(__atomic_load_n(&cw_phase_, __ATOMIC_RELAXED) != CW_PHASE_DISABLED);
}

#endif
