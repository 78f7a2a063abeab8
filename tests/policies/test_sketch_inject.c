/* SPDX-License-Identifier: Apache-2.0 */
#include "test_main.h"

/* Ten attempts of `call` and `size`: "..2...2..." has the last digit of each status. */
static const char *ten(void *inject, const char *call, uint64_t size)
{
	static char answers[11];
	for (int i = 0; i < 10; i++) {
		struct cuweir_event event = fake_event(size, 0, 0);
		event.call = call;
		int status = policy->admit(inject, &event);
		answers[i] = status == 0 ? '.' : "0123456789"[status % 10];
	}
	return answers;
}

static void test_counting(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *inject = fake_open(&fake, policy, "nth=3");
	assert_string_equal(ten(inject, "cudaMalloc", 1), "..2.......");
	assert_string_equal(ten(inject, "cudaMalloc", 1), "..........");
	inject = fake_open(&fake, policy, "every=4,status=719");
	assert_string_equal(ten(inject, "cudaMalloc", 1), "...9...9..");
	assert_string_equal(ten(inject, "cudaMalloc", 1), ".9...9...9");
	inject = fake_open(&fake, policy, "");
	assert_string_equal(ten(inject, "cudaMalloc", 0), "2222222222");
}

static void test_selection(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *inject = fake_open(&fake, policy, "above=1K,call=cudaMallocAsync,nth=2");
	assert_string_equal(ten(inject, "cudaMallocAsync", 1024), "..........");
	assert_string_equal(ten(inject, "cudaMalloc", 1025), "..........");
	assert_string_equal(ten(inject, "cudaMallocAsyncX", 1025), "..........");
	assert_string_equal(ten(inject, "cudaMallocAsync", 1025), ".2........");
	inject = fake_open(&fake, policy, "above=0");
	assert_string_equal(ten(inject, "cudaMalloc", 0), "..........");
	assert_string_equal(ten(inject, "cudaMalloc", 1), "2222222222");
}

static void test_nested_is_left_alone(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *inject = fake_open(&fake, policy, "nth=1");
	struct cuweir_event event = fake_event(1, 0, 0);
	event.flags = CUWEIR_EVENT_NESTED;
	assert_int_equal(policy->admit(inject, &event), CUWEIR_SUCCESS);
	assert_string_equal(ten(inject, "cudaMalloc", 1), "2.........");
}

static void test_refusals(void **state)
{
	static const char *const wrong[] = { "nth=0",      "every=0",  "status=0", "status=1000",
					     "above=much", "call=",    "nth",	   "first=1",
					     "nth=1,call", "above=1P" };
	struct fake_host fake;
	fake_host_init(&fake);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_non_null(strstr(fake_open_refused(&fake, policy, wrong[i]),
				       "want nth=N or every=N from 1, above=SIZE, call=NAME, or "
				       "status=1 to 999"));
	}
	assert_string_equal(fake_open_refused(&fake, policy, "nth=1,every=2"),
			    "nth= and every=: want one of them");
}

TEST_MAIN(cmocka_unit_test(test_counting), cmocka_unit_test(test_selection),
	  cmocka_unit_test(test_nested_is_left_alone), cmocka_unit_test(test_refusals));
