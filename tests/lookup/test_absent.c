/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process without CUDA: look-ups say so as they would without us, and a hook that is
 * called all the same has a defined answer (P-8).
 */
#include "lookup_test.h"

static void default_scope_says_absent(void **state)
{
	void *self = dlopen(NULL, RTLD_NOW);

	for (size_t i = 0; i < TEST_ROWS; i++) {
		assert_missing(RTLD_DEFAULT, test_rows[i].symbol);
		assert_missing(self, test_rows[i].symbol);
	}
	assert_missing(RTLD_DEFAULT, "cuInit");
}

static void next_says_absent(void **state)
{
	for (size_t i = 0; i < TEST_ROWS; i++) {
		assert_missing(RTLD_NEXT, test_rows[i].symbol);
	}
}

static void versioned_says_absent(void **state)
{
	dlerror();
	assert_null(dlvsym(RTLD_DEFAULT, "cudaMalloc", "libcudart.so.12"));
	assert_non_null(strstr(dlerror(), "cudaMalloc"));
	assert_null(dlvsym(RTLD_NEXT, "cuMemAlloc_v2", "NOWHERE"));
	assert_non_null(strstr(dlerror(), "cuMemAlloc_v2"));
}

/* What a hook with nothing behind it says: "not found" in the numbers of its library. */
static int not_found(const struct test_row *row)
{
	return row->door == CW_DOOR_NVML ? 13 : 500;
}

static void hooks_answer_not_found(void **state)
{
	for (size_t i = 0; i < TEST_ROWS; i++) {
		if (test_rows[i].exported) {
			int result = call_blindly(hook_called(test_rows[i].symbol));

			if (result != not_found(&test_rows[i])) {
				fprintf(stderr, "%s: %d\n", test_rows[i].symbol, result);
			}
			assert_int_equal(result, not_found(&test_rows[i]));
		}
	}
}

/* A library that defines the function itself, and loads the driver when first called. */
static void lazy_definition_behind_us(void **state)
{
	void *lazy = open_from_env("CW_LAZY", RTLD_GLOBAL);
	int (*alloc)(const char *) = (int (*)(const char *))dlsym(lazy, "lazy_alloc");
	void *own = cw_elf_symbol(lazy, "cuMemAlloc_v2");

	assert_ptr_equal(dlsym(lazy, "cuMemAlloc_v2"), own);
	assert_ptr_equal(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), own);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(alloc(getenv("CW_FAKE_OLD")), FAKE_RESULT(cuMemAlloc_v2));
	}
}

/* P-8, second half: a driver of long ago that has one function of the table. */
static void old_driver(void **state)
{
	void *driver = open_from_env("CW_FAKE_OLD", 0);

	assert_ptr_equal(dlsym(driver, "cuMemAlloc_v2"), hook_called("cuMemAlloc_v2"));
	for (size_t i = 0; i < TEST_ROWS; i++) {
		int result;

		if (!test_rows[i].exported) {
			continue;
		}
		result = call_blindly(hook_called(test_rows[i].symbol));
		if (strcmp(test_rows[i].symbol, "cuMemAlloc_v2") == 0) {
			assert_int_equal(result, test_rows[i].result);
		} else {
			assert_int_equal(result, not_found(&test_rows[i]));
			assert_missing(driver, test_rows[i].symbol);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(default_scope_says_absent),
		cmocka_unit_test(next_says_absent),
		cmocka_unit_test(versioned_says_absent),
		cmocka_unit_test(hooks_answer_not_found),
		cmocka_unit_test(lazy_definition_behind_us),
		cmocka_unit_test(old_driver),
	};

	require_shim();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
