/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates and frees one size in one stream, argv[1] times: what a training step does. */
#include <cuda.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	CUcontext context;
	CUstream stream;

	if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
	    cuCtxSetCurrent(context) != CUDA_SUCCESS ||
	    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
		return 1;
	}
	for (int i = 0; i < count; i++) {
		CUdeviceptr p = 0;

		if (cuMemAllocAsync(&p, 1 << 20, stream) != CUDA_SUCCESS ||
		    cuMemFreeAsync(p, stream) != CUDA_SUCCESS) {
			return 1;
		}
	}
	return 0;
}
