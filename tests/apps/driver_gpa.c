/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that takes one function by dlsym, cuGetProcAddress, and every other through it,
 * the other version of cuGetProcAddress included, as the CUDA runtimes do. First argument
 * "v1" or "v2": by which it asks.
 */
#include "apps.h"

#include <cuda.h>

static CUresult (*ask_v1)(const char *, void **, int, cuuint64_t);
static CUresult (*ask_v2)(const char *, void **, int, cuuint64_t,
			  CUdriverProcAddressQueryResult *);

static void *take(const char *base, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
	void *function = NULL;

	if (ask_v2 != NULL) {
		CHECK(ask_v2(base, &function, version, flags, &found));
		REQUIRE(found == CU_GET_PROC_ADDRESS_SUCCESS);
	} else {
		CHECK(ask_v1(base, &function, version, flags));
	}
	REQUIRE(function != NULL);
	return function;
}

static void find_lookup(const char *which)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	REQUIRE(libcuda != NULL);
	if (strcmp(which, "v1") == 0) {
		*(void **)&ask_v1 = dlsym(libcuda, "cuGetProcAddress");
		REQUIRE(ask_v1 != NULL);
		*(void **)&ask_v1 = take("cuGetProcAddress", 11030, 0);
	} else {
		*(void **)&ask_v2 = dlsym(libcuda, "cuGetProcAddress_v2");
		REQUIRE(ask_v2 != NULL);
		*(void **)&ask_v2 = take("cuGetProcAddress", 12000, 0);
	}
}

int main(int argc, char **argv)
{
	CUcontext context;
	CUdeviceptr a, b, c;
	void *pinned;

	find_lookup(argc > 1 ? argv[1] : "v2");
	CHECK(((CUresult(*)(unsigned int))take("cuInit", 2000, 0))(0));
	CHECK(((CUresult(*)(CUcontext *, CUdevice))take("cuDevicePrimaryCtxRetain", 7000, 0))(
		&context, 0));
	CHECK(((CUresult(*)(CUcontext))take("cuCtxSetCurrent", 4000, 0))(context));
	CHECK(((CUresult(*)(CUdeviceptr *, size_t))take("cuMemAlloc", 12000, 0))(&a, 8192));
	CHECK(((CUresult(*)(CUdeviceptr *, size_t, CUstream))take("cuMemAllocAsync", 11020, 2))(
		&b, 4096, NULL));
	CHECK(((CUresult(*)(CUdeviceptr *, size_t, unsigned int))take("cuMemAllocManaged", 6000,
								       0))(
		&c, 3000, CU_MEM_ATTACH_GLOBAL));
	CHECK(((CUresult(*)(void **, size_t))take("cuMemAllocHost", 3020, 0))(&pinned, 1000));
	CHECK(((CUresult(*)(CUdeviceptr))take("cuMemFree", 3020, 0))(a));
	CHECK(((CUresult(*)(CUdeviceptr, CUstream))take("cuMemFreeAsync", 11020, 2))(b, NULL));
	CHECK(((CUresult(*)(void))take("cuCtxSynchronize", 2000, 0))());
	CHECK(((CUresult(*)(void *))take("cuMemFreeHost", 2000, 0))(pinned));
	finish(argc, argv);
	return 0;
}
