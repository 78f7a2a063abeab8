/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain way beside a budget, and when it is to be gone. The hook's real function is known, and
 * there is something to allocate or to free.
 */
#ifndef CW_DRIVER_LIMITED_H
#define CW_DRIVER_LIMITED_H

#include "driver_plain.h"

/* Nothing is special but that there is a budget. */
static inline bool cw_is_limited_only(enum cw_hook_id hook)
{
	return __atomic_load_n(&cw_plain_reasons_, __ATOMIC_ACQUIRE) == CW_PLAIN_BUDGET &&
	       cw_thread_is_free() && cw_real_is_known(hook);
}

CUresult cw_mem_alloc_limited(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
			      size_t bytesize);
CUresult cw_mem_free_limited(enum cw_hook_id hook, const void *site, CUdeviceptr dptr);

/* The ways of driver_memory.c through the pipeline. */
CUresult cw_mem_alloc_general(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
			      size_t bytesize);
CUresult cw_mem_free_general(enum cw_hook_id hook, const void *site, CUdeviceptr dptr);

#endif
