/* SPDX-License-Identifier: Apache-2.0 */
/* D-05: the limit policy. Run with limit:0=5MiB,1=512. */
#include "serving.h"

static void info(size_t *ret_free, size_t *ret_total)
{
	assert_int_equal(cuMemGetInfo(ret_free, ret_total), CUDA_SUCCESS);
}

static void exact(void **state)
{
	CUdeviceptr p = 0, q = 0, r = 0;
	size_t pitch = 0;

	(void)state;
	assert_int_equal(cuMemAlloc(&p, 5 * M + 1), CUDA_ERROR_OUT_OF_MEMORY); /* */
	assert_int_equal(cuMemAlloc(&p, 5 * M), CUDA_SUCCESS); /* inclusive */
	assert_int_equal(cuMemAlloc(&q, 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAllocAsync(&q, 1, NULL), CUDA_ERROR_OUT_OF_MEMORY); /* */
	assert_int_equal(cuMemFree(p), CUDA_SUCCESS);
	check_books(0);
	/* 4+... of R-75 in small: 2+2, free 2, 3 lands exactly on 5 */
	assert_int_equal(cuMemAlloc(&p, 2 * M), CUDA_SUCCESS);
	assert_int_equal(cuMemAllocAsync(&q, 2 * M, NULL), CUDA_SUCCESS);
	assert_int_equal(cuMemAlloc(&r, 1 * M + 1), CUDA_ERROR_OUT_OF_MEMORY);
	check_books(4 * M);
	assert_int_equal(cuMemFree(p), CUDA_SUCCESS);
	assert_int_equal(cuMemAlloc(&r, 3 * M), CUDA_SUCCESS);
	check_books(5 * M);
	assert_int_equal(cuMemFree(r), CUDA_SUCCESS);
	assert_int_equal(cuMemFreeAsync(q, NULL), CUDA_SUCCESS);
	/* */
	assert_int_equal(cuMemAlloc(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc(&p, SIZE_MAX - 255), CUDA_ERROR_OUT_OF_MEMORY);
	/* D-03: known only when the pitch is */
	assert_int_equal(cuMemAllocPitch(&p, &pitch, 1, 5 * M / 256, 4), CUDA_ERROR_OUT_OF_MEMORY);
	check_books(0);
	/* D-10: other kinds have none */
	assert_int_equal(cuMemAllocManaged(&p, 6 * M, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	assert_int_equal(cuMemFree(p), CUDA_SUCCESS);
}

/* What the program sets is its own: what policies have set holds all the same. */
static void masks(void **state)
{
	const uint32_t both = CUWEIR_KIND_BIT(CUWEIR_KIND_DEVICE) | CUWEIR_KIND_BIT(CUWEIR_KIND_HOST);
	uint64_t bytes = 0;
	CUdeviceptr p = 0;

	(void)state;
	assert_int_equal(cuweir_set_budget(0, both, UINT64_MAX), CUWEIR_ERROR_NOT_PERMITTED);
	assert_int_equal(cuweir_set_budget(0, both, 9 * M), CUWEIR_ERROR_NOT_PERMITTED);
	assert_int_equal(cuweir_set_budget(0, 0, UINT64_MAX), 0);
	assert_int_equal(cuweir_set_budget(0, 0, 9 * M), 0);
	assert_int_equal(cuweir_get_budget(0, &bytes, NULL, NULL), 0);
	assert_int_equal(bytes, 5 * M);
	assert_int_equal(cuweir_set_budget(0, 0, M), 0);
	assert_int_equal(cuMemAlloc(&p, M + 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuweir_set_budget(0, 0, UINT64_MAX), 0);
	assert_int_equal(cuMemAlloc(&p, 5 * M + 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc(&p, 5 * M), CUDA_SUCCESS);
	assert_int_equal(cuMemFree(p), CUDA_SUCCESS);
}

static void figures(void **state)
{
	struct cuweir_reservation *r = NULL;
	uint64_t bytes = 0, used = 0, reserved = 0;
	size_t free_bytes, total_bytes;
	CUdeviceptr p = 0;

	(void)state;
	info(&free_bytes, &total_bytes);
	assert_int_equal(total_bytes, 5 * M);
	assert_int_equal(free_bytes, 5 * M);
	assert_int_equal(cuMemAlloc(&p, M), CUDA_SUCCESS);
	assert_int_equal(cuweir_reservation_open(0, &r), 0);
	assert_int_equal(cuweir_reservation_add(r, M), 0);
	info(&free_bytes, &total_bytes);
	assert_int_equal(total_bytes, 5 * M);
	assert_int_equal(free_bytes, 3 * M);
	assert_int_equal(cuweir_get_budget(0, &bytes, &used, &reserved), 0);
	assert_int_equal(bytes, 5 * M);
	assert_int_equal(used, M);
	assert_int_equal(reserved, M);
	cuweir_reservation_destroy(r);
	assert_int_equal(cuDeviceTotalMem(&total_bytes, 0), CUDA_SUCCESS);
	assert_int_equal(total_bytes, 5 * M);
	assert_int_equal(cuDeviceTotalMem(&total_bytes, 1), CUDA_SUCCESS);
	assert_int_equal(total_bytes, 512);
	assert_int_equal(cuMemFree(p), CUDA_SUCCESS);
	check_books(0);
}

static void other_device(void **state) /* R-74, without the rounding */
{
	CUdeviceptr p = 0, q = 0, r = 0;
	CUcontext context;

	(void)state;
	assert_int_equal(cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
	assert_int_equal(cuCtxPushCurrent(context), CUDA_SUCCESS);
	assert_int_equal(cuMemAlloc(&p, 1), CUDA_SUCCESS);
	assert_int_equal(cuMemAlloc(&q, 511), CUDA_SUCCESS);
	assert_int_equal(cuMemAlloc(&r, 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemFree(p), CUDA_SUCCESS);
	assert_int_equal(cuMemFree(q), CUDA_SUCCESS);
	assert_int_equal(cuCtxPopCurrent(&context), CUDA_SUCCESS);
	assert_int_equal(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
}

static int setup(void **state)
{
	(void)state;
	start_cuda();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact), cmocka_unit_test(masks), cmocka_unit_test(figures), cmocka_unit_test(other_device),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
