/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuMemAlloc and its free, the two calls that programs make most, as far as they are plain: to
 * be compiled into the doors. driver_memory.c has the rest.
 */
#ifndef CW_DRIVER_PLAIN_H
#define CW_DRIVER_PLAIN_H

#include "cuda_api.h"
#include "plain.h"
#include "resolve.h"

CUresult cw_mem_alloc_whole(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
			    size_t bytesize);
/* The driver has answered. */
CUresult cw_mem_alloc_answered(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
			       size_t bytesize, CUresult result, CUdeviceptr pointer);
/* And the books have it. */
CUresult cw_mem_alloc_entered(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
			      size_t bytesize, CUdeviceptr pointer, uint64_t before);

CUresult cw_mem_free_whole(enum cw_hook_id hook, const void *site, CUdeviceptr dptr);
/*
 * The record is detached, and nothing else is done. It comes in pieces, since one that another
 * function is to see would lie in memory from the start.
 */
CUresult cw_mem_free_detached(enum cw_hook_id hook, const void *site, CUdeviceptr dptr,
			      uint64_t size, uint32_t origin);
/* The driver has refused. */
CUresult cw_mem_free_refused(enum cw_hook_id hook, const void *site, CUdeviceptr dptr,
			     uint64_t size, uint32_t origin, CUresult result);
/* The memory is gone, from the books too. */
CUresult cw_mem_free_left(enum cw_hook_id hook, const void *site, CUdeviceptr dptr,
			  uint64_t size, uint32_t origin, uint64_t before);

/*
 * `site` is not looked at here: what it stands for is read again where it is needed, so that no
 * register has to be kept for it.
 */
CW_INLINE CUresult cw_mem_alloc(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
				size_t bytesize)
{
	CUdeviceptr pointer = 0;
	uint64_t before = 0;
	enum cw_plain_stage stage;
	CUresult result;

	if (CW_UNLIKELY(!cw_is_plain()) || CW_UNLIKELY(!cw_real_is_known(hook)) ||
	    CW_UNLIKELY(dptr == NULL) || CW_UNLIKELY(bytesize == 0)) {
		return cw_mem_alloc_whole(hook, __builtin_return_address(0), dptr, bytesize);
	}
	result = ((CUresult(*)(CUdeviceptr *, size_t))cw_real_known(hook))(&pointer, bytesize);
	if (CW_UNLIKELY(result != CUDA_SUCCESS)) {
		return cw_mem_alloc_answered(hook, __builtin_return_address(0), dptr, bytesize,
					     result, pointer);
	}
	stage = cw_plain_enter(hook, __builtin_return_address(0), pointer, bytesize, &before);
	if (CW_UNLIKELY(stage == CW_PLAIN_ANSWERED)) {
		return cw_mem_alloc_answered(hook, __builtin_return_address(0), dptr, bytesize,
					     CUDA_SUCCESS, pointer);
	}
	if (CW_UNLIKELY(stage == CW_PLAIN_ENTERED)) {
		return cw_mem_alloc_entered(hook, __builtin_return_address(0), dptr, bytesize,
					    pointer, before);
	}
	*dptr = pointer;
	return CUDA_SUCCESS;
}

CW_INLINE CUresult cw_mem_free(enum cw_hook_id hook, const void *site, CUdeviceptr dptr)
{
	struct cw_record detached;
	uint64_t before = 0;
	struct cw_total *total;
	CUresult result;

	if (CW_UNLIKELY(!cw_is_plain()) || CW_UNLIKELY(!cw_real_is_known(hook)) ||
	    CW_UNLIKELY(dptr == 0) || CW_UNLIKELY(!cw_ledger_take(dptr, &detached))) {
		return cw_mem_free_whole(hook, __builtin_return_address(0), dptr);
	}
	total = cw_origin_total(detached.origin);
	if (CW_UNLIKELY(total == NULL)) {
		return cw_mem_free_detached(hook, __builtin_return_address(0), dptr, detached.size,
					    detached.origin);
	}
	result = ((CUresult(*)(CUdeviceptr))cw_real_known(hook))(dptr);
	if (CW_UNLIKELY(result != CUDA_SUCCESS)) {
		return cw_mem_free_refused(hook, __builtin_return_address(0), dptr, detached.size,
					   detached.origin, result);
	}
	if (CW_UNLIKELY(!cw_plain_leave(total, detached.size, &before))) {
		return cw_mem_free_left(hook, __builtin_return_address(0), dptr, detached.size,
					detached.origin, before);
	}
	return CUDA_SUCCESS;
}

#endif
