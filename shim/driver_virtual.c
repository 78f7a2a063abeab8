/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver door for virtual memory. Physical memory is an allocation at cuMemCreate, of the
 * device that its properties name, whichever is current; and a free at the call that takes its
 * last reference or its last mapping away. virtual_books.c keeps count. Not followed: a file
 * descriptor or a multicast object that keeps memory alive after both are gone.
 */
#include "bodies.h"
#include "driver_door.h"
#include "physical.h"
#include "virtual_books.h"
#include "virtual_tiles.h"

typedef CUresult (*create_fn)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
			      unsigned long long);
typedef CUresult (*release_fn)(CUmemGenericAllocationHandle);
typedef CUresult (*retain_fn)(CUmemGenericAllocationHandle *, void *);
typedef CUresult (*map_fn)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
			   unsigned long long);
typedef CUresult (*unmap_fn)(CUdeviceptr, size_t);
typedef CUresult (*reserve_fn)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
typedef CUresult (*export_fn)(void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
			      unsigned long long);
typedef CUresult (*import_fn)(CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType);
typedef CUresult (*multicast_fn)(CUmemGenericAllocationHandle *, const CUmulticastObjectProp *);
typedef CUresult (*map_array_fn)(CUarrayMapInfo *, unsigned int, CUstream);

/* ---- cuMemCreate -------------------------------------------------------------------------- */

enum { PROP, FLAGS, HANDLE };

static CUresult perform_create(struct cw_request *request)
{
	CUmemGenericAllocationHandle handle = 0;
	const CUmemAllocationProp *prop =
		(const CUmemAllocationProp *)(uintptr_t)request->arguments[PROP];
	CUresult result = ((create_fn)request->real)(&handle, (size_t)request->requested, prop,
						     request->arguments[FLAGS]);

	if (result == CUDA_SUCCESS) {
		request->arguments[HANDLE] = handle;
		request->pointer = cw_physical_number();
	}
	return result;
}

static CUresult undo_create(struct cw_request *request)
{
	release_fn real = (release_fn)cw_real_of(CW_HOOK_cuMemRelease);

	return real != NULL ? real(request->arguments[HANDLE]) : CUDA_ERROR_NOT_FOUND;
}

/* Memory of the host is no device's (P-24); the types' numbers are older than their names. */
static void place_by(struct cw_request *request, const CUmemLocation *location)
{
	enum { HOST = 2, HOST_NUMA_CURRENT = 4 };
	int type = (int)location->type;

	if (type == CU_MEM_LOCATION_TYPE_DEVICE) {
		request->device = location->id;
	} else if (type >= HOST && type <= HOST_NUMA_CURRENT) {
		request->kind = CUWEIR_KIND_HOST;
	}
}

/* The memory is in the books: its handle and its number are to be as well. */
static void keep_handle(struct cw_request *request)
{
	uint64_t number = request->untold ? 0 : request->pointer;

	if (number != 0 && !cw_physical_enter(number)) {
		cw_count_untracked_allocation();
		cw_forget(request);
		number = 0;
	}
	cw_virtual_handle(request->arguments[HANDLE], number);
}

CUresult cw_mem_create(enum cw_hook_id hook, const void *site,
		       CUmemGenericAllocationHandle *handle, size_t size,
		       const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct cw_request request;
	create_fn real = (create_fn)cw_real_of(hook);
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || handle == NULL || prop == NULL || size == 0) {
		return real(handle, size, prop, flags);
	}
	cw_driver_request(&request, hook, site, (void *)real, size);
	place_by(&request, &prop->location);
	request.space = CW_KEY_PHYSICAL;
	request.arguments[PROP] = (uint64_t)(uintptr_t)prop;
	request.arguments[FLAGS] = flags;
	request.perform = perform_create;
	request.undo = undo_create;
	result = cw_allocate(&request);
	if (result == CUDA_SUCCESS) {
		keep_handle(&request);
		*handle = request.arguments[HANDLE];
	}
	return result;
}

/* ---- references --------------------------------------------------------------------------- */

CUresult cw_mem_release(enum cw_hook_id hook, const void *site,
			CUmemGenericAllocationHandle handle)
{
	struct cw_virtual_release release;
	struct cw_batch batch;
	release_fn real = (release_fn)cw_real_of(hook);
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open()) {
		return real(handle);
	}
	cw_batch_begin(&batch, hook, site);
	if (!cw_virtual_release_begin(&release, handle, &batch)) {
		cw_count_untracked_free();
		return real(handle);
	}
	cw_batch_announce(&batch);
	result = real(handle);
	if (!cw_batch_gone(result)) {
		cw_virtual_release_undo(&release);
	}
	return cw_batch_finish(&batch, result);
}

CUresult cw_mem_retain_allocation_handle(enum cw_hook_id hook, const void *site,
					 CUmemGenericAllocationHandle *handle, void *addr)
{
	retain_fn real = (retain_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(handle, addr);
	if (result == CUDA_SUCCESS && handle != NULL && cw_driver_door_open()) {
		cw_virtual_retained(*handle, (uint64_t)(uintptr_t)addr);
	}
	return result;
}

CUresult cw_mem_export_to_shareable_handle(enum cw_hook_id hook, const void *site,
					   void *shareable, CUmemGenericAllocationHandle handle,
					   CUmemAllocationHandleType type,
					   unsigned long long flags)
{
	enum { FILE_DESCRIPTOR = 1 };
	export_fn real = (export_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(shareable, handle, type, flags);
	if (result == CUDA_SUCCESS && shareable != NULL && cw_driver_door_open()) {
		/* A descriptor is written here, and handed to the import by value. */
		cw_virtual_exported(handle,
				    (int)type == FILE_DESCRIPTOR
					    ? (void *)(intptr_t)*(int *)shareable : shareable,
				    (int)type);
	}
	return result;
}

CUresult cw_mem_import_from_shareable_handle(enum cw_hook_id hook, const void *site,
					     CUmemGenericAllocationHandle *handle, void *shareable,
					     CUmemAllocationHandleType type)
{
	import_fn real = (import_fn)cw_real_of(hook);
	struct cw_where where;
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(handle, shareable, type);
	if (result == CUDA_SUCCESS && handle != NULL && cw_driver_door_open()) {
		/* Where it lies only the exporter knows. */
		cw_where_current(&where);
		cw_virtual_imported(*handle, shareable, (int)type, where.device);
	}
	return result;
}

/* No memory of its own: it is known so that its release and its mapping are. */
CUresult cw_multicast_create(enum cw_hook_id hook, const void *site,
			     CUmemGenericAllocationHandle *handle,
			     const CUmulticastObjectProp *prop)
{
	multicast_fn real = (multicast_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(handle, prop);
	if (result == CUDA_SUCCESS && handle != NULL && cw_driver_door_open()) {
		cw_virtual_handle(*handle, 0);
	}
	return result;
}

/* ---- mappings ----------------------------------------------------------------------------- */

/* An import's size shows when it is mapped, and only mapped memory counts as imported. */
static void adopt_import(enum cw_hook_id hook, const void *site, uint64_t number, uint64_t size)
{
	struct cw_request request;
	int device;

	if (!cw_physical_first_mapping(number, &device)) {
		return;
	}
	cw_driver_request(&request, hook, site, NULL, size);
	request.kind = CUWEIR_KIND_IMPORTED;
	request.device = device;
	request.space = CW_KEY_PHYSICAL;
	request.pointer = number;
	cw_adopt(&request);
}

CUresult cw_mem_map(enum cw_hook_id hook, const void *site, CUdeviceptr ptr, size_t size,
		    size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	map_fn real = (map_fn)cw_real_of(hook);
	uint64_t number;
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || size == 0) {
		return real(ptr, size, offset, handle, flags);
	}
	/* Held before: another thread may release the handle as soon as it is mapped. */
	number = cw_virtual_hold(handle);
	result = real(ptr, size, offset, handle, flags);
	if (result != CUDA_SUCCESS) {
		cw_virtual_let_go(number);
		return result;
	}
	if (number != 0) {
		adopt_import(hook, site, number, size);
	}
	cw_virtual_mapped(ptr, size, number);
	return result;
}

CUresult cw_mem_unmap(enum cw_hook_id hook, const void *site, CUdeviceptr ptr, size_t size)
{
	unmap_fn real = (unmap_fn)cw_real_of(hook);
	struct cw_batch batch;
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open()) {
		return real(ptr, size);
	}
	cw_batch_begin(&batch, hook, site);
	cw_virtual_unmap_begin(ptr, size, &batch);
	cw_batch_announce(&batch);
	result = real(ptr, size);
	cw_virtual_unmap_end(ptr, size, cw_batch_gone(result));
	return cw_batch_finish(&batch, result);
}

CUresult cw_mem_map_array_async(enum cw_hook_id hook, const void *site, CUarrayMapInfo *list,
				unsigned int count, CUstream stream)
{
	map_array_fn real = (map_array_fn)cw_real_of(hook);
	struct cw_batch batch;
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || list == NULL) {
		return real(list, count, stream);
	}
	cw_batch_begin(&batch, hook, site);
	batch.stream = stream;
	batch.flags |= CUWEIR_EVENT_STREAM_ORDERED;
	if (cw_hooks[hook].stream == CW_PTDS) {
		batch.flags |= CUWEIR_EVENT_PER_THREAD;
	}
	cw_tiles_begin(list, count, &batch);
	cw_batch_announce(&batch);
	result = real(list, count, stream);
	cw_tiles_end(list, count, cw_batch_gone(result));
	return cw_batch_finish(&batch, result);
}

/* ---- address space ------------------------------------------------------------------------ */

CUresult cw_mem_address_reserve(enum cw_hook_id hook, const void *site, CUdeviceptr *ptr,
				size_t size, size_t alignment, CUdeviceptr addr,
				unsigned long long flags)
{
	reserve_fn real = (reserve_fn)cw_real_of(hook);
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(ptr, size, alignment, addr, flags);
	if (result == CUDA_SUCCESS && ptr != NULL && size != 0 && cw_driver_door_open()) {
		cw_virtual_reserved(hook, site, *ptr, size);
	}
	return result;
}

CUresult cw_mem_address_free(enum cw_hook_id hook, const void *site, CUdeviceptr ptr, size_t size)
{
	unmap_fn real = (unmap_fn)cw_real_of(hook);
	struct cw_record record;
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	/* Before the call: the range may be reserved anew at once. */
	if (!cw_driver_door_open() || !cw_virtual_range_take(ptr, &record)) {
		return real(ptr, size);
	}
	result = real(ptr, size);
	cw_virtual_range_settle(&record, cw_batch_gone(result));
	return result;
}
