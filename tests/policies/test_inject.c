/* SPDX-License-Identifier: Apache-2.0 */
/* The policy `inject` by value: P-43, R-104. */
#include "test_main.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* The outcomes of `count` attempts as a text: '.' admitted, '2' its code 2, '!' another. */
static const char *outcomes(void *inject, int count)
{
	static char text[256];
	struct cuweir_event event = fake_event(10, 0, 0);
	for (int i = 0; i < count; i++) {
		int status = policy->admit(inject, &event);
		text[i] = status == CUWEIR_SUCCESS ? '.' : status == 2 ? '2' : '!';
	}
	text[count] = '\0';
	return text;
}

static void test_which(void **state)
{
	static const char *const rows[][2] = {
		{ "nth=3", "..2......." }, /* P-43 */
		{ "nth=3,count=2", "..22......" },
		{ "every=3", "..2..2..2." },
		{ "every=3,count=2", "..22.22.22" },
		{ "every=1", "2222222222" },
		{ "", "2222222222" },
		{ "count=2", "22........" },
		{ "skip=2,count=3", "..222....." }, /* */
		{ "skip=2,nth=3", "....2....." },
		{ "error=700,nth=1", "!........." },
		{ "above=10", ".........." },
		{ "above=9", "2222222222" },
		{ "min=11", ".........." },
		{ "min=10", "2222222222" },
		{ "p=1", "2222222222" },
		{ "p=1.0,count=4", "2222......" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fake_host fake;
		fake_host_init(&fake);
		const char *got = outcomes(fake_open(&fake, policy, rows[i][0]), 10);
		if (strcmp(got, rows[i][1]) != 0) {
			fail_msg("%s: %s, want %s", rows[i][0], got, rows[i][1]);
		}
	}
}

static void test_chance(void **state)
{
	struct fake_host fake;
	char first[256];
	fake_host_init(&fake);
	void *inject = fake_open(&fake, policy, "p=0.25,seed=7");
	snprintf(first, sizeof(first), "%s", outcomes(inject, 200));
	assert_string_equal(outcomes(fake_open(&fake, policy, "p=0.25,seed=7"), 200), first);
	assert_string_not_equal(outcomes(fake_open(&fake, policy, "p=0.25,seed=8"), 200), first);
	int failures = 0;
	inject = fake_open(&fake, policy, "p=0.01,seed=7");
	for (int i = 0; i < 1000; i++) {
		for (const char *at = outcomes(inject, 100); *at != '\0'; at++) {
			failures += *at == '2';
		}
	}
	assert_in_range(failures, 850, 1150); /* of 100000; 31 is one standard deviation */
}

static void test_filters(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	char arguments[64];
	snprintf(arguments, sizeof(arguments), "thread=%d", (int)getpid() + 1);
	void *by_call = fake_open(&fake, policy, "call=cuda*Async");
	void *by_kind = fake_open(&fake, policy, "kinds=managed+host");
	void *by_device = fake_open(&fake, policy, "device=1");
	void *of_main = fake_open(&fake, policy, "thread=main");
	void *of_other = fake_open(&fake, policy, arguments);
	struct cuweir_event event = fake_event(10, 0, 0);
	assert_int_equal(policy->admit(by_call, &event), 0);
	assert_int_equal(policy->admit(by_kind, &event), 0);
	assert_int_equal(policy->admit(by_device, &event), 0);
	assert_int_equal(policy->admit(of_main, &event), 2);
	assert_int_equal(policy->admit(of_other, &event), 0);
	event.call = "cudaMallocAsync";
	event.kind = CUWEIR_KIND_HOST;
	event.device = 1;
	assert_int_equal(policy->admit(by_call, &event), 2);
	assert_int_equal(policy->admit(by_kind, &event), 2);
	assert_int_equal(policy->admit(by_device, &event), 2);
	/* What policies do within callbacks is not the program's. */
	event.flags = CUWEIR_EVENT_NESTED;
	assert_int_equal(policy->admit(by_call, &event), 0);
}

static void test_errors(void **state)
{
	static const struct {
		const char *arguments;
		int status;
	} rows[] = {
		{ "error=CUDA_ERROR_NOT_PERMITTED", 800 },
		{ "error=NOT_PERMITTED", 800 },
		{ "error=999", 999 },
		{ "error=cudaErrorMemoryAllocation", 2 },
	};
	struct cuweir_event event = fake_event(10, 0, 0);
	struct fake_host fake;
	fake_host_init(&fake);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *inject = fake_open(&fake, policy, rows[i].arguments);
		assert_int_equal(policy->admit(inject, &event), rows[i].status);
	}
}

static void test_refusals(void **state)
{
	static const char *const wrong[][2] = {
		{ "nth=0", "argument 1, \"nth=0\": want one of nth=N, every=N (from 1)" },
		{ "nth=1,every=2", "argument 2, \"every=2\": want one of nth=N" },
		{ "p=0", "want p=CHANCE above 0" },
		{ "p=1.1", "want p=CHANCE" },
		{ "p=.5", "want p=CHANCE" },
		{ "p=0.", "want p=CHANCE" },
		{ "p=0.5x", "want p=CHANCE" },
		{ "p=0.5,nth=2", "want one of nth=N" },
		{ "count=0", "want count=N from 1" },
		{ "every=2,count=2", "count= below every=" },
		{ "error=0", "want error= a number or name of cuda.h" },
		{ "error=7777", "want error=" },
		{ "error=CUDA_ERROR_FOO", "want error=" },
		{ "call=", "want call=NAME" },
		{ "kinds=vram", "want kinds=all" },
		{ "seed=3", "want p=CHANCE with seed=" },
		{ "kinds=device+virtual", "of what is allocated: device, managed" },
		{ "device=-1", "want device=N" },
		{ "thread=0", "want thread=main" },
		{ "above=1X", "want above=SIZE" },
		{ "bytes=3", "want nth=, every=, p=, seed=" },
	};
	struct fake_host fake;
	fake_host_init(&fake);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *reason = fake_open_refused(&fake, policy, wrong[i][0]);
		if (strstr(reason, wrong[i][1]) == NULL) {
			fail_msg("%s: %s", wrong[i][0], reason);
		}
	}
}

static void *count_failures(void *inject)
{
	struct cuweir_event event = fake_event(10, 0, 0);
	uintptr_t failures = 0;
	for (int i = 0; i < 10000; i++) {
		failures += policy->admit(inject, &event) != CUWEIR_SUCCESS;
	}
	return (void *)failures;
}

/* Each number is given once, and the bound on failures holds. */
static void test_threads(void **state)
{
	static const char *const arguments[] = { "every=100", "skip=500,count=400" };
	struct fake_host fake;
	fake_host_init(&fake);
	for (size_t i = 0; i < 2; i++) {
		pthread_t threads[4];
		void *inject = fake_open(&fake, policy, arguments[i]);
		uintptr_t sum = 0;
		for (int j = 0; j < 4; j++) {
			assert_int_equal(pthread_create(&threads[j], NULL, count_failures, inject),
					 0);
		}
		for (int j = 0; j < 4; j++) {
			void *failures;
			pthread_join(threads[j], &failures);
			sum += (uintptr_t)failures;
		}
		assert_int_equal(sum, 400);
	}
}

TEST_MAIN(cmocka_unit_test(test_which), cmocka_unit_test(test_chance),
	  cmocka_unit_test(test_filters), cmocka_unit_test(test_errors),
	  cmocka_unit_test(test_refusals), cmocka_unit_test(test_threads));
