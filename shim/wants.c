/* SPDX-License-Identifier: Apache-2.0 */
#include "wants.h"

static uint32_t wants[CW_HOOK_COUNT];

CW_COLD void cw_want_count(enum cw_hook_id hook)
{
	__atomic_fetch_add(&wants[hook], 1, __ATOMIC_RELAXED);
}

uint64_t cw_wants_of(enum cw_hook_id hook)
{
	return __atomic_load_n(&wants[hook], __ATOMIC_RELAXED);
}
