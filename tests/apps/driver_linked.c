/* SPDX-License-Identifier: Apache-2.0 */
/* A program linked to libcuda.so.1: what it calls is what the dynamic linker bound. */
#include "apps.h"

#include <cuda.h>

int main(int argc, char **argv)
{
	CUdevice device;
	CUcontext context;
	CUdeviceptr a, b, c;
	void *pinned;
	size_t free_bytes, total_bytes;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemAlloc(&a, 8192));
	CHECK(cuMemAllocAsync(&b, 4096, NULL));
	CHECK(cuMemAllocManaged(&c, 3000, CU_MEM_ATTACH_GLOBAL));
	CHECK(cuMemAllocHost(&pinned, 1000));
	CHECK(cuMemGetInfo(&free_bytes, &total_bytes));
	REQUIRE(free_bytes < total_bytes);
	CHECK(cuMemFree(a));
	CHECK(cuMemFreeAsync(b, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemFreeHost(pinned));
	finish(argc, argv);
	return 0;
}
