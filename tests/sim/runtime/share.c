/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of other processes, interfaces and devices. */
#include <string.h>

#include "runtime.h"

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "same layout");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "same layout");
_Static_assert(sizeof(struct cudaExternalMemoryHandleDesc) ==
		       sizeof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC),
	       "same layout");
_Static_assert(sizeof(struct cudaExternalMemoryBufferDesc) ==
		       sizeof(CUDA_EXTERNAL_MEMORY_BUFFER_DESC),
	       "same layout");
_Static_assert(sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData),
	       "same layout");

static CUdeviceptr dp(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

static CUresult give(void **ret, CUdeviceptr p, CUresult r)
{
	if (r == CUDA_SUCCESS) {
		*ret = (void *)(uintptr_t)p;
	}
	return r;
}

static CUresult open_mem(void **ret, cudaIpcMemHandle_t handle, unsigned int flags)
{
	CUipcMemHandle h;
	CUdeviceptr p = 0;
	CUresult r;

	memcpy(&h, &handle, sizeof(h));
	r = rt_drv.f_cuIpcOpenMemHandle(ret != NULL ? &p : NULL, h, flags);
	return give(ret, p, r);
}

static CUresult open_event(cudaEvent_t *ret, cudaIpcEventHandle_t handle)
{
	CUipcEventHandle h;

	memcpy(&h, &handle, sizeof(h));
	return rt_drv.f_cuIpcOpenEventHandle(ret, h);
}

static CUresult buffer(void **ret, cudaExternalMemory_t m,
		       const struct cudaExternalMemoryBufferDesc *desc)
{
	CUdeviceptr p = 0;
	CUresult r = rt_drv.f_cuExternalMemoryGetMappedBuffer(
		ret != NULL ? &p : NULL, (CUexternalMemory)m,
		(const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *)desc);

	return give(ret, p, r);
}

static CUresult import_pointer(void **ret, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *d)
{
	CUdeviceptr p = 0;
	CUresult r = rt_drv.f_cuMemPoolImportPointer(ret != NULL ? &p : NULL, pool,
						     (CUmemPoolPtrExportData *)d);

	return give(ret, p, r);
}

/* 13.0's functions: an older driver has them not. */
static CUresult place_pool(CUresult (*fn)(CUmemoryPool *, CUmemLocation *, CUmemAllocationType),
			   cudaMemPool_t *pool, const struct cudaMemLocation *location,
			   enum cudaMemAllocationType type)
{
	CUmemLocation l;

	if (fn == NULL || location == NULL) {
		return fn == NULL ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	}
	memcpy(&l, location, sizeof(l));
	return fn(pool, &l, (CUmemAllocationType)type);
}

static CUresult set_place_pool(const struct cudaMemLocation *location,
			       enum cudaMemAllocationType type, cudaMemPool_t pool)
{
	CUmemLocation l;

	if (rt_drv.f_cuMemSetMemPool == NULL || location == NULL) {
		return location == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
	}
	memcpy(&l, location, sizeof(l));
	return rt_drv.f_cuMemSetMemPool(&l, (CUmemAllocationType)type, pool);
}

static CUmemLocation place(struct cudaMemLocation location)
{
	CUmemLocation l;

	memcpy(&l, &location, sizeof(l));
	return l;
}

static CUresult peer(int dev, unsigned int flags, bool enable)
{
	CUcontext c;
	cudaError_t e = rt_primary(dev, &c);

	if (e != cudaSuccess) {
		return (CUresult)e;
	}
	return enable ? rt_drv.f_cuCtxEnablePeerAccess(c, flags)
		      : rt_drv.f_cuCtxDisablePeerAccess(c);
}

static CUresult copy_peer(CUresult (*fn)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t),
			  void *dst, int dd, const void *src, int sd, size_t n)
{
	CUcontext d, s;
	cudaError_t e = rt_primary(dd, &d);

	if (e == cudaSuccess) {
		e = rt_primary(sd, &s);
	}
	return e == cudaSuccess ? fn(dp(dst), d, dp(src), s, n) : (CUresult)e;
}

static CUresult copy_peer_async(CUresult (*fn)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext,
					       size_t, CUstream),
				void *dst, int dd, const void *src, int sd, size_t n, CUstream st)
{
	CUcontext d, s;
	cudaError_t e = rt_primary(dd, &d);

	if (e == cudaSuccess) {
		e = rt_primary(sd, &s);
	}
	return e == cudaSuccess ? fn(dp(dst), d, dp(src), s, n, st) : (CUresult)e;
}

RT_API(cudaIpcGetMemHandle, (cudaIpcMemHandle_t *handle, void *p),
       rt_drv.f_cuIpcGetMemHandle((CUipcMemHandle *)handle, dp(p)))
RT_API(cudaIpcOpenMemHandle, (void **p, cudaIpcMemHandle_t handle, unsigned int flags),
       open_mem(p, handle, flags))
RT_API(cudaIpcCloseMemHandle, (void *p), rt_drv.f_cuIpcCloseMemHandle(dp(p)))
RT_API(cudaIpcGetEventHandle, (cudaIpcEventHandle_t *handle, cudaEvent_t e),
       rt_drv.f_cuIpcGetEventHandle((CUipcEventHandle *)handle, e))
RT_API(cudaIpcOpenEventHandle, (cudaEvent_t *e, cudaIpcEventHandle_t handle),
       open_event(e, handle))
RT_API(cudaImportExternalMemory,
       (cudaExternalMemory_t *m, const struct cudaExternalMemoryHandleDesc *desc),
       rt_drv.f_cuImportExternalMemory((CUexternalMemory *)m,
				       (const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *)desc))
RT_API(cudaDestroyExternalMemory, (cudaExternalMemory_t m),
       rt_drv.f_cuDestroyExternalMemory((CUexternalMemory)m))
RT_API(cudaExternalMemoryGetMappedBuffer,
       (void **p, cudaExternalMemory_t m, const struct cudaExternalMemoryBufferDesc *desc),
       buffer(p, m, desc))
RT_API(cudaMemPoolExportToShareableHandle,
       (void *out, cudaMemPool_t pool, enum cudaMemAllocationHandleType type, unsigned int flags),
       rt_drv.f_cuMemPoolExportToShareableHandle(out, pool, (CUmemAllocationHandleType)type,
						 flags))
RT_API(cudaMemPoolImportFromShareableHandle,
       (cudaMemPool_t *pool, void *os, enum cudaMemAllocationHandleType type, unsigned int flags),
       rt_drv.f_cuMemPoolImportFromShareableHandle(pool, os, (CUmemAllocationHandleType)type,
						   flags))
RT_API(cudaMemPoolExportPointer, (struct cudaMemPoolPtrExportData *data, void *p),
       rt_drv.f_cuMemPoolExportPointer((CUmemPoolPtrExportData *)data, dp(p)))
RT_API(cudaMemPoolImportPointer,
       (void **p, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *data),
       import_pointer(p, pool, data))
RT_API(cudaMemGetDefaultMemPool,
       (cudaMemPool_t *pool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
       place_pool(rt_drv.f_cuMemGetDefaultMemPool, pool, location, type))
RT_API(cudaMemGetMemPool,
       (cudaMemPool_t *pool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
       place_pool(rt_drv.f_cuMemGetMemPool, pool, location, type))
RT_API(cudaMemSetMemPool,
       (struct cudaMemLocation *location, enum cudaMemAllocationType type, cudaMemPool_t pool),
       set_place_pool(location, type, pool))
RT_API(cudaDeviceCanAccessPeer, (int *can, int dev, int other),
       rt_drv.f_cuDeviceCanAccessPeer(can, dev, other))
RT_API(cudaDeviceEnablePeerAccess, (int dev, unsigned int flags), peer(dev, flags, true))
RT_API(cudaDeviceDisablePeerAccess, (int dev), peer(dev, 0, false))
RT_API(cudaMemcpyPeer, (void *dst, int dd, const void *src, int sd, size_t n),
       copy_peer(rt_drv.f_cuMemcpyPeer, dst, dd, src, sd, n))
RT_API(cudaMemcpyPeerAsync,
       (void *dst, int dd, const void *src, int sd, size_t n, cudaStream_t s),
       copy_peer_async(rt_drv.f_cuMemcpyPeerAsync, dst, dd, src, sd, n, s))
RT_API_PTSZ(cudaMemPrefetchAsync,
	    (const void *p, size_t n, struct cudaMemLocation location, unsigned int flags,
	     cudaStream_t s),
	    PT(cuMemPrefetchAsync)(dp(p), n, place(location), flags, s))
RT_API(cudaMemAdvise,
       (const void *p, size_t n, enum cudaMemoryAdvise advice, struct cudaMemLocation location),
       rt_drv.f_cuMemAdvise(dp(p), n, (CUmem_advise)advice, place(location)))
RT_API_PTSZ(cudaStreamAttachMemAsync, (cudaStream_t s, void *p, size_t n, unsigned int flags),
	    PT(cuStreamAttachMemAsync)(s, dp(p), n, flags))
