/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stream-ordered pools give, as far as it was heard when they were made or asked for: the
 * kind of memory, and its device. A pool that was never heard of gives device memory of the
 * stream's device.
 *
 * How much pools hold from the driver (the POOL gauge) changes at synchronizations, by thresholds
 * and by splitting, with no call that says so; and a question to the driver that nobody asked is
 * not ours to ask (D-15). So the driver is asked when somebody asks for the gauge.
 */
#ifndef CW_DRIVER_POOL_H
#define CW_DRIVER_POOL_H

#include <stdint.h>

#include "common.h"
#include "pipeline.h"
#include "totals.h"

/* The pool that cuMemAllocAsync takes from on each device, where it is not the device's own. */
struct cw_current_pool {
	uint64_t pool;
	uint32_t gives; /* 0: memory of the device, of its own pool, which a policy may serve */
};

extern struct cw_current_pool cw_current_pools_[CW_TOTAL_DEVICES];

/* What a pool gives, in 32 bits, never 0: kind, and device plus 1. */
static inline uint32_t cw_pool_gives(unsigned int kind, int device)
{
	return (uint32_t)(device + 1) << 8 | kind;
}

void cw_pool_place_(struct cw_request *request, uint32_t gives);

/* Memory of this pool, which may be another device's than the stream's (C-61), or no device's. */
void cw_pool_place(struct cw_request *request, CUmemoryPool pool);

/* Of an allocation on the device that a stream is of: what the device's current pool gives. */
static inline void cw_pool_place_current(struct cw_request *request)
{
	unsigned int device = (unsigned int)request->device;
	uint32_t gives;

	if (CW_UNLIKELY(device >= CW_TOTAL_DEVICES)) {
		return;
	}
	gives = __atomic_load_n(&cw_current_pools_[device].gives, __ATOMIC_RELAXED);
	if (CW_UNLIKELY(gives != 0)) {
		cw_pool_place_(request, gives);
	}
}

/* Brings the POOL gauge of the device up to date; while a capture is open it stays as it was. */
void cw_pool_ask_reserved(int device);

/* Has all pools of the device that were heard of give back what they only keep. */
void cw_pool_trim_made(int device);

#endif
