/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime_alone.h"

#include "chain.h"
#include "context_end.h"
#include "driver_door.h"
#include "held.h"

/* The request of an allocation here carries its arguments, and what the runtime gave back. */
struct alone_request {
	struct cw_request request; /* first: the pipeline hands this back */
	const struct cw_alone *arguments;
	size_t pitch;
	struct cudaPitchedPtr pitched;
	bool failed_once;
};

static struct alone_request *alone_of(struct cw_request *request)
{
	return (struct alone_request *)request;
}

/* Which shape of call a hook has; the hooks are those of the runtime door. */
static cudaError_t call_runtime(struct alone_request *alone, void **ptr)
{
	const struct cw_alone *arguments = alone->arguments;
	void *real = alone->request.real;
	cudaError_t result;

	switch ((int)alone->request.hook) {
	case CW_HOOK_cudaMallocAsync:
	case CW_HOOK_cudaMallocAsync_ptsz:
		return ((cw_malloc_async_fn)real)(ptr, arguments->size, arguments->stream);
	case CW_HOOK_cudaMallocManaged:
	case CW_HOOK_cudaHostAlloc:
		return ((cw_malloc_flags_fn)real)(ptr, arguments->size, arguments->flags);
	case CW_HOOK_cudaMallocPitch:
		return ((cw_malloc_pitch_fn)real)(ptr, &alone->pitch, arguments->extent.width,
						  arguments->extent.height);
	case CW_HOOK_cudaMalloc3D:
		result = ((cw_malloc_3d_fn)real)(&alone->pitched, arguments->extent);
		alone->pitch = alone->pitched.pitch;
		*ptr = alone->pitched.ptr;
		return result;
	default:
		return ((cw_malloc_fn)real)(ptr, arguments->size);
	}
}

static CUresult perform(struct cw_request *request)
{
	struct alone_request *alone = alone_of(request);
	const struct cudaExtent *extent = &alone->arguments->extent;
	void *ptr = NULL;
	cudaError_t result;

	cw_thread.silent++;
	result = call_runtime(alone, &ptr);
	cw_thread.silent--;
	if (result != cudaSuccess) {
		alone->failed_once = true;
		return (CUresult)result;
	}
	request->pointer = (uint64_t)(uintptr_t)ptr;
	if (alone->pitch != 0) {
		request->charged = (uint64_t)alone->pitch * extent->height * extent->depth;
	}
	return CUDA_SUCCESS;
}

static CUresult undo(struct cw_request *request)
{
	enum cw_hook_id hook = CW_HOOK_cudaFree;
	cudaError_t result;
	void *real;

	if (request->flags & CUWEIR_EVENT_STREAM_ORDERED) {
		hook = request->hook == CW_HOOK_cudaMallocAsync ? CW_HOOK_cudaFreeAsync
								: CW_HOOK_cudaFreeAsync_ptsz;
	} else if (request->kind == CUWEIR_KIND_HOST) {
		hook = CW_HOOK_cudaFreeHost;
	}
	real = cw_real_runtime(hook, request->site);
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	cw_thread.silent++;
	if (request->flags & CUWEIR_EVENT_STREAM_ORDERED) {
		result = ((cw_free_async_fn)real)((void *)(uintptr_t)request->pointer,
						  request->stream);
	} else {
		result = ((cw_free_fn)real)((void *)(uintptr_t)request->pointer);
	}
	cw_thread.silent--;
	return (CUresult)result;
}

/*
 * No context is there yet: the runtime will make it on this device. Whoever is asked beforehand
 * is asked about that one.
 */
void cw_alone_guess_device(struct cw_request *request)
{
	int device;

	if (request->device < 0 && !cw_capture_open() &&
	    cw_runtime_device(request->real, &device) == 0) {
		request->device = device;
	}
}

/* The runtime may have made the context only in this very call. */
void cw_alone_locate(struct cw_request *request)
{
	struct cw_where where;

	if (request->flags & CUWEIR_EVENT_STREAM_ORDERED) {
		cw_where_of_stream(request->stream, &where);
		request->device = where.device;
		return;
	}
	cw_where_current(&where);
	request->context = where.context;
	request->device = where.device;
}

/* A failure that was mended must not be found in the last error afterwards. */
void cw_alone_clear_last_error(const struct cw_request *request)
{
	cw_void_fn get_last_error =
		(cw_void_fn)cw_function_beside(request->real, "cudaGetLastError");

	if (get_last_error != NULL) {
		cw_thread.silent++;
		get_last_error();
		cw_thread.silent--;
	}
}

static bool is_stream_ordered(enum cw_hook_id hook)
{
	return hook == CW_HOOK_cudaMallocAsync || hook == CW_HOOK_cudaMallocAsync_ptsz ||
	       hook == CW_HOOK_cudaFreeAsync || hook == CW_HOOK_cudaFreeAsync_ptsz;
}

static bool per_thread(enum cw_hook_id hook)
{
	return hook == CW_HOOK_cudaMallocAsync_ptsz || hook == CW_HOOK_cudaFreeAsync_ptsz;
}

/* 0 also where the sizes overflow: then the runtime says so itself. */
static uint64_t bytes_asked(const struct cw_alone *arguments)
{
	uint64_t bytes = arguments->size;

	if (arguments->pitch != NULL || arguments->pitched != NULL) {
		const struct cudaExtent *extent = &arguments->extent;

		if (__builtin_mul_overflow(extent->width, extent->height, &bytes) ||
		    __builtin_mul_overflow(bytes, extent->depth, &bytes)) {
			return 0;
		}
	}
	return bytes;
}

static bool has_out_pointers(enum cw_hook_id hook, const struct cw_alone *arguments)
{
	if (hook == CW_HOOK_cudaMalloc3D) {
		return arguments->pitched != NULL;
	}
	return arguments->ptr != NULL &&
	       (hook != CW_HOOK_cudaMallocPitch || arguments->pitch != NULL);
}

/* The program's own call, with its own pointers. */
static cudaError_t forward(enum cw_hook_id hook, void *real, const struct cw_alone *arguments)
{
	cudaError_t result;

	cw_thread.silent++;
	if (hook == CW_HOOK_cudaMallocPitch) {
		result = ((cw_malloc_pitch_fn)real)(arguments->ptr, arguments->pitch,
						    arguments->extent.width,
						    arguments->extent.height);
	} else if (hook == CW_HOOK_cudaMalloc3D) {
		result = ((cw_malloc_3d_fn)real)(arguments->pitched, arguments->extent);
	} else {
		struct alone_request alone = { .arguments = arguments };

		alone.request.hook = hook;
		alone.request.real = real;
		result = call_runtime(&alone, arguments->ptr);
	}
	cw_thread.silent--;
	return result;
}

static void deliver(const struct alone_request *alone)
{
	const struct cw_alone *arguments = alone->arguments;

	if (arguments->pitched != NULL) {
		*arguments->pitched = alone->pitched;
		return;
	}
	*arguments->ptr = (void *)(uintptr_t)alone->request.pointer;
	if (arguments->pitch != NULL) {
		*arguments->pitch = alone->pitch;
	}
}

/*
 * As at the driver door, and only where a context is there for the policy to work in: one that was
 * reset is current none the less, and made anew by the runtime's own call alone.
 */
static bool is_servable(const struct cw_request *request, const struct cw_alone *arguments)
{
	const void *context = (request->flags & CUWEIR_EVENT_STREAM_ORDERED) != 0
				      ? request->stream_context : request->context;
	unsigned int plain = request->kind == CUWEIR_KIND_MANAGED ? cudaMemAttachGlobal : 0;

	return context != NULL && arguments->pitch == NULL && arguments->pitched == NULL &&
	       arguments->flags == plain &&
	       (!cw_chain_wants(CW_CHAIN_SERVES) || cw_primary_is_active(request->device));
}

cudaError_t cw_alone_allocate(enum cw_hook_id hook, const void *site, void *real,
			      const struct cw_alone *arguments)
{
	struct alone_request alone = { .arguments = arguments };
	uint64_t bytes = bytes_asked(arguments);
	CUresult result;

	if (!cw_ready() || bytes == 0 || !has_out_pointers(hook, arguments) ||
	    (is_stream_ordered(hook) &&
	     cw_stream_is_capturing(arguments->stream, per_thread(hook)))) {
		return forward(hook, real, arguments);
	}
	cw_driver_request(&alone.request, hook, site, real, bytes);
	if (is_stream_ordered(hook)) {
		cw_driver_on_stream(&alone.request, arguments->stream, per_thread(hook));
	} else {
		cw_driver_here(&alone.request);
	}
	cw_alone_guess_device(&alone.request);
	alone.request.perform = perform;
	alone.request.undo = undo;
	alone.request.servable = is_servable(&alone.request, arguments);
	alone.request.locate = cw_alone_locate;
	result = cw_allocate(&alone.request);
	if (result == CUDA_SUCCESS) {
		if (alone.failed_once) {
			cw_alone_clear_last_error(&alone.request);
		}
		deliver(&alone);
	}
	return (cudaError_t)result;
}

static CUresult perform_free(struct cw_request *request)
{
	cudaError_t result;

	cw_thread.silent++;
	if (request->flags & CUWEIR_EVENT_STREAM_ORDERED) {
		result = ((cw_free_async_fn)request->real)((void *)(uintptr_t)request->pointer,
							   request->stream);
	} else {
		result = ((cw_free_fn)request->real)((void *)(uintptr_t)request->pointer);
	}
	cw_thread.silent--;
	return (CUresult)result;
}

cudaError_t cw_alone_free(enum cw_hook_id hook, const void *site, void *real, void *ptr,
			  cudaStream_t stream)
{
	struct cw_request request;

	cw_driver_request(&request, hook, site, real, 0);
	if (is_stream_ordered(hook)) {
		request.stream = stream;
		request.flags = CUWEIR_EVENT_STREAM_ORDERED |
				(per_thread(hook) ? CUWEIR_EVENT_PER_THREAD : 0u);
	}
	request.pointer = (uint64_t)(uintptr_t)ptr;
	if (!cw_ready() || ptr == NULL ||
	    (is_stream_ordered(hook) && cw_stream_is_capturing(stream, per_thread(hook)) &&
	     !cw_is_policys(request.pointer))) {
		return (cudaError_t)perform_free(&request);
	}
	request.perform = perform_free;
	return (cudaError_t)cw_deallocate(&request);
}

cudaError_t cw_alone_device_reset(enum cw_hook_id hook, const void *site, void *real)
{
	struct cw_context_end end;
	struct cw_where where;
	cudaError_t result;
	int told;

	cw_where_current(&where);
	if (!cw_ready() || where.context == NULL) {
		return ((cw_void_fn)real)();
	}
	cw_context_end_begin(&end, where.context, where.device, hook, site);
	cw_thread.silent++;
	result = ((cw_void_fn)real)();
	cw_thread.silent--;
	cw_heard_current_lost();
	told = cw_context_end_finish(&end, result == cudaSuccess);
	return result == cudaSuccess ? (cudaError_t)told : result;
}
