/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver API as a scenario's way in. Built with WAY_LINKED the program is linked to
 * libcuda.so.1; without, it opens it and takes each function by dlsym ("dlsym"), or by
 * cuGetProcAddress ("gpa" for its second version, "gpa1" for its first).
 */
#include "apps.h"
#include "lookup.h"
#include "scenario.h"

#include <cuda.h>

struct driver {
#define CALL(symbol, base, version, flags, parameters) CUresult(*symbol) parameters;
#include "driver_calls.def"
#undef CALL
};

#ifdef WAY_LINKED

#define CALL(symbol, base, version, flags, parameters) CUresult symbol parameters;
#include "driver_calls.def"
#undef CALL

static const struct driver driver = {
#define CALL(symbol, base, version, flags, parameters) .symbol = symbol,
#include "driver_calls.def"
#undef CALL
};

static int find_functions(const char *how)
{
	return strcmp(how, "linked") == 0 ? 0 : -1;
}

#else

static struct driver driver;

static int find_functions(const char *how)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	bool by_name = strcmp(how, "dlsym") == 0;
	bool first = strcmp(how, "gpa1") == 0;

	if (libcuda == NULL || (!by_name && !first && strcmp(how, "gpa") != 0)) {
		return -1;
	}
#define CALL(symbol, base, version, flags, parameters)                                       \
	*(void **)&driver.symbol = by_name ? dlsym(libcuda, #symbol)                         \
					   : by_lookup(libcuda, first, #base, version, flags);
#include "driver_calls.def"
#undef CALL
	return 0;
}

#endif

static int start(const char *how)
{
	CUcontext context;

	if (find_functions(how) != 0) {
		fprintf(stderr, "scenario: no way \"%s\" in this program\n", how);
		exit(2);
	}
	CHECK(driver.cuInit(0));
	CHECK(driver.cuDevicePrimaryCtxRetain(&context, 0));
	return (int)driver.cuCtxSetCurrent(context);
}

static int alloc(unsigned long long *p, size_t size)
{
	return (int)driver.cuMemAlloc_v2(p, size);
}

static int alloc_pitch(unsigned long long *p, size_t *pitch, size_t width, size_t height)
{
	return (int)driver.cuMemAllocPitch_v2(p, pitch, width, height, 4);
}

static int alloc_managed(unsigned long long *p, size_t size)
{
	return (int)driver.cuMemAllocManaged(p, size, CU_MEM_ATTACH_GLOBAL);
}

static int mem_free(unsigned long long p)
{
	return (int)driver.cuMemFree_v2(p);
}

static int alloc_async(unsigned long long *p, size_t size, struct stream s)
{
	return (int)(s.per_thread ? driver.cuMemAllocAsync_ptsz(p, size, s.handle)
				  : driver.cuMemAllocAsync(p, size, s.handle));
}

static int free_async(unsigned long long p, struct stream s)
{
	return (int)(s.per_thread ? driver.cuMemFreeAsync_ptsz(p, s.handle)
				  : driver.cuMemFreeAsync(p, s.handle));
}

static int alloc_host(unsigned long long *p, size_t size)
{
	return (int)driver.cuMemAllocHost_v2((void **)p, size);
}

static int host_alloc(unsigned long long *p, size_t size)
{
	return (int)driver.cuMemHostAlloc((void **)p, size, CU_MEMHOSTALLOC_PORTABLE);
}

static int free_host(unsigned long long p)
{
	return (int)driver.cuMemFreeHost((void *)p);
}

static int info(size_t *free_bytes, size_t *total_bytes)
{
	return (int)driver.cuMemGetInfo_v2(free_bytes, total_bytes);
}

static int stream_create(void **stream)
{
	return (int)driver.cuStreamCreate((CUstream *)stream, CU_STREAM_NON_BLOCKING);
}

static int stream_destroy(void *stream)
{
	return (int)driver.cuStreamDestroy_v2(stream);
}

static int capture_begin(struct stream s)
{
	return (int)driver.cuStreamBeginCapture_v2(s.handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

static int capture_end(struct stream s)
{
	CUgraph graph;

	return (int)driver.cuStreamEndCapture(s.handle, &graph);
}

static int device_set(int device)
{
	CUcontext context;
	CUresult status = driver.cuDevicePrimaryCtxRetain(&context, device);

	return (int)(status != CUDA_SUCCESS ? status : driver.cuCtxSetCurrent(context));
}

static int device_reset(int device)
{
	return (int)driver.cuDevicePrimaryCtxReset_v2(device);
}

static int synchronize(void)
{
	return (int)driver.cuCtxSynchronize();
}

static int context_create(int device)
{
	CUcontext context;

	return (int)driver.cuCtxCreate_v2(&context, 0, device);
}

static int context_destroy(void)
{
	CUcontext context;
	CUresult status = driver.cuCtxGetCurrent(&context);

	return (int)(status != CUDA_SUCCESS ? status : driver.cuCtxDestroy_v2(context));
}

static int context_pop(void)
{
	CUcontext context;

	return (int)driver.cuCtxPopCurrent_v2(&context);
}

static int primary_release(int device)
{
	return (int)driver.cuDevicePrimaryCtxRelease_v2(device);
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
	.context_create = context_create,
	.context_destroy = context_destroy,
	.context_pop = context_pop,
	.primary_release = primary_release,
};
