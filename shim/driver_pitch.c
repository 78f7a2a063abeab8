/* SPDX-License-Identifier: Apache-2.0 */
/* Pitched memory: charged by the pitch, which the driver chooses (D-03). */
#include "bodies.h"
#include "driver_door.h"

typedef CUresult (*pitch_v1_fn)(CUdeviceptr_v1 *, unsigned int *, unsigned int, unsigned int,
				unsigned int);
typedef CUresult (*pitch_fn)(CUdeviceptr *, size_t *, size_t, size_t, unsigned int);

enum { WIDTH, HEIGHT, ELEMENT, PITCH };

static void charge_pitch(struct cw_request *request, uint64_t pitch)
{
	uint64_t height = request->arguments[HEIGHT];

	request->arguments[PITCH] = pitch;
	/* The driver has made it, so it cannot overflow but by the driver's mistake. */
	if (__builtin_mul_overflow(pitch, height, &request->charged)) {
		request->charged = request->requested;
	}
}

static CUresult perform_pitch(struct cw_request *request)
{
	const uint64_t *arguments = request->arguments;
	CUdeviceptr pointer = 0;
	size_t pitch = 0;
	CUresult result = ((pitch_fn)request->real)(&pointer, &pitch, arguments[WIDTH],
						    arguments[HEIGHT],
						    (unsigned int)arguments[ELEMENT]);

	if (result == CUDA_SUCCESS) {
		request->pointer = pointer;
		charge_pitch(request, pitch);
	}
	return result;
}

static CUresult perform_pitch_v1(struct cw_request *request)
{
	const uint64_t *arguments = request->arguments;
	CUdeviceptr_v1 pointer = 0;
	unsigned int pitch = 0;
	CUresult result = ((pitch_v1_fn)request->real)(&pointer, &pitch,
						       (unsigned int)arguments[WIDTH],
						       (unsigned int)arguments[HEIGHT],
						       (unsigned int)arguments[ELEMENT]);

	if (result == CUDA_SUCCESS) {
		request->pointer = pointer;
		charge_pitch(request, pitch);
	}
	return result;
}

static CUresult allocate_pitch(struct cw_request *request, enum cw_hook_id hook, const void *site,
			       void *real, uint64_t width, uint64_t height, unsigned int element)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(width, height, &bytes)) {
		bytes = UINT64_MAX;
	}
	cw_driver_request(request, hook, site, real, bytes);
	cw_driver_here(request);
	request->arguments[WIDTH] = width;
	request->arguments[HEIGHT] = height;
	request->arguments[ELEMENT] = element;
	request->undo = cw_driver_undo_free;
	request->perform = hook == CW_HOOK_cuMemAllocPitch ? perform_pitch_v1 : perform_pitch;
	return cw_allocate(request);
}

CUresult cw_mem_alloc_pitch(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
			    size_t *pitch, size_t width, size_t height, unsigned int element)
{
	struct cw_request request;
	pitch_fn real = (pitch_fn)cw_real_of(hook);
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || dptr == NULL || pitch == NULL || width == 0 ||
	    height == 0) {
		return real(dptr, pitch, width, height, element);
	}
	result = allocate_pitch(&request, hook, site, (void *)real, width, height, element);
	if (result == CUDA_SUCCESS) {
		*dptr = (CUdeviceptr)request.pointer;
		*pitch = (size_t)request.arguments[PITCH];
	}
	return result;
}

CUresult cw_mem_alloc_pitch_v1(enum cw_hook_id hook, const void *site, CUdeviceptr_v1 *dptr,
			       unsigned int *pitch, unsigned int width, unsigned int height,
			       unsigned int element)
{
	struct cw_request request;
	pitch_v1_fn real = (pitch_v1_fn)cw_real_of(hook);
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || dptr == NULL || pitch == NULL || width == 0 ||
	    height == 0) {
		return real(dptr, pitch, width, height, element);
	}
	result = allocate_pitch(&request, hook, site, (void *)real, width, height, element);
	if (result == CUDA_SUCCESS) {
		*dptr = (CUdeviceptr_v1)request.pointer;
		*pitch = (unsigned int)request.arguments[PITCH];
	}
	return result;
}
