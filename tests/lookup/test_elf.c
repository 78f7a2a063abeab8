/* SPDX-License-Identifier: Apache-2.0 */
/* Reading symbol tables: the answers are the loader's own. Runs without the shim. */
#include "lookup_test.h"

static const struct {
	const char *library;
	const char *symbol;
} samples[] = {
	{ "libc.so.6", "malloc" },	{ "libc.so.6", "dlsym" },
	{ "libc.so.6", "dlvsym" },	{ "libc.so.6", "pthread_create" },
	{ "libc.so.6", "timer_create" }, { "libc.so.6", "memcpy" },
	{ "libc.so.6", "strlen" },	{ "libc.so.6", "environ" },
	{ "libm.so.6", "cos" },		{ "libm.so.6", "ceil" },
	{ "libm.so.6", "exp" },		{ "libm.so.6", "lgamma" },
};

static void default_versions(void **state)
{
	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
		struct link_map *object = dlopen(samples[i].library, RTLD_NOW);
		void *expected = dlsym(object, samples[i].symbol);

		assert_ptr_equal(cw_elf_symbol(object, samples[i].symbol), expected);
	}
}

static void named_versions(void **state)
{
#if defined(__x86_64__)
	const char *const exps[] = { "GLIBC_2.2.5", "GLIBC_2.29" };
	struct link_map *math = dlopen("libm.so.6", RTLD_NOW);

	for (size_t i = 0; i < 2; i++) {
		assert_ptr_equal(cw_elf_versioned(math, "exp", exps[i]),
				 dlvsym(math, "exp", exps[i]));
	}
	assert_null(cw_elf_versioned(math, "exp", "GLIBC_1.0"));
#endif
}

static void names_and_needs(void **state)
{
	struct link_map *math = dlopen("libm.so.6", RTLD_NOW);
	bool needs_libc = false;

	assert_string_equal(cw_elf_soname(math), "libm.so.6");
	for (unsigned int i = 0; cw_elf_needed(math, i) != NULL; i++) {
		needs_libc |= strcmp(cw_elf_needed(math, i), "libc.so.6") == 0;
	}
	assert_true(needs_libc);
	assert_null(cw_elf_symbol(math, "malloc"));
	assert_null(cw_elf_symbol(math, ""));
	assert_non_null(cw_elf_name_at(math, cw_elf_symbol(math, "lgamma")));
	assert_null(cw_elf_name_at(math, (char *)cw_elf_symbol(math, "lgamma") + 1));
}

static void only_the_old_hash(void **state)
{
	struct link_map *object = open_from_env("CW_SYSV", 0);

	assert_ptr_equal(cw_elf_symbol(object, "custom"), dlsym(object, "custom"));
	assert_null(cw_elf_symbol(object, "malloc"));
	assert_string_equal(cw_elf_name_at(object, dlsym(object, "custom")), "custom");
}

/* The vDSO's dynamic section is read-only: its pointers are not relocated. */
static void every_loaded_object(void **state)
{
	const struct link_map *object = cw_elf_first();
	int count = 0;

	assert_non_null(object);
	for (; object != NULL; object = object->l_next) {
		count++;
		assert_null(cw_elf_symbol(object, "no_such_symbol"));
		if (strstr(object->l_name, "linux-vdso") != NULL) {
			void *clock = cw_elf_symbol(object, "__vdso_clock_gettime");

			assert_true(clock == NULL || (uintptr_t)clock > object->l_addr);
#if defined(__x86_64__)
			assert_non_null(clock);
			assert_string_equal(cw_elf_soname(object), "linux-vdso.so.1");
#endif
		}
	}
	assert_true(count > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(default_versions),  cmocka_unit_test(named_versions),
		cmocka_unit_test(names_and_needs),   cmocka_unit_test(only_the_old_hash),
		cmocka_unit_test(every_loaded_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
