/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contexts COUNT: four threads, each with contexts of its own. Two make, use and destroy theirs COUNT
 * times; two run out of memory in theirs as often. Prints how many calls did not return what they
 * should.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 20 };

/* Of every toolkit; what cuda.h calls cuCtxCreate has other arguments in some. */
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);

static atomic_int wrong;
static int count;

static CUcontext make(void)
{
	CUcontext context = NULL;

	wrong += cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS;
	return context;
}

static void *come_and_go(void *argument)
{
	(void)argument;
	for (int i = 0; i < count; i++) {
		CUcontext context = make();
		CUdeviceptr blocks[BLOCKS] = { 0 };

		for (int k = 0; k < BLOCKS; k++) {
			wrong += cuMemAlloc(&blocks[k], 1000u * (unsigned int)(k + 1)) != CUDA_SUCCESS;
		}
		for (int k = 0; k < BLOCKS; k++) {
			wrong += cuMemFree(blocks[k]) != CUDA_SUCCESS;
		}
		wrong += cuCtxDestroy(context) != CUDA_SUCCESS;
	}
	return NULL;
}

static void *run_out(void *argument)
{
	CUcontext context = make();

	(void)argument;
	for (int i = 0; i < count; i++) {
		CUdeviceptr memory = 0;

		wrong += cuMemAlloc(&memory, (size_t)1 << 50) != CUDA_ERROR_OUT_OF_MEMORY;
		wrong += cuMemAlloc(&memory, 500) != CUDA_SUCCESS;
		wrong += cuMemFree(memory) != CUDA_SUCCESS;
	}
	wrong += cuCtxDestroy(context) != CUDA_SUCCESS;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[4];

	count = argc > 1 ? atoi(argv[1]) : 0;
	if (cuInit(0) != CUDA_SUCCESS) {
		return 2;
	}
	for (int i = 0; i < 4; i++) {
		if (pthread_create(&threads[i], NULL, i % 2 == 0 ? come_and_go : run_out, NULL) != 0) {
			return 2;
		}
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
	}
	printf("wrong %d\n", (int)wrong);
	return 0;
}
