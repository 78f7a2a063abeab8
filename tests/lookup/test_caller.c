/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller stays the caller: RTLD_NEXT (P-4), RUNPATH (P-10), many look-ups at once (P-3),
 * both before and while names of the table are looked up. Linked to next_a, then next_b.
 */
#include "lookup_test.h"

#include <pthread.h>

#define THREADS 8
#ifndef ROUNDS
#define ROUNDS 40000
#endif

int foo(void);

static void next_is_the_callers(void **state)
{
	assert_int_equal(foo(), 42);
}

static void runpath_is_the_callers(void **state)
{
	void *caller = open_from_env("CW_RUNPATH_CALLER", 0);
	void *(*open_dependency)(void) = (void *(*)(void))dlsym(caller, "open_dependency");
	void *dependency = open_dependency();

	assert_non_null(dependency);
	assert_int_equal(call_blindly(dlsym(dependency, "dependency")), 5);
}

static const char *const looked_up[] = { "open", "malloc", "cuMemAlloc_v2", "cudaMalloc" };

static void *look_up(void *argument)
{
	void **handles = argument;
	void *answers[4] = { NULL };

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 4; i++) {
			void *found = dlsym(handles[i], looked_up[i]);

			if (found == NULL || (round > 0 && found != answers[i])) {
				return (void *)looked_up[i];
			}
			answers[i] = found;
		}
		if (foo() != 42) {
			return (void *)"foo";
		}
	}
	return NULL;
}

static void many_threads(void **state)
{
	void *handles[4] = { RTLD_NEXT, RTLD_DEFAULT, open_from_env("CW_FAKE_DRIVER", 0),
			     open_from_env("CW_FAKE_RT12", 0) };
	pthread_t threads[THREADS];
	void *wrong;

	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, look_up, handles), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(next_is_the_callers),
		cmocka_unit_test(runpath_is_the_callers),
		cmocka_unit_test(many_threads),
	};

	require_shim();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
