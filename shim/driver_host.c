/* SPDX-License-Identifier: Apache-2.0 */
/* The driver door for pinned host memory. */
#include "bodies.h"
#include "driver_door.h"

typedef CUresult (*alloc_host_v1_fn)(void **, unsigned int);
typedef CUresult (*alloc_host_fn)(void **, size_t);
typedef CUresult (*host_alloc_fn)(void **, size_t, unsigned int);
typedef CUresult (*free_host_fn)(void *);

static CUresult undo_free_host(struct cw_request *request)
{
	free_host_fn real = (free_host_fn)cw_real_of(CW_HOOK_cuMemFreeHost);

	return real != NULL ? real((void *)(uintptr_t)request->pointer) : CUDA_ERROR_NOT_FOUND;
}

static CUresult keep_pointer(struct cw_request *request, CUresult result, void *pointer)
{
	request->pointer = (uint64_t)(uintptr_t)pointer;
	return result;
}

static CUresult perform_alloc_host_v1(struct cw_request *request)
{
	void *pointer = NULL;

	return keep_pointer(request,
			    ((alloc_host_v1_fn)request->real)(&pointer,
							      (unsigned int)request->requested),
			    pointer);
}

static CUresult perform_alloc_host(struct cw_request *request)
{
	void *pointer = NULL;
	CUresult result = ((alloc_host_fn)request->real)(&pointer, (size_t)request->requested);

	return keep_pointer(request, result, pointer);
}

static CUresult perform_host_alloc(struct cw_request *request)
{
	void *pointer = NULL;
	CUresult result = ((host_alloc_fn)request->real)(&pointer, (size_t)request->requested,
							 (unsigned int)request->arguments[0]);

	return keep_pointer(request, result, pointer);
}

static CUresult allocate_host(enum cw_hook_id hook, const void *site, void *real, void **pp,
			      uint64_t bytes, unsigned int flags,
			      CUresult (*perform)(struct cw_request *))
{
	struct cw_request request;
	CUresult result;

	cw_driver_request(&request, hook, site, real, bytes);
	cw_driver_here(&request);
	request.arguments[0] = flags;
	request.perform = perform;
	request.undo = undo_free_host;
	request.servable = flags == 0;
	result = cw_allocate(&request);
	if (result == CUDA_SUCCESS) {
		*pp = (void *)(uintptr_t)request.pointer;
	}
	return result;
}

CUresult cw_mem_alloc_host_v1(enum cw_hook_id hook, const void *site, void **pp,
			      unsigned int bytesize)
{
	alloc_host_v1_fn real = (alloc_host_v1_fn)cw_real_of(hook);

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || pp == NULL || bytesize == 0) {
		return real(pp, bytesize);
	}
	return allocate_host(hook, site, (void *)real, pp, bytesize, 0, perform_alloc_host_v1);
}

CUresult cw_mem_alloc_host(enum cw_hook_id hook, const void *site, void **pp, size_t bytesize)
{
	alloc_host_fn real = (alloc_host_fn)cw_real_of(hook);

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || pp == NULL || bytesize == 0) {
		return real(pp, bytesize);
	}
	return allocate_host(hook, site, (void *)real, pp, bytesize, 0, perform_alloc_host);
}

CUresult cw_mem_host_alloc(enum cw_hook_id hook, const void *site, void **pp, size_t bytesize,
			   unsigned int flags)
{
	host_alloc_fn real = (host_alloc_fn)cw_real_of(hook);

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || pp == NULL || bytesize == 0) {
		return real(pp, bytesize, flags);
	}
	return allocate_host(hook, site, (void *)real, pp, bytesize, flags, perform_host_alloc);
}

static CUresult perform_free_host(struct cw_request *request)
{
	return ((free_host_fn)request->real)((void *)(uintptr_t)request->pointer);
}

CUresult cw_mem_free_host(enum cw_hook_id hook, const void *site, void *p)
{
	struct cw_request request;
	free_host_fn real = (free_host_fn)cw_real_of(hook);

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || p == NULL) {
		return real(p);
	}
	cw_driver_request(&request, hook, site, (void *)real, 0);
	request.pointer = (uint64_t)(uintptr_t)p;
	request.perform = perform_free_host;
	return cw_deallocate(&request);
}
