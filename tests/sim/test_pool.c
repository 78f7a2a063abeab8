/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered memory, by value. */
#include "test.h"

static CUcontext ctx;
static CUstream s1, s2;

static int setup(void **state)
{
	(void)state;
	return cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&ctx, NULL, 0, 0) != CUDA_SUCCESS ||
	       cuStreamCreate(&s1, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
	       cuStreamCreate(&s2, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
}

static cuuint64_t attr(CUmemoryPool pool, CUmemPool_attribute a)
{
	cuuint64_t v = 0;

	OK(cuMemPoolGetAttribute(pool, a, &v));
	return v;
}

static void test_free_then_sync(void **state)
{
	CUmemoryPool pool;
	CUdeviceptr p, q;
	size_t free_bytes;

	(void)state;
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemAllocAsync(&p, 10 * MiB, s1));
	assert_int_equal(D_USED(0), 10 * MiB);
	OK(cuMemFreeAsync(p, s1));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p, s1));
	assert_int_equal(D_USED(0), 0);
	assert_int_equal(cuweir_sim_used(0, CUWEIR_SIM_POOL), 10 * MiB);
	assert_int_equal(attr(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 10 * MiB);
	OK(cuMemGetInfo(&free_bytes, NULL));
	assert_int_equal(free_bytes, 1014 * MiB);
	OK(cuMemAllocAsync(&q, 10 * MiB, s1));
	assert_int_equal(q, p);
	OK(cuMemFreeAsync(q, s1));
	OK(cuMemAllocAsync(&q, 10 * MiB, s2));
	assert_int_not_equal(q, p);
	OK(cuMemFreeAsync(q, s2));
	OK(cuStreamSynchronize(s1));
	assert_int_equal(attr(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	assert_int_equal(attr(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 20 * MiB);
	assert_int_equal(attr(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 10 * MiB);
	OK(cuMemGetInfo(&free_bytes, NULL));
	assert_int_equal(free_bytes, 1024 * MiB);
}

static void test_threshold_and_trim(void **state)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	cuuint64_t keep = 8 * MiB, zero = 0, one = 1;
	CUmemoryPool pool;
	CUdeviceptr p, q;

	(void)state;
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
	OK(cuMemAllocFromPoolAsync(&p, 8 * MiB, pool, s1));
	OK(cuMemAllocFromPoolAsync(&q, 4 * MiB, pool, s1));
	OK(cuMemFreeAsync(p, s1));
	OK(cuMemFree(q));
	OK(cuCtxSynchronize());
	assert_true(attr(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) <= keep);
	OK(cuMemPoolTrimTo(pool, 0));
	assert_int_equal(attr(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
	assert_int_equal(attr(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
	OK(cuMemAllocFromPoolAsync(&p, 2 * MiB, pool, s1));
	OK(cuMemPoolDestroy(pool));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&q, 1, pool, s1));
	assert_int_equal(D_USED(0), 2 * MiB);
	OK(cuMemFreeAsync(p, s1));
	assert_int_equal(cuweir_sim_used(0, CUWEIR_SIM_POOL), 0);
}

static void test_limits(void **state)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
				.maxSize = 16 * MiB};
	CUmemoryPool pool, dflt, now;
	CUdeviceptr p, q;

	(void)state;
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemAllocFromPoolAsync(&p, 16 * MiB, pool, s1));
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&q, 1, pool, s1));
	OK(cuMemFreeAsync(p, s1));
	OK(cuDeviceSetMemPool(0, pool));
	OK(cuMemAllocAsync(&p, 12 * MiB, s2));
	assert_int_equal(attr(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 12 * MiB);
	OK(cuMemFreeAsync(p, s2));
	OK(cuMemPoolDestroy(pool));
	OK(cuDeviceGetDefaultMemPool(&dflt, 0));
	OK(cuDeviceGetMemPool(&now, 0));
	assert_ptr_equal(now, dflt);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(dflt));
	OK(cuMemAllocAsync(&p, 600 * MiB, s1));
	OK(cuMemFreeAsync(p, s1));
	OK(cuMemAllocAsync(&q, 700 * MiB, s2)); /* the cached 600 MiB go first */
	OK(cuMemFreeAsync(q, s2));
	OK(cuMemAllocAsync(&p, 100 * MiB, s2)); /* a part of the cached 700 MiB */
	assert_int_equal(p, q);
	assert_int_equal(attr(dflt, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 700 * MiB);
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 500 * MiB));
	OK(cuCtxSynchronize());
	OK(cuMemAlloc(&q, 500 * MiB));
	OK(cuMemFree(q));
	OK(cuMemFreeAsync(p, s2));
	OK(cuCtxSynchronize());
}

static void test_host_pool(void **state)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA}};
	CUmemoryPool pool;
	CUdeviceptr p;

	(void)state;
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemAllocFromPoolAsync(&p, 3 * MiB, pool, s1));
	assert_int_equal(D_USED(0), 0);
	assert_int_equal(cuweir_sim_used(-1, CUWEIR_SIM_HOST), 3 * MiB);
	OK(cuMemFree(p));
	OK(cuMemPoolDestroy(pool));
	assert_int_equal(cuweir_sim_used(0, CUWEIR_SIM_HOST), 0);
}

static void test_many(void **state)
{
	static CUdeviceptr p[1000];

	(void)state;
	for (size_t round = 0; round < 20; round++) {
		for (size_t i = 0; i < 1000; i++) {
			OK(cuMemAllocAsync(&p[i], 1 + (i * 7919 + round) % 60000, i % 2 ? s1 : s2));
		}
		for (size_t i = 0; i < 1000; i++) {
			OK(cuMemFreeAsync(p[i], i % 3 ? s1 : s2));
		}
		if (round % 5 == 4) {
			OK(cuStreamSynchronize(s1));
			assert_int_equal(cuweir_sim_used(0, CUWEIR_SIM_POOL), 0);
		}
	}
	assert_int_equal(cuweir_sim_live(0, CUWEIR_SIM_DEVICE), 0);
	assert_int_equal(cuweir_sim_free(0), 1024 * MiB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_free_then_sync), cmocka_unit_test(test_threshold_and_trim),
		cmocka_unit_test(test_limits),	       cmocka_unit_test(test_host_pool),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
