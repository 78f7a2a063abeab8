/* SPDX-License-Identifier: Apache-2.0 */
/* A program of the CUDA runtime, built with it shared, static, and with a foreign one. */
#include "apps.h"

#include <cuda_runtime_api.h>

int main(int argc, char **argv)
{
	void *a, *b, *c, *pinned, *huge = NULL;
	size_t free_bytes, total_bytes;

	CHECK(cudaSetDevice(0));
	CHECK(cudaMalloc(&a, 8192));
	CHECK(cudaMallocAsync(&b, 4096, NULL));
	CHECK(cudaMallocManaged(&c, 3000, cudaMemAttachGlobal));
	CHECK(cudaMallocHost(&pinned, 1000));
	CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
	REQUIRE(free_bytes < total_bytes);

	/* More than any device has: the error is left for cudaGetLastError, and taken by it. */
	REQUIRE(cudaMalloc(&huge, (size_t)1 << 60) == cudaErrorMemoryAllocation);
	REQUIRE(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
	REQUIRE(cudaGetLastError() == cudaErrorMemoryAllocation);
	REQUIRE(cudaGetLastError() == cudaSuccess);

	CHECK(cudaFree(a));
	CHECK(cudaFreeAsync(b, NULL));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFreeHost(pinned));
	finish(argc, argv);
	return 0;
}
