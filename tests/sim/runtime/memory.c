/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation, free, copies. */
#include "runtime.h"

static CUdeviceptr dp(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

/* Size 0 succeeds without a driver call, and leaves *p as it was (C-03, C-04). */
static CUresult rt_malloc(void **p, size_t size)
{
	CUdeviceptr d = 0;
	CUresult r;

	if (p == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (size == 0) {
		return CUDA_SUCCESS;
	}
	r = rt_drv.f_cuMemAlloc(&d, size);
	if (r == CUDA_SUCCESS) {
		*p = (void *)(uintptr_t)d;
	}
	return r;
}

static CUresult async(CUresult (*fn)(CUdeviceptr *, size_t, CUstream), void **p, size_t size,
		      CUstream s)
{
	CUdeviceptr d = 0;
	CUresult r;

	if (p == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (size == 0) {
		return CUDA_SUCCESS;
	}
	r = fn(&d, size, s);
	if (r == CUDA_SUCCESS) {
		*p = (void *)(uintptr_t)d;
	}
	return r;
}

static CUresult from_pool(CUresult (*fn)(CUdeviceptr *, size_t, CUmemoryPool, CUstream), void **p,
			  size_t size, CUmemoryPool pool, CUstream s)
{
	CUdeviceptr d = 0;
	CUresult r;

	if (p == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (size == 0) {
		return CUDA_SUCCESS;
	}
	r = fn(&d, size, pool, s);
	if (r == CUDA_SUCCESS) {
		*p = (void *)(uintptr_t)d;
	}
	return r;
}

static CUresult managed(void **p, size_t size, unsigned int flags)
{
	CUdeviceptr d = 0;
	CUresult r;

	if (p == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = rt_drv.f_cuMemAllocManaged(&d, size, flags);
	if (r == CUDA_SUCCESS) {
		*p = (void *)(uintptr_t)d;
	}
	return r;
}

static CUresult pitch(void **p, size_t *ret_pitch, size_t width, size_t height)
{
	CUdeviceptr d = 0;
	CUresult r;

	if (p == NULL || ret_pitch == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = rt_drv.f_cuMemAllocPitch(&d, ret_pitch, width, height, 4);
	if (r == CUDA_SUCCESS) {
		*p = (void *)(uintptr_t)d;
	}
	return r;
}

static CUresult alloc_3d(struct cudaPitchedPtr *p, struct cudaExtent e)
{
	void *mem = NULL;
	size_t got = 0;
	CUresult r;

	if (p == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = pitch(&mem, &got, e.width, e.height * e.depth);
	if (r == CUDA_SUCCESS) {
		*p = (struct cudaPitchedPtr){.ptr = mem, .pitch = got, .xsize = e.width,
					     .ysize = e.height};
	}
	return r;
}

static CUresult host(void **p, size_t size, unsigned int flags)
{
	if (p == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	return size == 0 ? CUDA_SUCCESS : rt_drv.f_cuMemHostAlloc(p, size, flags);
}

static CUresult free_device(void *p)
{
	return p == NULL ? CUDA_SUCCESS : rt_drv.f_cuMemFree(dp(p));
}

static CUresult free_host(void *p)
{
	return p == NULL ? CUDA_SUCCESS : rt_drv.f_cuMemFreeHost(p);
}

static CUresult host_pointer(void **ret, void *p, unsigned int flags)
{
	CUdeviceptr d = 0;
	CUresult r = rt_drv.f_cuMemHostGetDevicePointer(ret != NULL ? &d : NULL, p, flags);

	if (r == CUDA_SUCCESS) {
		*ret = (void *)(uintptr_t)d;
	}
	return r;
}

/* Unknown memory is success with cudaMemoryTypeUnregistered, since CUDA 11. */
static CUresult pointer_attributes(struct cudaPointerAttributes *a, const void *p)
{
	CUpointer_attribute attrs[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
				       CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
				       CU_POINTER_ATTRIBUTE_HOST_POINTER,
				       CU_POINTER_ATTRIBUTE_IS_MANAGED};
	unsigned int type = 0;
	int ordinal = -2;
	CUdeviceptr d = 0;
	void *h = NULL;
	bool is_managed = false;
	void *outs[] = {&type, &ordinal, &d, &h, &is_managed};
	CUresult r;

	if (a == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = rt_drv.f_cuPointerGetAttributes(5, attrs, outs, dp(p));
	if (r != CUDA_SUCCESS) {
		return r;
	}
	*a = (struct cudaPointerAttributes){.device = ordinal};
	if (type == 0) {
		a->type = cudaMemoryTypeUnregistered;
		a->hostPointer = (void *)(uintptr_t)p;
		return r;
	}
	a->type = is_managed			   ? cudaMemoryTypeManaged
		  : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
						   : cudaMemoryTypeDevice;
	a->devicePointer = (void *)(uintptr_t)d;
	a->hostPointer = h;
	return r;
}

RT_API(cudaMalloc, (void **p, size_t size), rt_malloc(p, size))
RT_API(cudaFree, (void *p), free_device(p))
RT_API(cudaMallocManaged, (void **p, size_t size, unsigned int flags), managed(p, size, flags))
RT_API(cudaMallocPitch, (void **p, size_t *ret, size_t width, size_t height),
       pitch(p, ret, width, height))
RT_API(cudaMalloc3D, (struct cudaPitchedPtr *p, struct cudaExtent extent), alloc_3d(p, extent))
RT_API(cudaMallocHost, (void **p, size_t size), host(p, size, 0))
RT_API(cudaHostAlloc, (void **p, size_t size, unsigned int flags), host(p, size, flags))
RT_API(cudaFreeHost, (void *p), free_host(p))
RT_API(cudaHostRegister, (void *p, size_t size, unsigned int flags),
       rt_drv.f_cuMemHostRegister(p, size, flags))
RT_API(cudaHostUnregister, (void *p), rt_drv.f_cuMemHostUnregister(p))
RT_API(cudaHostGetDevicePointer, (void **d, void *p, unsigned int flags),
       host_pointer(d, p, flags))
RT_API(cudaHostGetFlags, (unsigned int *flags, void *p), rt_drv.f_cuMemHostGetFlags(flags, p))
RT_API(cudaMemGetInfo, (size_t *free_bytes, size_t *total),
       rt_drv.f_cuMemGetInfo(free_bytes, total))
RT_API(cudaPointerGetAttributes, (struct cudaPointerAttributes *a, const void *p),
       pointer_attributes(a, p))
RT_API_PTSZ(cudaMallocAsync, (void **p, size_t size, cudaStream_t s),
	    async(PT(cuMemAllocAsync), p, size, s))
RT_API_PTSZ(cudaMallocFromPoolAsync, (void **p, size_t size, cudaMemPool_t pool, cudaStream_t s),
	    from_pool(PT(cuMemAllocFromPoolAsync), p, size, pool, s))
RT_API_PTSZ(cudaFreeAsync, (void *p, cudaStream_t s), PT(cuMemFreeAsync)(dp(p), s))
RT_API_PTDS(cudaMemcpy, (void *dst, const void *src, size_t n, enum cudaMemcpyKind kind),
	    (unsigned int)kind > cudaMemcpyDefault ? CUDA_ERROR_INVALID_VALUE
						   : PT(cuMemcpy)(dp(dst), dp(src), n))
RT_API_PTSZ(cudaMemcpyAsync,
	    (void *dst, const void *src, size_t n, enum cudaMemcpyKind kind, cudaStream_t s),
	    (unsigned int)kind > cudaMemcpyDefault ? CUDA_ERROR_INVALID_VALUE
						   : PT(cuMemcpyAsync)(dp(dst), dp(src), n, s))
RT_API_PTDS(cudaMemset, (void *p, int value, size_t n),
	    PT(cuMemsetD8)(dp(p), (unsigned char)value, n))
RT_API_PTSZ(cudaMemsetAsync, (void *p, int value, size_t n, cudaStream_t s),
	    PT(cuMemsetD8Async)(dp(p), (unsigned char)value, n, s))
