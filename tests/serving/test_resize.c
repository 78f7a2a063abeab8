/* SPDX-License-Identifier: Apache-2.0 */
/* Rows T-28 to T-32 through a policy that serves and resizes (tests/plugins/resizer.c). */
#include "serving.h"

enum { BLOCK = 65536 };

static uint64_t held(void)
{
	return totals_of(CUWEIR_KIND_DEVICE).held;
}

static void in_place(void **state)
{
	void *p = cuweir_allocate(10 * K, 64, CUWEIR_ALLOCATOR_RESIZABLE);

	(void)state;
	assert_non_null(p);
	assert_int_equal(total(), 10 * K);
	assert_int_equal(held(), BLOCK - 10 * K);
	assert_ptr_equal(cuweir_reallocate(p, 64, 20 * K), p);
	assert_int_equal(total(), 20 * K);
	assert_int_equal(held(), BLOCK - 20 * K);
	assert_ptr_equal(cuweir_reallocate(p, 64, 5 * K), p);
	check_books(5 * K);
	assert_true(cuweir_deallocate(p));
	check_books(0);
	assert_int_equal(held(), 0);
}

/* Where the policy says no, the memory is moved, and the old block is the policy's again. */
static void beyond_the_block(void **state)
{
	void *p = cuweir_allocate(10 * K, 64, CUWEIR_ALLOCATOR_RESIZABLE);
	void *moved;

	(void)state;
	assert_int_equal(cuMemsetD8((CUdeviceptr)p, 0x5a, 10 * K), CUDA_SUCCESS);
	/* Not by this policy, and so not at all: it serves no such size. */
	assert_null(cuweir_reallocate(p, 64, 2 * BLOCK));
	check_books(10 * K);
	/* Asked with another alignment it says no, too; within its size it serves a new block. */
	moved = cuweir_reallocate(p, 0, 20 * K);
	assert_non_null(moved);
	assert_ptr_not_equal(moved, p);
	assert_int_equal(((unsigned char *)moved)[10 * K - 1], 0x5a);
	check_books(20 * K);
	assert_true(cuweir_deallocate(moved));
	check_books(0);
}

static void not_resizable(void **state)
{
	void *p = cuweir_allocate(10 * K, 64, 0);

	(void)state;
	assert_null(cuweir_reallocate(p, 64, 20 * K));
	check_books(10 * K);
	assert_true(cuweir_deallocate(p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_place),
		cmocka_unit_test(beyond_the_block),
		cmocka_unit_test(not_resizable),
	};

	start_cuda();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
