/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that uses CUDA before everything that is preloaded has started and after it has
 * ended, since libraries that a program is linked to start before what is preloaded, and end
 * after it.
 */
#include "apps.h"

#include <cuda.h>

void early_nothing(void);

static CUdeviceptr kept;
static CUdeviceptr left;

__attribute__((constructor)) static void load(void)
{
	CUcontext context;
	CUdeviceptr p;

	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemAlloc(&kept, 1000));
	CHECK(cuMemAlloc(&p, 2000));
	CHECK(cuMemFree(p));
	CHECK(cuMemAlloc(&left, 3000));
}

__attribute__((destructor)) static void unload(void)
{
	CHECK(cuMemFree(kept));
	CHECK(cuMemAlloc(&kept, 4000));
	CHECK(cuMemFree(kept));
	print_truth();
}

void early_nothing(void)
{
	CHECK(cuMemFree(left));
	CHECK(cuMemAlloc(&left, 5000));
}
