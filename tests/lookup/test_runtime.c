/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups of runtime functions, with one and with two runtimes loaded; who was heard. */
#include "lookup_test.h"

static void *first;
static void *second;

/* A runtime that was unloaded leaves its place to the next. */
static void unloaded_is_forgotten(void **state)
{
	void *gone = open_from_env("CW_FAKE_RT13", 0);
	void *hook = dlsym(gone, "cudaMalloc");

	assert_ptr_equal(hook, hook_called("cudaMalloc"));
	assert_int_equal(call_blindly(hook), FAKE_RESULT(cudaMalloc) + 13000);
	dlclose(gone);
	assert_null(object_called(cw_elf_basename(getenv("CW_FAKE_RT13"))));
}

static void first_gives_hooks(void **state)
{
	first = open_from_env("CW_FAKE_RT12", 0);
	for (size_t i = 0; i < TEST_ROWS; i++) {
		const struct test_row *row = &test_rows[i];

		if (row->door == CW_DOOR_RUNTIME) {
			void *found = dlsym(first, row->symbol);

			assert_ptr_equal(found, hook_called(row->symbol));
			assert_ptr_equal(dlvsym(first, row->symbol, "libcudart.so.12"), found);
			assert_null(dlvsym(first, row->symbol, "libcudart.so.11"));
			assert_int_equal(call_blindly(found), row->result + 12000);
		}
	}
}

static void second_gives_its_own(void **state)
{
	second = open_from_env("CW_FAKE_RT13", 0);
	for (size_t i = 0; i < TEST_ROWS; i++) {
		const struct test_row *row = &test_rows[i];

		if (row->door == CW_DOOR_RUNTIME) {
			void *found = dlsym(second, row->symbol);

			assert_ptr_equal(found, cw_elf_symbol(second, row->symbol));
			assert_int_equal(call_blindly(found), row->result + 13000);
			assert_int_equal(call_blindly(dlsym(first, row->symbol)),
					 row->result + 12000);
		}
	}
}

static void linked_callers_reach_their_own(void **state)
{
	int (*with_12)(void) =
		(int (*)(void))dlsym(open_from_env("CW_LINKED_12", 0), "linked_malloc");
	int (*with_13)(void) =
		(int (*)(void))dlsym(open_from_env("CW_LINKED_13", 0), "linked_malloc");

	for (int round = 0; round < 3; round++) {
		assert_int_equal(with_12(), FAKE_RESULT(cudaMalloc) + 12000);
		assert_int_equal(with_13(), FAKE_RESULT(cudaMalloc) + 13000);
	}
}

static void heard_by_its_lookups(void **state)
{
	int (*heard)(const void *) = (int (*)(const void *))dlsym(
		dlopen(getenv("LD_PRELOAD"), RTLD_NOW | RTLD_NOLOAD), "cuweir_test_heard");
	void *(*bind)(const char *, const char *);
	void *first_malloc = cw_elf_symbol(first, "cudaMalloc");
	void *second_malloc = cw_elf_symbol(second, "cudaMalloc");

	if (heard == NULL) {
		skip();
	}
	bind = (void *(*)(const char *, const char *))dlsym(second, "fake_bind");
	assert_false(heard(second_malloc));
	assert_non_null(bind(getenv("CW_FAKE_DRIVER"), "cuCtxGetDevice"));
	assert_non_null(bind(getenv("CW_FAKE_DRIVER"), "cuGetProcAddress_v2"));
	assert_true(heard(second_malloc));
	assert_false(heard(first_malloc));
	assert_false(heard((void *)call_blindly));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unloaded_is_forgotten),
		cmocka_unit_test(first_gives_hooks),
		cmocka_unit_test(second_gives_its_own),
		cmocka_unit_test(linked_callers_reach_their_own),
		cmocka_unit_test(heard_by_its_lookups),
	};

	require_shim();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
