/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime door for arrays and registered host memory, by hand instead of by
 * CW_RUNTIME_NAMED, because a runtime that no driver door hears gets the pipeline here (D-19).
 * Imports through such a runtime are forwarded and not counted: each open would have to be known
 * by its handle a second time, for a case that no runtime of NVIDIA's makes.
 */
#include "aliases.h"
#include "array_size.h"
#include "bodies.h"
#include "driver_door.h"
#include "runtime_alone.h"
#include "runtime_door.h"

typedef cudaError_t (*array_fn)(cudaArray_t *, const struct cudaChannelFormatDesc *, size_t, size_t,
				unsigned int);
typedef cudaError_t (*array_3d_fn)(cudaArray_t *, const struct cudaChannelFormatDesc *,
				   struct cudaExtent, unsigned int);
typedef cudaError_t (*mipmapped_fn)(cudaMipmappedArray_t *, const struct cudaChannelFormatDesc *,
				    struct cudaExtent, unsigned int, unsigned int);
typedef cudaError_t (*register_fn)(void *, size_t, unsigned int);
typedef cudaError_t (*give_back_fn)(void *);

/* Calls the real function under the name of this one. */
#define NAMED(real, ...)                                                                           \
	do {                                                                                       \
		struct cw_named outer = cw_runtime_name(hook, site, (void *)(real));               \
		cudaError_t named_result = (real)(__VA_ARGS__);                                    \
                                                                                                   \
		cw_runtime_unname(&outer);                                                         \
		return named_result;                                                               \
	} while (0)

/* The request of a runtime alone, and its arguments; `memory` is a handle, or the program's. */
struct alone {
	struct cw_request request; /* first: the pipeline hands this back */
	const struct cudaChannelFormatDesc *desc;
	struct cudaExtent extent;
	unsigned int levels;
	unsigned int flags;
	void *memory;
	bool failed_once;
};

static cudaError_t call_real(struct alone *alone)
{
	void *real = alone->request.real;

	switch ((int)alone->request.hook) {
	case CW_HOOK_cudaMallocArray:
		return ((array_fn)real)((cudaArray_t *)&alone->memory, alone->desc,
					alone->extent.width, alone->extent.height, alone->flags);
	case CW_HOOK_cudaMalloc3DArray:
		return ((array_3d_fn)real)((cudaArray_t *)&alone->memory, alone->desc,
					   alone->extent, alone->flags);
	case CW_HOOK_cudaMallocMipmappedArray:
		return ((mipmapped_fn)real)((cudaMipmappedArray_t *)&alone->memory, alone->desc,
					    alone->extent, alone->levels, alone->flags);
	default:
		return ((register_fn)real)(alone->memory, (size_t)alone->request.requested,
					   alone->flags);
	}
}

static CUresult perform(struct cw_request *request)
{
	struct alone *alone = (struct alone *)request;
	cudaError_t result;

	cw_thread.silent++;
	result = call_real(alone);
	cw_thread.silent--;
	if (result != cudaSuccess) {
		alone->failed_once = true;
	}
	request->pointer = (uint64_t)(uintptr_t)alone->memory;
	return (CUresult)result;
}

static enum cw_hook_id undoing(enum cw_hook_id hook)
{
	switch ((int)hook) {
	case CW_HOOK_cudaMallocMipmappedArray:
		return CW_HOOK_cudaFreeMipmappedArray;
	case CW_HOOK_cudaHostRegister:
		return CW_HOOK_cudaHostUnregister;
	default:
		return CW_HOOK_cudaFreeArray;
	}
}

static CUresult give_back(struct cw_request *request)
{
	cudaError_t result;

	cw_thread.silent++;
	result = ((give_back_fn)request->real)((void *)(uintptr_t)request->pointer);
	cw_thread.silent--;
	return (CUresult)result;
}

static CUresult undo(struct cw_request *request)
{
	void *allocating = request->real;
	CUresult result;

	request->real = cw_real_runtime(undoing(request->hook), request->site);
	result = request->real != NULL ? give_back(request) : CUDA_ERROR_NOT_FOUND;
	request->real = allocating;
	return result;
}

static uint8_t space_of(enum cw_hook_id hook)
{
	switch ((int)hook) {
	case CW_HOOK_cudaMallocMipmappedArray:
	case CW_HOOK_cudaFreeMipmappedArray:
		return CW_KEY_MIPMAPPED_ARRAY;
	case CW_HOOK_cudaHostRegister:
	case CW_HOOK_cudaHostUnregister:
		return CW_KEY_REGISTERED;
	default:
		return CW_KEY_ARRAY;
	}
}

static cudaError_t allocate(struct alone *alone, enum cw_hook_id hook, const void *site,
			    void *real, uint64_t bytes)
{
	CUresult result;

	cw_driver_request(&alone->request, hook, site, real, bytes);
	cw_driver_here(&alone->request);
	cw_alone_guess_device(&alone->request);
	alone->request.space = space_of(hook);
	alone->request.perform = perform;
	alone->request.undo = undo;
	alone->request.locate = cw_alone_locate;
	if (bytes == 0) {
		result = perform(&alone->request);
		if (result == CUDA_SUCCESS) {
			cw_alias_note(cw_request_key(&alone->request));
		}
		return (cudaError_t)result;
	}
	result = cw_allocate(&alone->request);
	if (result == CUDA_SUCCESS && alone->failed_once) {
		cw_alone_clear_last_error(&alone->request);
	}
	return (cudaError_t)result;
}

static cudaError_t free_alone(enum cw_hook_id hook, const void *site, void *real, void *memory)
{
	struct cw_request request;

	cw_driver_request(&request, hook, site, real, 0);
	request.space = space_of(hook);
	request.pointer = (uint64_t)(uintptr_t)memory;
	if (!cw_ready() || memory == NULL) {
		return (cudaError_t)give_back(&request);
	}
	request.perform = give_back;
	return (cudaError_t)cw_deallocate(&request);
}

/* The formats that have a kind to themselves, as CUarray_format numbers them. */
static unsigned int format_of(int kind)
{
	enum { NV12 = 4, NORMALIZED = 5, BLOCKS = 17, NORMALIZED_1010102 = 31 };

	if (kind == NV12) {
		return 0xb0;
	}
	if (kind >= NORMALIZED && kind < BLOCKS) {
		return 0xc0u + (unsigned int)(kind - NORMALIZED);
	}
	if (kind >= BLOCKS && kind < NORMALIZED_1010102) {
		return 0x91u + (unsigned int)(kind - BLOCKS);
	}
	return kind == NORMALIZED_1010102 ? 0x50 : 0;
}

static uint64_t bytes_of(const struct alone *alone)
{
	const struct cudaChannelFormatDesc *desc = alone->desc;
	struct cw_array_shape shape = {
		.width = alone->extent.width,
		.height = alone->extent.height,
		.depth = alone->extent.depth,
		.flags = alone->flags,
		.levels = alone->levels,
	};

	/* Plain channels: their bytes, as that many channels of one. */
	if (desc->f == cudaChannelFormatKindSigned || desc->f == cudaChannelFormatKindUnsigned ||
	    desc->f == cudaChannelFormatKindFloat) {
		shape.format = CU_AD_FORMAT_UNSIGNED_INT8;
		shape.channels = (unsigned int)(desc->x + desc->y + desc->z + desc->w) / 8;
	} else {
		shape.format = format_of((int)desc->f);
	}
	return cw_array_bytes(&shape);
}

static bool runs_alone(enum cw_hook_id hook, void *real)
{
	return CW_UNLIKELY(cw_runtime_is_alone(hook, real)) && cw_ready();
}

cudaError_t cw_cuda_malloc_array(enum cw_hook_id hook, const void *site, cudaArray_t *array,
				 const struct cudaChannelFormatDesc *desc, size_t width,
				 size_t height, unsigned int flags)
{
	array_fn real = (array_fn)cw_real_runtime(hook, site);
	struct alone alone = { .desc = desc, .extent = { width, height, 0 }, .flags = flags };
	cudaError_t result;

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	if (array == NULL || desc == NULL || !runs_alone(hook, (void *)real)) {
		NAMED(real, array, desc, width, height, flags);
	}
	alone.levels = 1;
	result = allocate(&alone, hook, site, (void *)real, bytes_of(&alone));
	if (result == cudaSuccess) {
		*array = (cudaArray_t)alone.memory;
	}
	return result;
}

cudaError_t cw_cuda_malloc_3d_array(enum cw_hook_id hook, const void *site, cudaArray_t *array,
				    const struct cudaChannelFormatDesc *desc,
				    struct cudaExtent extent, unsigned int flags)
{
	array_3d_fn real = (array_3d_fn)cw_real_runtime(hook, site);
	struct alone alone = { .desc = desc, .extent = extent, .flags = flags };
	cudaError_t result;

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	if (array == NULL || desc == NULL || !runs_alone(hook, (void *)real)) {
		NAMED(real, array, desc, extent, flags);
	}
	alone.levels = 1;
	result = allocate(&alone, hook, site, (void *)real, bytes_of(&alone));
	if (result == cudaSuccess) {
		*array = (cudaArray_t)alone.memory;
	}
	return result;
}

cudaError_t cw_cuda_malloc_mipmapped_array(enum cw_hook_id hook, const void *site,
					   cudaMipmappedArray_t *array,
					   const struct cudaChannelFormatDesc *desc,
					   struct cudaExtent extent, unsigned int levels,
					   unsigned int flags)
{
	mipmapped_fn real = (mipmapped_fn)cw_real_runtime(hook, site);
	struct alone alone = { .desc = desc, .extent = extent, .levels = levels, .flags = flags };
	cudaError_t result;

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	if (array == NULL || desc == NULL || levels == 0 || !runs_alone(hook, (void *)real)) {
		NAMED(real, array, desc, extent, levels, flags);
	}
	result = allocate(&alone, hook, site, (void *)real, bytes_of(&alone));
	if (result == cudaSuccess) {
		*array = (cudaMipmappedArray_t)alone.memory;
	}
	return result;
}

cudaError_t cw_cuda_host_register(enum cw_hook_id hook, const void *site, void *ptr, size_t size,
				  unsigned int flags)
{
	register_fn real = (register_fn)cw_real_runtime(hook, site);
	struct alone alone = { .memory = ptr, .flags = flags };

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	if (ptr == NULL || size == 0 || !runs_alone(hook, (void *)real)) {
		NAMED(real, ptr, size, flags);
	}
	return allocate(&alone, hook, site, (void *)real, size);
}

/* cudaFreeArray, cudaFreeMipmappedArray and cudaHostUnregister are called alike. */
static cudaError_t give_back_through(enum cw_hook_id hook, const void *site, void *memory)
{
	give_back_fn real = (give_back_fn)cw_real_runtime(hook, site);

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	if (!runs_alone(hook, (void *)real)) {
		NAMED(real, memory);
	}
	return free_alone(hook, site, (void *)real, memory);
}

cudaError_t cw_cuda_free_array(enum cw_hook_id hook, const void *site, cudaArray_t array)
{
	return give_back_through(hook, site, array);
}

cudaError_t cw_cuda_free_mipmapped_array(enum cw_hook_id hook, const void *site,
					 cudaMipmappedArray_t array)
{
	return give_back_through(hook, site, array);
}

cudaError_t cw_cuda_host_unregister(enum cw_hook_id hook, const void *site, void *ptr)
{
	return give_back_through(hook, site, ptr);
}
