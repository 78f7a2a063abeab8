/* SPDX-License-Identifier: Apache-2.0 */
/* What the unit test of a policy begins with: its module is the first argument. */
#ifndef TESTS_TEST_MAIN_H
#define TESTS_TEST_MAIN_H

#include "fake_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct cuweir_policy *policy;

#define TEST_MAIN(...) TEST_MAIN_WITH(NULL, NULL, __VA_ARGS__)
/* With what is done before and after all of them. */
#define TEST_MAIN_WITH(set_up, tear_down, ...) \
	int main(int argc, char **argv) \
	{ \
		const struct CMUnitTest tests[] = { __VA_ARGS__ }; \
		if (argc < 2) { \
			return 2; \
		} \
		policy = fake_load(argv[1]); \
		return cmocka_run_group_tests(tests, set_up, tear_down); \
	} \
	_Static_assert(true, "wants a semicolon")

#endif
