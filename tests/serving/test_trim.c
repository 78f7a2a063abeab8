/* SPDX-License-Identifier: Apache-2.0 */
/* retry has the program's own pools give back what they only keep. Run with retry, on 1 GiB. */
#include "serving.h"

static void own_pool(void **state)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
	};
	unsigned long long threshold = UINT64_MAX, held = 0;
	CUmemoryPool pool;
	CUdeviceptr p = 0;

	(void)state;
	assert_int_equal(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	assert_int_equal(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
			 CUDA_SUCCESS);
	assert_int_equal(cuMemAllocFromPoolAsync(&p, 700 * M, pool, NULL), CUDA_SUCCESS);
	assert_int_equal(cuMemFreeAsync(p, NULL), CUDA_SUCCESS);
	assert_int_equal(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	assert_int_equal(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &held),
			 CUDA_SUCCESS);
	assert_true(held >= 700 * M);
	assert_int_equal(cuMemAlloc(&p, 500 * M), CUDA_SUCCESS);
	assert_int_equal(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &held),
			 CUDA_SUCCESS);
	assert_int_equal(held, 0);
	assert_int_equal(cuMemFree(p), CUDA_SUCCESS);
	assert_int_equal(cuMemPoolDestroy(pool), CUDA_SUCCESS);
	check_books(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(own_pool) };

	start_cuda();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
