/* SPDX-License-Identifier: Apache-2.0 */
/* What nvcc's code calls. There is no device to run kernels on: a launch succeeds, and does
 * nothing. */
#include "runtime.h"

RT_EXPORT void **__cudaRegisterFatBinary(void *image);
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

static void *registered;

void **__cudaRegisterFatBinary(void *image)
{
	(void)image;
	return &registered;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host, char *dev, const char *name, int limit,
			    void *tid, void *bid, void *bd, void *gd, int *w)
{
	(void)handle, (void)host, (void)dev, (void)name, (void)limit;
	(void)tid, (void)bid, (void)bd, (void)gd, (void)w;
}

void __cudaRegisterVar(void **handle, char *host, char *dev, const char *name, int ext, size_t size,
		       int constant, int global)
{
	(void)handle, (void)host, (void)dev, (void)name;
	(void)ext, (void)size, (void)constant, (void)global;
}

void __cudaRegisterManagedVar(void **handle, void **host, char *dev, const char *name, int ext,
			      size_t size, int constant, int global)
{
	(void)handle, (void)host, (void)dev, (void)name;
	(void)ext, (void)size, (void)constant, (void)global;
}

cudaError_t __cudaGetKernel(cudaKernel_t *ret, const void *func)
{
	*ret = (cudaKernel_t)(uintptr_t)func;
	return cudaSuccess;
}

char __cudaInitModule(void **handle)
{
	(void)handle;
	return 1;
}

struct config {
	dim3 grid, block;
	size_t shared;
	void *stream;
};

static _Thread_local struct config pushed;

RT_EXPORT unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
						   struct CUstream_st *stream);
RT_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
						 void *stream);

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
					 struct CUstream_st *stream)
{
	pushed = (struct config){grid, block, shared, stream};
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	*grid = pushed.grid;
	*block = pushed.block;
	*shared = pushed.shared;
	*(void **)stream = pushed.stream;
	return cudaSuccess;
}

static CUresult no_launch(const void *func)
{
	return func == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

#define LAUNCH(name, func_t)                                                                       \
	RT_API(name,                                                                               \
	       (func_t func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s),   \
	       ((void)grid, (void)block, (void)args, (void)shared, (void)s, no_launch(func)))

LAUNCH(cudaLaunchKernel, const void *)
LAUNCH(cudaLaunchKernel_ptsz, const void *)
LAUNCH(__cudaLaunchKernel, cudaKernel_t)
LAUNCH(__cudaLaunchKernel_ptsz, cudaKernel_t)
