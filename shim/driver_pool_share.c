/* SPDX-License-Identifier: Apache-2.0 */
/* The driver door for pools and pool memory of other processes, which count as imported. */
#include "bodies.h"
#include "driver_door.h"
#include "driver_pool.h"
#include "handles.h"

typedef CUresult (*import_fn)(CUmemoryPool *, void *, CUmemAllocationHandleType,
			      unsigned long long);
typedef CUresult (*import_pointer_fn)(CUdeviceptr *, CUmemoryPool, CUmemPoolPtrExportData *);
typedef CUresult (*free_fn)(CUdeviceptr);

/* Nothing can be allocated from it (C-71); it is known for what it is not. */
CUresult cw_mem_pool_import(enum cw_hook_id hook, const void *site, CUmemoryPool *pool,
			    void *shareable, CUmemAllocationHandleType type,
			    unsigned long long flags)
{
	import_fn real = (import_fn)cw_real_of(hook);
	struct cw_where where;
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(pool, shareable, type, flags);
	if (result == CUDA_SUCCESS && pool != NULL && cw_following()) {
		/* Where it lies only the exporter knows. */
		cw_where_current(&where);
		cw_handles_set(CW_HANDLE_POOL, (uint64_t)(uintptr_t)*pool,
			       cw_pool_gives(CUWEIR_KIND_IMPORTED, where.device), 0);
	}
	return result;
}

enum { POOL, SHARE_DATA };

static CUresult perform_import_pointer(struct cw_request *request)
{
	CUdeviceptr pointer = 0;
	CUresult result = ((import_pointer_fn)request->real)(
		&pointer, (CUmemoryPool)(uintptr_t)request->arguments[POOL],
		(CUmemPoolPtrExportData *)(uintptr_t)request->arguments[SHARE_DATA]);

	if (result == CUDA_SUCCESS) {
		request->pointer = pointer;
		request->requested = cw_ask_size(pointer);
		request->charged = request->requested;
	}
	return result;
}

static CUresult undo_import_pointer(struct cw_request *request)
{
	free_fn real = (free_fn)cw_real_of(CW_HOOK_cuMemFree_v2);

	return real != NULL ? real((CUdeviceptr)request->pointer) : CUDA_ERROR_NOT_FOUND;
}

CUresult cw_mem_pool_import_pointer(enum cw_hook_id hook, const void *site, CUdeviceptr *ptr,
				    CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	struct cw_request request;
	import_pointer_fn real = (import_pointer_fn)cw_real_of(hook);
	struct cw_where where;
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || ptr == NULL || data == NULL) {
		return real(ptr, pool, data);
	}
	cw_driver_request(&request, hook, site, (void *)real, 0);
	cw_where_current(&where);
	request.device = where.device;
	cw_pool_place(&request, pool);
	request.kind = CUWEIR_KIND_IMPORTED;
	request.arguments[POOL] = (uint64_t)(uintptr_t)pool;
	request.arguments[SHARE_DATA] = (uint64_t)(uintptr_t)data;
	request.perform = perform_import_pointer;
	request.undo = undo_import_pointer;
	result = cw_allocate(&request);
	if (result == CUDA_SUCCESS) {
		*ptr = (CUdeviceptr)request.pointer;
	}
	return result;
}
