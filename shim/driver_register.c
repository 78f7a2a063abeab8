/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver door for the program's own host memory, page-locked: it is the program's before
 * and after, so it has a kind to itself.
 */
#include "bodies.h"
#include "driver_door.h"

typedef CUresult (*register_fn)(void *, size_t, unsigned int);
typedef CUresult (*unregister_fn)(void *);

/* Arguments of a request: the memory is there from the start. */
enum { MEMORY, FLAGS };

static CUresult undo_register(struct cw_request *request)
{
	unregister_fn real = (unregister_fn)cw_real_of(CW_HOOK_cuMemHostUnregister);

	return real != NULL ? real((void *)(uintptr_t)request->pointer) : CUDA_ERROR_NOT_FOUND;
}

static CUresult perform_register(struct cw_request *request)
{
	request->pointer = request->arguments[MEMORY];
	return ((register_fn)request->real)((void *)(uintptr_t)request->pointer,
					    (size_t)request->requested,
					    (unsigned int)request->arguments[FLAGS]);
}

CUresult cw_mem_host_register(enum cw_hook_id hook, const void *site, void *p, size_t bytesize,
			      unsigned int flags)
{
	struct cw_request request;
	register_fn real = (register_fn)cw_real_of(hook);

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || p == NULL || bytesize == 0) {
		return real(p, bytesize, flags);
	}
	cw_driver_request(&request, hook, site, (void *)real, bytesize);
	cw_driver_here(&request);
	request.space = CW_KEY_REGISTERED;
	request.arguments[MEMORY] = (uint64_t)(uintptr_t)p;
	request.arguments[FLAGS] = flags;
	request.perform = perform_register;
	request.undo = undo_register;
	return cw_allocate(&request);
}

static CUresult perform_unregister(struct cw_request *request)
{
	return ((unregister_fn)request->real)((void *)(uintptr_t)request->pointer);
}

CUresult cw_mem_host_unregister(enum cw_hook_id hook, const void *site, void *p)
{
	struct cw_request request;
	unregister_fn real = (unregister_fn)cw_real_of(hook);

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || p == NULL) {
		return real(p);
	}
	cw_driver_request(&request, hook, site, (void *)real, 0);
	request.space = CW_KEY_REGISTERED;
	request.pointer = (uint64_t)(uintptr_t)p;
	request.perform = perform_unregister;
	return cw_deallocate(&request);
}
