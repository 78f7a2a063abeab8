/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs that nvcc's code registers, and the libraries that a program loads by itself. An
 * image is given to the driver when the first of its kernels is asked for (lazy loading).
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

RT_EXPORT void **__cudaRegisterFatBinary(void *wrapper);
RT_EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
RT_EXPORT void __cudaUnregisterFatBinary(void **handle);
RT_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *dev, const char *name,
				      int limit, void *tid, void *bid, void *bd, void *gd, int *w);
RT_EXPORT void __cudaRegisterVar(void **handle, char *host, char *dev, const char *name, int ext,
				 size_t size, int constant, int global);
RT_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *dev, const char *name,
					int ext, size_t size, int constant, int global);
RT_EXPORT char __cudaInitModule(void **handle);
RT_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *ret, const void *func);

#define WRAPPER 0x466243b1 /* the magic number of what nvcc registers */
#define BUCKETS 65536	   /* PyTorch has tens of thousands of kernels */

struct wrapper {
	int magic, version;
	const void *data;
	void *more;
};

struct name {
	struct name *next, *sibling; /* in its bucket, and of its image */
	const void *host;
	const char *device;
	struct image *image;
	CUkernel kernel;
};

struct image {
	const void *code;
	CUlibrary library;
	struct name *names;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct name *buckets[BUCKETS];

static struct name **bucket(const void *host)
{
	uint64_t v = (uint64_t)(uintptr_t)host * 0x9e3779b97f4a7c15ULL;

	return &buckets[v >> 48];
}

void **__cudaRegisterFatBinary(void *wrapper)
{
	const struct wrapper *w = wrapper;
	struct image *i = calloc(1, sizeof(*i));

	if (i != NULL) {
		i->code = w != NULL && w->magic == WRAPPER ? w->data : wrapper;
	}
	return (void **)i;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
	struct image *i = (struct image *)handle;

	if (i == NULL) {
		return;
	}
	pthread_mutex_lock(&lock);
	while (i->names != NULL) {
		struct name *n = i->names;
		struct name **at = bucket(n->host);

		while (*at != n) {
			at = &(*at)->next;
		}
		*at = n->next;
		i->names = n->sibling;
		free(n);
	}
	if (i->library != NULL) {
		rt_drv.f_cuLibraryUnload(i->library);
	}
	pthread_mutex_unlock(&lock);
	free(i);
}

/* A function's stub or a variable's shadow: both are found by their address in the program. */
static void add(struct image *i, const void *host, const char *device)
{
	struct name *n = i != NULL ? calloc(1, sizeof(*n)) : NULL;
	struct name **at = bucket(host);

	if (n == NULL) {
		return;
	}
	*n = (struct name){.host = host, .device = device, .image = i};
	pthread_mutex_lock(&lock);
	n->next = *at;
	*at = n;
	n->sibling = i->names;
	i->names = n;
	pthread_mutex_unlock(&lock);
}

void __cudaRegisterFunction(void **handle, const char *host, char *dev, const char *name, int limit,
			    void *tid, void *bid, void *bd, void *gd, int *w)
{
	(void)dev, (void)limit;
	(void)tid, (void)bid, (void)bd, (void)gd, (void)w;
	add((struct image *)handle, host, name);
}

void __cudaRegisterVar(void **handle, char *host, char *dev, const char *name, int ext, size_t size,
		       int constant, int global)
{
	(void)dev, (void)ext, (void)size, (void)constant, (void)global;
	add((struct image *)handle, host, name);
}

/* Nothing makes managed variables here. */
void __cudaRegisterManagedVar(void **handle, void **host, char *dev, const char *name, int ext,
			      size_t size, int constant, int global)
{
	(void)handle, (void)host, (void)dev, (void)name;
	(void)ext, (void)size, (void)constant, (void)global;
}

char __cudaInitModule(void **handle)
{
	(void)handle;
	return 1;
}

static struct name *find(const void *host)
{
	struct name *n = *bucket(host);

	while (n != NULL && n->host != host) {
		n = n->next;
	}
	return n;
}

/* Loading is not forbidden to a thread that captures; the lock is held. */
static CUresult load(struct image *i)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult r;

	if (i->library != NULL) {
		return CUDA_SUCCESS;
	}
	rt_drv.f_cuThreadExchangeStreamCaptureMode(&mode);
	r = rt_drv.f_cuLibraryLoadData(&i->library, i->code, NULL, NULL, 0, NULL, NULL, 0);
	rt_drv.f_cuThreadExchangeStreamCaptureMode(&mode);
	return r;
}

/* An address that nobody registered may be a kernel itself; the driver knows whether it is. */
CUresult rt_kernel(const void *func, CUfunction *ret)
{
	struct name *n;
	CUresult r = CUDA_SUCCESS;
	int value;

	pthread_mutex_lock(&lock);
	n = find(func);
	if (n != NULL && n->kernel == NULL) {
		r = load(n->image);
		if (r == CUDA_SUCCESS) {
			r = rt_drv.f_cuLibraryGetKernel(&n->kernel, n->image->library, n->device);
		}
	}
	*ret = n != NULL ? (CUfunction)n->kernel : (CUfunction)(uintptr_t)func;
	pthread_mutex_unlock(&lock);
	if (n == NULL && rt_drv.f_cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS,
						       (CUkernel)*ret, 0) != CUDA_SUCCESS) {
		r = (CUresult)cudaErrorInvalidDeviceFunction;
	}
	return r;
}

cudaError_t __cudaGetKernel(cudaKernel_t *ret, const void *func)
{
	CUfunction f = NULL;
	cudaError_t e = rt_bind();

	if (e == cudaSuccess) {
		e = (cudaError_t)rt_kernel(func, &f);
	}
	if (e == cudaSuccess) {
		*ret = (cudaKernel_t)f;
	}
	return rt_error(e);
}

static int of_kernel(CUfunction_attribute a, CUfunction f)
{
	int v = 0;

	rt_drv.f_cuKernelGetAttribute(&v, a, (CUkernel)f, rt_device());
	return v;
}

static CUresult attributes(struct cudaFuncAttributes *a, const void *func)
{
	CUfunction f;
	CUresult r = a == NULL ? CUDA_ERROR_INVALID_VALUE : rt_kernel(func, &f);

	if (r == CUDA_SUCCESS) {
		memset(a, 0, sizeof(*a));
		a->maxThreadsPerBlock = of_kernel(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f);
		a->numRegs = of_kernel(CU_FUNC_ATTRIBUTE_NUM_REGS, f);
		a->ptxVersion = of_kernel(CU_FUNC_ATTRIBUTE_PTX_VERSION, f);
		a->binaryVersion = of_kernel(CU_FUNC_ATTRIBUTE_BINARY_VERSION, f);
	}
	return r;
}

static CUresult set_attribute(const void *func, enum cudaFuncAttribute attr, int value, int dev)
{
	CUfunction f;
	CUresult r = rt_kernel(func, &f);

	return r == CUDA_SUCCESS ? rt_drv.f_cuKernelSetAttribute((CUfunction_attribute)attr, value,
								 (CUkernel)f, dev)
				 : r;
}

static CUresult active_blocks(int *ret, const void *func, int block, size_t shared,
			      unsigned int flags)
{
	CUfunction f;
	CUresult r = rt_kernel(func, &f);

	return r == CUDA_SUCCESS ? rt_drv.f_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
					   ret, f, block, shared, flags)
				 : r;
}

/* The driver finds variables in PTX text alone, so what nvcc registered is mostly unknown to it. */
static CUresult symbol(CUdeviceptr *ret, size_t *size, const void *host)
{
	struct name *n;
	CUresult r = (CUresult)cudaErrorInvalidSymbol;

	pthread_mutex_lock(&lock);
	n = find(host);
	if (n != NULL && load(n->image) == CUDA_SUCCESS &&
	    rt_drv.f_cuLibraryGetGlobal(ret, size, n->image->library, n->device) == CUDA_SUCCESS) {
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static CUresult symbol_address(void **ret, const void *host)
{
	CUdeviceptr p = 0;
	CUresult r = ret == NULL ? CUDA_ERROR_INVALID_VALUE : symbol(&p, NULL, host);

	if (r == CUDA_SUCCESS) {
		*ret = (void *)(uintptr_t)p;
	}
	return r;
}

static CUresult to_symbol(CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t), const void *host,
			  const void *src, size_t n, size_t offset)
{
	CUdeviceptr p = 0;
	size_t size = 0;
	CUresult r = symbol(&p, &size, host);

	if (r == CUDA_SUCCESS && (offset > size || n > size - offset)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	return r == CUDA_SUCCESS ? copy(p + offset, (CUdeviceptr)(uintptr_t)src, n) : r;
}

static CUresult of_library(CUresult (*fn)(CUdeviceptr *, size_t *, CUlibrary, const char *),
			   void **ret, size_t *size, cudaLibrary_t library, const char *name)
{
	CUdeviceptr p = 0;
	CUresult r = fn(&p, size, (CUlibrary)library, name);

	if (r == CUDA_SUCCESS && ret != NULL) {
		*ret = (void *)(uintptr_t)p;
	}
	return r;
}

static CUresult count(unsigned int *ret, cudaLibrary_t library)
{
	return rt_drv.f_cuLibraryGetKernelCount != NULL
		       ? rt_drv.f_cuLibraryGetKernelCount(ret, (CUlibrary)library)
		       : CUDA_ERROR_NOT_SUPPORTED;
}

#define OPTIONS                                                                                    \
	enum cudaJitOption *jit, void **jit_values, unsigned int n, enum cudaLibraryOption *lib,   \
		void **lib_values, unsigned int n_lib
#define SAME_OPTIONS                                                                               \
	(CUjit_option *)jit, jit_values, n, (CUlibraryOption *)lib, lib_values, n_lib

RT_API(cudaFuncGetAttributes, (struct cudaFuncAttributes *a, const void *func),
       attributes(a, func))
RT_API(cudaFuncSetAttribute, (const void *func, enum cudaFuncAttribute attr, int value),
       set_attribute(func, attr, value, rt_device()))
RT_API(cudaKernelSetAttributeForDevice,
       (cudaKernel_t kernel, enum cudaFuncAttribute attr, int value, int dev),
       set_attribute(kernel, attr, value, dev))
RT_API(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
       (int *blocks, const void *func, int block, size_t shared),
       active_blocks(blocks, func, block, shared, 0))
RT_API(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
       (int *blocks, const void *func, int block, size_t shared, unsigned int flags),
       active_blocks(blocks, func, block, shared, flags))
RT_API(cudaGetSymbolAddress, (void **p, const void *host), symbol_address(p, host))
RT_API_PTDS(cudaMemcpyToSymbol,
	    (const void *host, const void *src, size_t n, size_t offset, enum cudaMemcpyKind kind),
	    ((void)kind, to_symbol(PT(cuMemcpy), host, src, n, offset)))
RT_API(cudaLibraryLoadData, (cudaLibrary_t *library, const void *code, OPTIONS),
       rt_drv.f_cuLibraryLoadData((CUlibrary *)library, code, SAME_OPTIONS))
RT_API(cudaLibraryLoadFromFile, (cudaLibrary_t *library, const char *file, OPTIONS),
       rt_drv.f_cuLibraryLoadFromFile((CUlibrary *)library, file, SAME_OPTIONS))
RT_API(cudaLibraryUnload, (cudaLibrary_t library), rt_drv.f_cuLibraryUnload((CUlibrary)library))
RT_API(cudaLibraryGetKernel, (cudaKernel_t *kernel, cudaLibrary_t library, const char *name),
       rt_drv.f_cuLibraryGetKernel((CUkernel *)kernel, (CUlibrary)library, name))
RT_API(cudaLibraryGetKernelCount, (unsigned int *n, cudaLibrary_t library), count(n, library))
RT_API(cudaLibraryGetGlobal, (void **p, size_t *size, cudaLibrary_t library, const char *name),
       of_library(rt_drv.f_cuLibraryGetGlobal, p, size, library, name))
RT_API(cudaLibraryGetManaged, (void **p, size_t *size, cudaLibrary_t library, const char *name),
       of_library(rt_drv.f_cuLibraryGetManaged, p, size, library, name))
RT_API(cudaLibraryGetUnifiedFunction, (void **p, cudaLibrary_t library, const char *name),
       rt_drv.f_cuLibraryGetUnifiedFunction(p, (CUlibrary)library, name))
