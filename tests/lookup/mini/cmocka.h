/* SPDX-License-Identifier: Apache-2.0 */
/* As much of cmocka as the look-up tests use, for targets that it is not installed for. */
#ifndef CW_TEST_MINI_CMOCKA_H
#define CW_TEST_MINI_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
	const char *name;
	void (*function)(void **state);
};

#define cmocka_unit_test(test) { #test, test }
#define cmocka_run_group_tests(tests, setup, teardown) \
	mini_run(tests, sizeof tests / sizeof *tests)
#define MINI_CHECK(condition)                                                         \
	do {                                                                          \
		if (!(condition)) {                                                   \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);        \
			exit(1);                                                      \
		}                                                                     \
	} while (0)
#define assert_true(a) MINI_CHECK(a)
#define assert_false(a) MINI_CHECK(!(a))
#define assert_null(a) MINI_CHECK((a) == NULL)
#define assert_non_null(a) MINI_CHECK((a) != NULL)
#define assert_int_equal(a, b) MINI_CHECK((long)(a) == (long)(b))
#define assert_ptr_equal(a, b) MINI_CHECK((const void *)(a) == (const void *)(b))
#define assert_string_equal(a, b) MINI_CHECK(strcmp(a, b) == 0)
#define skip() return

static inline int mini_run(const struct CMUnitTest *tests, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		tests[i].function(NULL);
		printf("ok %s\n", tests[i].name);
	}
	return 0;
}

#endif
