/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime as a scenario's way in; which runtime the program is linked to decides. */
#include "apps.h"
#include "scenario.h"

#include <cuda_runtime_api.h>

static int start(const char *how)
{
	if (strcmp(how, "runtime") != 0) {
		fprintf(stderr, "scenario: no way \"%s\" in this program\n", how);
		exit(2);
	}
	return (int)cudaSetDevice(0);
}

static int alloc(unsigned long long *p, size_t size)
{
	return (int)cudaMalloc((void **)p, size);
}

static int alloc_pitch(unsigned long long *p, size_t *pitch, size_t width, size_t height)
{
	return (int)cudaMallocPitch((void **)p, pitch, width, height);
}

static int alloc_managed(unsigned long long *p, size_t size)
{
	return (int)cudaMallocManaged((void **)p, size, cudaMemAttachGlobal);
}

static int mem_free(unsigned long long p)
{
	return (int)cudaFree((void *)p);
}

static int alloc_async(unsigned long long *p, size_t size, struct stream s)
{
	return (int)cudaMallocAsync((void **)p, size,
				    s.per_thread ? cudaStreamPerThread : s.handle);
}

static int free_async(unsigned long long p, struct stream s)
{
	return (int)cudaFreeAsync((void *)p, s.per_thread ? cudaStreamPerThread : s.handle);
}

static int alloc_host(unsigned long long *p, size_t size)
{
	return (int)cudaMallocHost((void **)p, size);
}

static int host_alloc(unsigned long long *p, size_t size)
{
	return (int)cudaHostAlloc((void **)p, size, cudaHostAllocPortable);
}

static int free_host(unsigned long long p)
{
	return (int)cudaFreeHost((void *)p);
}

static int info(size_t *free_bytes, size_t *total_bytes)
{
	return (int)cudaMemGetInfo(free_bytes, total_bytes);
}

static int stream_create(void **stream)
{
	return (int)cudaStreamCreate((cudaStream_t *)stream);
}

static int stream_destroy(void *stream)
{
	return (int)cudaStreamDestroy(stream);
}

static int capture_begin(struct stream s)
{
	return (int)cudaStreamBeginCapture(s.handle, cudaStreamCaptureModeThreadLocal);
}

static int capture_end(struct stream s)
{
	cudaGraph_t graph;

	return (int)cudaStreamEndCapture(s.handle, &graph);
}

static int device_set(int device)
{
	return (int)cudaSetDevice(device);
}

static int device_reset(int device)
{
	cudaError_t status = cudaSetDevice(device);

	return (int)(status != cudaSuccess ? status : cudaDeviceReset());
}

static int synchronize(void)
{
	return (int)cudaDeviceSynchronize();
}

static int last_error(bool clear)
{
	return (int)(clear ? cudaGetLastError() : cudaPeekAtLastError());
}

const struct way way = {
	.start = start,
	.alloc = alloc,
	.alloc_pitch = alloc_pitch,
	.alloc_managed = alloc_managed,
	.free = mem_free,
	.alloc_async = alloc_async,
	.free_async = free_async,
	.alloc_host = alloc_host,
	.host_alloc = host_alloc,
	.free_host = free_host,
	.info = info,
	.stream_create = stream_create,
	.stream_destroy = stream_destroy,
	.capture_begin = capture_begin,
	.capture_end = capture_end,
	.device = device_set,
	.device_reset = device_reset,
	.synchronize = synchronize,
	.last_error = last_error,
};
