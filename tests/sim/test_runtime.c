/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated runtime over the simulated driver. */
#include <cuda_runtime_api.h>

#include "test.h"

static void test_sticky_error(void **state)
{
	void *p = NULL, *q = (void *)0x77;

	(void)state;
	OK(cudaFree(NULL));
	assert_int_equal(cuweir_sim_calls("cuMemFree_v2"), 0);
	assert_int_equal(cuweir_sim_calls("cuDevicePrimaryCtxRetain"), 1);
	FAILS(2, cudaMalloc(&q, (size_t)2 << 40));
	assert_ptr_equal(q, (void *)0x77);
	OK(cudaMalloc(&p, 1000));
	assert_int_equal(D_USED(0), 1000);
	assert_int_equal(cudaPeekAtLastError(), 2);
	assert_int_equal(cudaGetLastError(), 2);
	assert_int_equal(cudaGetLastError(), 0);
	FAILS(1, cudaFree((char *)p + 8));
	assert_int_equal(cudaGetLastError(), 1);
	OK(cudaFree(p));
}

static void test_size_zero(void **state)
{
	unsigned long long before = cuweir_sim_calls("cuMemAlloc_v2");
	void *p = (void *)0xdead;

	(void)state;
	OK(cudaMalloc(&p, 0));
	assert_ptr_equal(p, (void *)0xdead);
	assert_int_equal(cuweir_sim_calls("cuMemAlloc_v2"), before);
	FAILS(1, cudaMallocManaged(&p, 0, cudaMemAttachGlobal));
	assert_int_equal(cudaGetLastError(), 1);
}

static void test_families(void **state)
{
	const struct cudaExtent extent = {100, 10, 3};
	struct cudaPitchedPtr pitched;
	void *host, *async;
	cudaStream_t s;
	size_t n;

	(void)state;
	OK(cudaMallocHost(&host, 5000));
	assert_int_equal(cuweir_sim_calls("cuMemHostAlloc"), 1);
	assert_int_equal(cuweir_sim_used(0, CUWEIR_SIM_HOST), 5000);
	OK(cudaFreeHost(host));
	OK(cudaMalloc3D(&pitched, extent));
	assert_int_equal(D_USED(0), 512 * 30);
	OK(cudaFree(pitched.ptr));
	OK(cudaStreamCreate(&s));
	OK(cudaMallocAsync(&async, 7 * MiB, s));
	assert_int_equal(D_USED(0), 7 * MiB);
	OK(cudaFreeAsync(async, s));
	OK(cudaMemGetInfo(&n, NULL));
	assert_int_equal(n, 1017 * MiB);
	OK(cudaStreamSynchronize(s));
	OK(cudaMemGetInfo(&n, NULL));
	assert_int_equal(n, 1024 * MiB);
}

static void test_devices_and_reset(void **state)
{
	struct cudaDeviceProp prop;
	void *p, *async;
	int n;

	(void)state;
	OK(cudaGetDeviceCount(&n));
	assert_int_equal(n, 2);
	FAILS(101, cudaSetDevice(2));
	cudaGetLastError();
	OK(cudaSetDevice(1));
	OK(cudaMalloc(&p, 100));
	OK(cudaMallocAsync(&async, 10, NULL));
	assert_int_equal(D_USED(1), 110);
	OK(cudaDeviceReset());
	assert_int_equal(cuweir_sim_calls("cuDevicePrimaryCtxReset"), 1);
	assert_int_equal(D_USED(1), 10);
	OK(cudaFree(async));
	FAILS(1, cudaFree(p));
	cudaGetLastError();
	OK(cudaMalloc(&p, 300));
	assert_int_equal(D_USED(1), 300);
	OK(cudaFree(p));
	OK(cudaGetDevice(&n));
	assert_int_equal(n, 1);
	OK(cudaGetDeviceProperties(&prop, 1));
	assert_int_equal(prop.totalGlobalMem, 1024 * MiB);
	assert_int_equal(prop.major, 9);
}

/* A context of the program's own is used as it is. */
static void test_own_context(void **state)
{
	unsigned long long before = cuweir_sim_calls("cuDevicePrimaryCtxRetain");
	CUcontext own;
	void *p;

	(void)state;
	OK(cuCtxCreate(&own, NULL, 0, 0));
	OK(cudaMalloc(&p, 100));
	assert_int_equal(D_USED(0), 100);
	OK(cuCtxDestroy(own));
	assert_int_equal(D_USED(0), 0);
	assert_int_equal(cuweir_sim_calls("cuDevicePrimaryCtxRetain"), before);
}

static void test_entry_points(void **state)
{
	enum cudaDriverEntryPointQueryResult q;
	void *fn = NULL;

	(void)state;
	OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &fn, 12000, cudaEnableDefault, &q));
	assert_int_equal(q, cudaDriverEntryPointSuccess);
	assert_ptr_equal(fn, (void *)cuMemAlloc);
	OK(cudaGetDriverEntryPointByVersion("cuNothing", &fn, 12000, cudaEnableDefault, &q));
	assert_null(fn);
	assert_int_equal(q, cudaDriverEntryPointSymbolNotFound);
	assert_string_equal(cudaGetErrorName(cudaErrorMemoryAllocation),
			    "cudaErrorMemoryAllocation");
	assert_string_equal(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sticky_error),	  cmocka_unit_test(test_size_zero),
		cmocka_unit_test(test_families),	  cmocka_unit_test(test_devices_and_reset),
		cmocka_unit_test(test_own_context),	  cmocka_unit_test(test_entry_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
