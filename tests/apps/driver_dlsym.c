/* SPDX-License-Identifier: Apache-2.0 */
/* A program that opens the driver and takes its functions by name, as ctypes clients do. */
#include "apps.h"

#include <cuda.h>

static void *libcuda;

static void *take(const char *symbol)
{
	void *found = dlsym(libcuda, symbol);

	if (found == NULL) {
		fprintf(stderr, "%s: %s\n", symbol, dlerror());
		exit(1);
	}
	return found;
}

int main(int argc, char **argv)
{
	CUcontext context;
	CUdeviceptr a, b, c;
	void *pinned;

	libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	REQUIRE(libcuda != NULL);
	REQUIRE(dlsym(libcuda, "cuNoSuchFunction") == NULL && dlerror() != NULL);

	CHECK(((CUresult(*)(unsigned int))take("cuInit"))(0));
	CHECK(((CUresult(*)(CUcontext *, CUdevice))take("cuDevicePrimaryCtxRetain"))(&context, 0));
	CHECK(((CUresult(*)(CUcontext))take("cuCtxSetCurrent"))(context));
	CHECK(((CUresult(*)(CUdeviceptr *, size_t))take("cuMemAlloc_v2"))(&a, 8192));
	CHECK(((CUresult(*)(CUdeviceptr *, size_t, CUstream))take("cuMemAllocAsync"))(&b, 4096,
										      NULL));
	CHECK(((CUresult(*)(CUdeviceptr *, size_t, unsigned int))take("cuMemAllocManaged"))(
		&c, 3000, CU_MEM_ATTACH_GLOBAL));
	CHECK(((CUresult(*)(void **, size_t))take("cuMemAllocHost_v2"))(&pinned, 1000));
	CHECK(((CUresult(*)(CUdeviceptr))take("cuMemFree_v2"))(a));
	CHECK(((CUresult(*)(CUdeviceptr, CUstream))take("cuMemFreeAsync"))(b, NULL));
	CHECK(((CUresult(*)(void))take("cuCtxSynchronize"))());
	CHECK(((CUresult(*)(void *))take("cuMemFreeHost"))(pinned));
	finish(argc, argv);
	return 0;
}
