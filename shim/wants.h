/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are no allocations and yet failed for want of memory: contexts, modules, streams,
 * graphs, launches. They are not retried, but counted and named in the report (D-23).
 */
#ifndef CW_WANTS_H
#define CW_WANTS_H

#include <stdint.h>

#include "common.h"
#include "cuda_api.h"
#include "hooks.h"

void cw_want_count(enum cw_hook_id hook);

/* How often this function failed so. */
uint64_t cw_wants_of(enum cw_hook_id hook);

static inline CUresult cw_want_note(enum cw_hook_id hook, CUresult result)
{
	if (CW_UNLIKELY(result == CUDA_ERROR_OUT_OF_MEMORY)) {
		cw_want_count(hook);
	}
	return result;
}

#endif
