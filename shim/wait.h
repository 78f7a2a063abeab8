/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for a free by another thread. Costs a free one load while nobody waits.
 */
#ifndef CW_WAIT_H
#define CW_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common.h"

extern CW_HIDDEN uint32_t cw_wait_listeners_;
void cw_wait_wake_(void);

/* From the first to the last call of these two, every free is heard. Returns the number of
 * frees heard so far, which cw_wait compares with. */
uint32_t cw_wait_listen(void);
void cw_wait_leave(void);
uint32_t cw_wait_frees_heard(void);

/* True when a free has come since `seen`, false after the time. Between listen and leave. */
bool cw_wait(uint32_t seen, uint64_t timeout_ns);

/* A free is complete, its total moved. */
static inline void cw_wait_freed(void)
{
	/*
	 * Sequentially consistent, as is the listener's increment: either we see the listener
	 * here, or its next attempt at the driver comes after our free.
	 */
	if (CW_UNLIKELY(CW_IS_SET(cw_wait_listeners_, __ATOMIC_SEQ_CST))) {
		cw_wait_wake_();
	}
}

void cw_wait_postfork_child(void);

#endif
