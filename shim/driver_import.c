/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver door for memory of another API: imported objects count as a whole, whatever is
 * mapped of them. Mapped graphics resources count as operations of 0 bytes, since their memory
 * was there before and their size is not told.
 */
#include "aliases.h"
#include "bodies.h"
#include "counts.h"
#include "driver_door.h"

typedef CUresult (*import_fn)(CUexternalMemory *, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *);
typedef CUresult (*map_buffer_fn)(CUdeviceptr *, CUexternalMemory,
				  const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *);
typedef CUresult (*map_array_fn)(CUmipmappedArray *, CUexternalMemory,
				 const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *);
typedef CUresult (*destroy_fn)(CUexternalMemory);
typedef CUresult (*resources_fn)(unsigned int, CUgraphicsResource *, CUstream);

static CUresult undo_import(struct cw_request *request)
{
	destroy_fn real = (destroy_fn)cw_real_of(CW_HOOK_cuDestroyExternalMemory);

	return real != NULL ? real((CUexternalMemory)(uintptr_t)request->pointer)
			    : CUDA_ERROR_NOT_FOUND;
}

static CUresult perform_import(struct cw_request *request)
{
	CUexternalMemory memory = NULL;
	CUresult result = ((import_fn)request->real)(
		&memory,
		(const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *)(uintptr_t)request->arguments[0]);

	request->pointer = (uint64_t)(uintptr_t)memory;
	return result;
}

CUresult cw_import_external_memory(enum cw_hook_id hook, const void *site,
				   CUexternalMemory *memory,
				   const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *descriptor)
{
	struct cw_request request;
	import_fn real = (import_fn)cw_real_of(hook);
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || memory == NULL || descriptor == NULL ||
	    descriptor->size == 0) {
		return real(memory, descriptor);
	}
	cw_driver_request(&request, hook, site, (void *)real, descriptor->size);
	cw_driver_here(&request);
	request.space = CW_KEY_EXTERNAL;
	request.arguments[0] = (uint64_t)(uintptr_t)descriptor;
	request.perform = perform_import;
	/*
	 * An import takes the file descriptor over, and destroying it closes that: the program,
	 * told that the import failed, would close it again. So it is not refused afterwards.
	 */
	if (descriptor->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) {
		request.undo = undo_import;
	}
	result = cw_allocate(&request);
	if (result == CUDA_SUCCESS) {
		*memory = (CUexternalMemory)(uintptr_t)request.pointer;
	}
	return result;
}

/* A part of what was counted at the import, to be freed by cuMemFree. */
CUresult cw_external_memory_map_buffer(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
				       CUexternalMemory memory,
				       const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *descriptor)
{
	map_buffer_fn real = (map_buffer_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(dptr, memory, descriptor);
	if (result == CUDA_SUCCESS && cw_driver_door_open() && dptr != NULL) {
		cw_alias_note(cw_key(CW_KEY_ADDRESS, *dptr));
	}
	return result;
}

/* The same, to be freed by cuMipmappedArrayDestroy. */
CUresult cw_external_memory_map_array(enum cw_hook_id hook, const void *site,
				      CUmipmappedArray *array, CUexternalMemory memory,
				      const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *descriptor)
{
	map_array_fn real = (map_array_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(array, memory, descriptor);
	if (result == CUDA_SUCCESS && cw_driver_door_open() && array != NULL) {
		cw_alias_note(cw_key(CW_KEY_MIPMAPPED_ARRAY, (uint64_t)(uintptr_t)*array));
	}
	return result;
}

static CUresult perform_destroy(struct cw_request *request)
{
	return ((destroy_fn)request->real)((CUexternalMemory)(uintptr_t)request->pointer);
}

CUresult cw_destroy_external_memory(enum cw_hook_id hook, const void *site,
				    CUexternalMemory memory)
{
	struct cw_request request;
	destroy_fn real = (destroy_fn)cw_real_of(hook);

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || memory == NULL) {
		return real(memory);
	}
	cw_driver_request(&request, hook, site, (void *)real, 0);
	request.space = CW_KEY_EXTERNAL;
	request.pointer = (uint64_t)(uintptr_t)memory;
	request.perform = perform_destroy;
	return cw_deallocate(&request);
}

static int device_of_stream(CUstream stream)
{
	struct cw_where where;

	cw_where_of_stream(stream, &where);
	return where.device;
}

/* One operation of each resource, where the driver agrees. */
static CUresult count_resources(enum cw_hook_id hook, unsigned int count,
				CUgraphicsResource *resources, CUstream stream,
				void (*operation)(int device, unsigned int kind))
{
	resources_fn real = (resources_fn)cw_real_of(hook);
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(count, resources, stream);
	if (result == CUDA_SUCCESS && cw_driver_door_open()) {
		int device = device_of_stream(stream);

		for (unsigned int i = 0; i < count; i++) {
			operation(device, CUWEIR_KIND_IMPORTED);
		}
	}
	return result;
}

CUresult cw_graphics_map(enum cw_hook_id hook, const void *site, unsigned int count,
			 CUgraphicsResource *resources, CUstream stream)
{
	(void)site;
	return count_resources(hook, count, resources, stream, cw_count_allocation);
}

CUresult cw_graphics_unmap(enum cw_hook_id hook, const void *site, unsigned int count,
			   CUgraphicsResource *resources, CUstream stream)
{
	(void)site;
	return count_resources(hook, count, resources, stream, cw_count_free);
}
