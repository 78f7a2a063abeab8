/* SPDX-License-Identifier: Apache-2.0 */
/* D-11, D-21: eight threads on a pool, in streams of their own and in shared ones. */
#include "serving.h"

#include <pthread.h>

enum { THREADS = 8, SLOTS = 16 };

static void check_bytes(CUdeviceptr p, unsigned char wanted, size_t size)
{
	unsigned char bytes[64];
	size_t count = size < sizeof(bytes) ? size : sizeof(bytes);

	if (cuMemcpyDtoH(bytes, p, count) != CUDA_SUCCESS) {
		abort();
	}
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] != wanted) {
			abort(); /* handed out twice */
		}
	}
}

static unsigned int next_random(unsigned int *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 8;
}

static void *work(void *argument)
{
	unsigned char mark = (unsigned char)(uintptr_t)argument;
	unsigned int seed = mark * 77u;
	CUdeviceptr p[SLOTS] = { 0 };
	size_t size[SLOTS] = { 0 };
	CUstream streams[3] = { NULL, NULL, CU_STREAM_PER_THREAD };
	CUcontext context;

	cuDevicePrimaryCtxRetain(&context, 0);
	cuCtxSetCurrent(context);
	cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING);
	for (int i = 0; i < 4000; i++) {
		unsigned int at = next_random(&seed) % SLOTS;
		CUstream stream = streams[next_random(&seed) % 3];
		bool async = next_random(&seed) % 4 != 0;

		if (p[at] != 0) {
			check_bytes(p[at], mark, size[at]);
			if ((async ? cuMemFreeAsync(p[at], stream) : cuMemFree(p[at])) !=
			    CUDA_SUCCESS) {
				abort();
			}
			p[at] = 0;
			continue;
		}
		size[at] = next_random(&seed) % 5000 + 1;
		if ((async ? cuMemAllocAsync(&p[at], size[at], stream)
			   : cuMemAlloc(&p[at], size[at])) != CUDA_SUCCESS ||
		    cuMemsetD8(p[at], mark, size[at]) != CUDA_SUCCESS) {
			abort();
		}
		if (i % 500 == 499) {
			CUdeviceptr none;

			cuMemAlloc(&none, (size_t)3 << 60);
			cuStreamDestroy(streams[1]);
			cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING);
		}
	}
	for (int i = 0; i < SLOTS; i++) {
		cuMemFree(p[i]);
	}
	return NULL;
}

static void stress(void **state)
{
	pthread_t ids[THREADS];
	CUdeviceptr none = 0;

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++) {
		pthread_create(&ids[i], NULL, work, (void *)(i + 1));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(ids[i], NULL);
	}
	check_books(0);
	/* What nothing can hold: the pool gives all back. */
	assert_int_equal(cuMemAlloc(&none, (size_t)3 << 60), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(totals_of(CUWEIR_KIND_DEVICE).held, 0);
	check_books(0);
}

static int setup(void **state)
{
	(void)state;
	start_cuda();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(stress) };

	return cmocka_run_group_tests(tests, setup, NULL);
}
