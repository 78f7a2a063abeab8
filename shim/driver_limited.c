/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuMemAlloc and its free where a budget is the one thing that is special: as driver_plain.h, with
 * the claim before (D-05). What turns out not to be plain starts again, or goes on, in
 * driver_memory.c.
 */
#include "driver_limited.h"

#include "budget.h"

typedef CUresult (*alloc_fn)(CUdeviceptr *, size_t);
typedef CUresult (*free_fn)(CUdeviceptr);

/* As cw_plain_enter; the ledger's own functions will do here. */
static enum cw_plain_stage enter(enum cw_hook_id hook, const void *site, uint64_t pointer,
				 uint64_t bytes, uint64_t *ret_before)
{
	struct cw_record stale;
	int result;

	if (!cw_plain_at_place(hook, site)) {
		return CW_PLAIN_ANSWERED;
	}
	result = cw_ledger_replace(pointer, bytes, cw_plain_place_.origin, &stale);
	return cw_plain_count(result, &stale, bytes, ret_before);
}

CUresult cw_mem_alloc_limited(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
			      size_t bytesize)
{
	struct cw_budget *budget = cw_budget_of(cw_thread.device, CUWEIR_KIND_DEVICE);
	CUdeviceptr pointer = 0;
	uint64_t before = 0;
	enum cw_plain_stage stage;
	CUresult result;

	/* Refused, the policies are asked, and each attempt claims anew. */
	if (CW_UNLIKELY(!cw_thread.context_known) || CW_UNLIKELY(!cw_budget_claim(budget, bytesize))) {
		return cw_mem_alloc_general(hook, site, dptr, bytesize);
	}
	result = ((alloc_fn)cw_real_known(hook))(&pointer, bytesize);
	if (CW_UNLIKELY(result != CUDA_SUCCESS)) {
		cw_budget_return(budget, bytesize);
		return cw_mem_alloc_answered(hook, site, dptr, bytesize, result, pointer);
	}
	stage = enter(hook, site, pointer, bytesize, &before);
	if (CW_UNLIKELY(stage == CW_PLAIN_ANSWERED)) {
		/* No record of it: what that means beside a limit is the pipeline's to say. */
		free_fn give_back = (free_fn)cw_real_of(CW_HOOK_cuMemFree_v2);

		if (give_back != NULL && give_back(pointer) == CUDA_SUCCESS) {
			cw_budget_return(budget, bytesize);
			return cw_mem_alloc_general(hook, site, dptr, bytesize);
		}
		return cw_mem_alloc_answered(hook, site, dptr, bytesize, CUDA_SUCCESS, pointer);
	}
	if (CW_UNLIKELY(stage == CW_PLAIN_ENTERED)) {
		return cw_mem_alloc_entered(hook, site, dptr, bytesize, pointer, before);
	}
	*dptr = pointer;
	return CUDA_SUCCESS;
}

CUresult cw_mem_free_limited(enum cw_hook_id hook, const void *site, CUdeviceptr dptr)
{
	struct cw_record detached;
	uint64_t before = 0;
	struct cw_total *total;
	CUresult result;

	if (CW_UNLIKELY(!cw_ledger_remove(dptr, &detached))) {
		return cw_mem_free_general(hook, site, dptr);
	}
	total = cw_origin_total(detached.origin);
	if (CW_UNLIKELY(total == NULL)) {
		return cw_mem_free_detached(hook, site, dptr, detached.size, detached.origin);
	}
	result = ((free_fn)cw_real_known(hook))(dptr);
	if (CW_UNLIKELY(result != CUDA_SUCCESS)) {
		return cw_mem_free_refused(hook, site, dptr, detached.size, detached.origin, result);
	}
	if (CW_UNLIKELY(!cw_plain_leave(total, detached.size, &before))) {
		return cw_mem_free_left(hook, site, dptr, detached.size, detached.origin, before);
	}
	return CUDA_SUCCESS;
}
