/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches. They go to the driver, which has no device to run kernels on: it checks them, puts them
 * in the graph of a capture, and does nothing else.
 */
#include "runtime.h"

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

#define MAX_THREADS 1024 /* of a block; the devices here are all alike */

static bool shape_ok(dim3 grid, dim3 block)
{
	uint64_t threads = (uint64_t)block.x * block.y * block.z;

	return grid.x > 0 && grid.y > 0 && grid.z > 0 && threads > 0 && threads <= MAX_THREADS;
}

typedef CUresult (*launch_fn)(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
			      unsigned int, unsigned int, unsigned int, CUstream, void **, void **);
typedef CUresult (*together_fn)(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
				unsigned int, unsigned int, unsigned int, CUstream, void **);

static CUresult launch(launch_fn fn, const void *func, dim3 g, dim3 b, void **args, size_t shared,
		       CUstream s)
{
	CUfunction f;
	CUresult r = rt_kernel(func, &f);

	if (r == CUDA_SUCCESS && !shape_ok(g, b)) {
		r = (CUresult)cudaErrorInvalidConfiguration;
	}
	return r == CUDA_SUCCESS
		       ? fn(f, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned int)shared, s, args, NULL)
		       : r;
}

static CUresult together(together_fn fn, const void *func, dim3 g, dim3 b, void **args,
			 size_t shared, CUstream s)
{
	CUfunction f;
	CUresult r = rt_kernel(func, &f);

	if (r == CUDA_SUCCESS && !shape_ok(g, b)) {
		r = (CUresult)cudaErrorInvalidConfiguration;
	}
	return r == CUDA_SUCCESS
		       ? fn(f, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned int)shared, s, args)
		       : r;
}

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "same layout");

static CUresult launch_ex(CUresult (*fn)(const CUlaunchConfig *, CUfunction, void **, void **),
			  const cudaLaunchConfig_t *c, const void *func, void **args)
{
	CUlaunchConfig d;
	CUfunction f;
	CUresult r = c == NULL ? CUDA_ERROR_INVALID_VALUE : rt_kernel(func, &f);

	if (r == CUDA_SUCCESS && !shape_ok(c->gridDim, c->blockDim)) {
		r = (CUresult)cudaErrorInvalidConfiguration;
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	d = (CUlaunchConfig){
		.gridDimX = c->gridDim.x,
		.gridDimY = c->gridDim.y,
		.gridDimZ = c->gridDim.z,
		.blockDimX = c->blockDim.x,
		.blockDimY = c->blockDim.y,
		.blockDimZ = c->blockDim.z,
		.sharedMemBytes = (unsigned int)c->dynamicSmemBytes,
		.hStream = c->stream,
		.attrs = (CUlaunchAttribute *)(void *)c->attrs,
		.numAttrs = c->numAttrs,
	};
	return fn(&d, f, args, NULL);
}

#define LAUNCH(name, func_t)                                                                       \
	RT_API_PTSZ(                                                                               \
		name,                                                                              \
		(func_t func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s),  \
		launch(PT(cuLaunchKernel), func, grid, block, args, shared, s))

LAUNCH(cudaLaunchKernel, const void *)
LAUNCH(__cudaLaunchKernel, cudaKernel_t)
RT_API_PTSZ(cudaLaunchCooperativeKernel,
	    (const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s),
	    together(PT(cuLaunchCooperativeKernel), func, grid, block, args, shared, s))
RT_API_PTSZ(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *func, void **args),
	    launch_ex(PT(cuLaunchKernelEx), config, func, args))
