/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up, the thread's device and context, and the last error. */
#include <pthread.h>

#include "runtime.h"

#define MAX_DEVICES 64

struct rt_driver rt_drv;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t init_error;
static _Thread_local cudaError_t last_error;
static _Thread_local int device;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[MAX_DEVICES]; /* retained and not reset since */
static CUcontext before_reset[MAX_DEVICES];
static _Atomic bool was_reset;

static void init(void)
{
	CUresult r;

	init_error = rt_find_driver(&rt_drv);
	if (init_error == cudaSuccess) {
		r = rt_drv.f_cuInit(0);
		init_error = (cudaError_t)r;
	}
}

cudaError_t rt_init(void)
{
	pthread_once(&once, init);
	return init_error;
}

int rt_device(void)
{
	return device;
}

/* Results of the two interfaces have the same numbers, as far as this runtime makes them. */
cudaError_t rt_error(cudaError_t e)
{
	if (e != cudaSuccess && e != cudaErrorNotReady) {
		last_error = e;
	}
	return e;
}

cudaError_t rt_done(CUresult r)
{
	return rt_error((cudaError_t)r);
}

static cudaError_t retain(int dev, CUcontext *ret)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (primary[dev] == NULL) {
		r = rt_drv.f_cuDevicePrimaryCtxRetain(&primary[dev], dev);
	}
	*ret = primary[dev];
	pthread_mutex_unlock(&lock);
	return (cudaError_t)r;
}

cudaError_t rt_primary(int dev, CUcontext *ret)
{
	CUdevice found;
	CUresult r = rt_drv.f_cuDeviceGet(&found, dev);

	return r == CUDA_SUCCESS ? retain(dev, ret) : (cudaError_t)r;
}

/* The device whose primary context this is, and has been reset; else -1. */
static int reset_device(CUcontext c)
{
	int dev = -1;

	if (!atomic_load_explicit(&was_reset, memory_order_acquire)) {
		return -1;
	}
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAX_DEVICES; i++) {
		if (before_reset[i] == c && primary[i] == NULL) {
			dev = i;
		}
	}
	pthread_mutex_unlock(&lock);
	return dev;
}

/* A context that the program made current is used; without one, or after a reset, the device's
 * primary one is made so. */
cudaError_t rt_bind(void)
{
	CUcontext c = NULL, want = NULL;
	int dev = device;
	cudaError_t e = rt_init();

	if (e == cudaSuccess) {
		e = (cudaError_t)rt_drv.f_cuCtxGetCurrent(&c);
	}
	if (e == cudaSuccess && c != NULL) {
		dev = reset_device(c);
		if (dev < 0) {
			return cudaSuccess;
		}
	}
	if (e == cudaSuccess) {
		e = retain(dev, &want);
	}
	if (e == cudaSuccess) {
		e = (cudaError_t)rt_drv.f_cuCtxSetCurrent(want);
	}
	return e;
}

RT_EXPORT cudaError_t CUDARTAPI cudaGetLastError(void)
{
	cudaError_t e = last_error;

	last_error = cudaSuccess;
	return e;
}

RT_EXPORT cudaError_t CUDARTAPI cudaPeekAtLastError(void)
{
	return last_error;
}

RT_EXPORT cudaError_t CUDARTAPI cudaGetDeviceCount(int *count)
{
	cudaError_t e = rt_init();

	return e != cudaSuccess ? rt_error(e) : rt_done(rt_drv.f_cuDeviceGetCount(count));
}

/* Since CUDA 12 it makes the primary context at once (C-112). */
RT_EXPORT cudaError_t CUDARTAPI cudaSetDevice(int dev)
{
	CUcontext c;
	CUdevice found;
	cudaError_t e = rt_init();

	if (e == cudaSuccess) {
		e = (cudaError_t)rt_drv.f_cuDeviceGet(&found, dev);
	}
	if (e == cudaSuccess) {
		e = retain(dev, &c);
	}
	if (e == cudaSuccess) {
		device = dev;
		e = (cudaError_t)rt_drv.f_cuCtxSetCurrent(c);
	}
	return rt_error(e);
}

RT_EXPORT cudaError_t CUDARTAPI cudaInitDevice(int dev, unsigned int device_flags,
					       unsigned int flags)
{
	CUcontext c;
	CUdevice found;
	cudaError_t e = rt_init();

	(void)device_flags;
	(void)flags;
	if (e == cudaSuccess) {
		e = (cudaError_t)rt_drv.f_cuDeviceGet(&found, dev);
	}
	return rt_error(e == cudaSuccess ? retain(dev, &c) : e);
}

RT_EXPORT cudaError_t CUDARTAPI cudaGetDevice(int *dev)
{
	CUcontext c = NULL;
	cudaError_t e = rt_init();

	if (e != cudaSuccess) {
		return rt_error(e);
	}
	if (dev == NULL) {
		return rt_error(cudaErrorInvalidValue);
	}
	if (rt_drv.f_cuCtxGetCurrent(&c) == CUDA_SUCCESS && c != NULL) {
		return rt_done(rt_drv.f_cuCtxGetDevice(dev));
	}
	*dev = device;
	return cudaSuccess;
}

/* The context's memory goes; pool memory stays. The next call retains the context again. */
RT_EXPORT cudaError_t CUDARTAPI cudaDeviceReset(void)
{
	CUcontext c = NULL;
	CUdevice dev = device;
	cudaError_t e = rt_init();

	if (e != cudaSuccess) {
		return rt_error(e);
	}
	if (rt_drv.f_cuCtxGetCurrent(&c) == CUDA_SUCCESS && c != NULL) {
		rt_drv.f_cuCtxGetDevice(&dev);
	}
	pthread_mutex_lock(&lock);
	if (dev < MAX_DEVICES) {
		if (primary[dev] != NULL) {
			e = (cudaError_t)rt_drv.f_cuDevicePrimaryCtxReset(dev);
			rt_drv.f_cuDevicePrimaryCtxRelease(dev);
		}
		before_reset[dev] = primary[dev] != NULL ? primary[dev] : before_reset[dev];
		primary[dev] = NULL;
		atomic_store_explicit(&was_reset, true, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return rt_error(e);
}
