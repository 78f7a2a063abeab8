/* SPDX-License-Identifier: Apache-2.0 */
#include "test_main.h"

#define MS 1000000ull

static int count_yes(void *retry, uint32_t flags)
{
	struct cuweir_event event = fake_event(10, 0, 0);
	event.flags = flags;
	event.device = 1;
	int count = 0;
	while (count < 100 && policy->on_alloc_failure(retry, 10, count, &event)) {
		event.retry_count = (uint32_t)++count;
	}
	return count;
}

static void test_bounded_with_longer_waits(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	fake.wait_answers[1] = CUWEIR_ERROR_NOT_READY; /* a wait in vain ends nothing */
	void *retry = fake_open(&fake, policy, "retries=4,wait=10");
	assert_int_equal(count_yes(retry, 0), 4);
	assert_int_equal(fake.trim_count, 1);
	assert_int_equal(fake.trim_device, 1);
	assert_int_equal(fake.wait_count, 4);
	assert_int_equal(fake.wait_times[0], 10 * MS);
	assert_int_equal(fake.wait_times[1], 20 * MS);
	assert_int_equal(fake.wait_times[2], 40 * MS);
	assert_int_equal(fake.wait_times[3], 80 * MS);
}

static void test_trim_comes_first(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	fake.trim_status = CUWEIR_SUCCESS;
	void *retry = fake_open(&fake, policy, "");
	assert_int_equal(count_yes(retry, 0), 3);
	assert_int_equal(fake.trim_count, 1);
	assert_int_equal(fake.wait_count, 2);
	assert_int_equal(fake.wait_times[0], 200 * MS);
	fake_host_init(&fake);
	retry = fake_open(&fake, policy, "trim=0,retries=1");
	assert_int_equal(count_yes(retry, 0), 1);
	assert_int_equal(fake.trim_count, 0);
	assert_int_equal(fake.wait_count, 1);
}

static void test_waits_have_an_end(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *retry = fake_open(&fake, policy, "retries=50,wait=10000");
	assert_int_equal(count_yes(retry, 0), 50);
	for (size_t i = 0; i < FAKE_WAITS; i++) {
		assert_int_equal(fake.wait_times[i], 10000 * MS);
	}
}

static void test_never_during_capture(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *retry = fake_open(&fake, policy, "");
	assert_int_equal(count_yes(retry, CUWEIR_EVENT_CAPTURING), 0);
	assert_int_equal(fake.trim_count + fake.wait_count, 0);
	assert_int_equal(policy->flags & CUWEIR_POLICY_CAPTURE_SAFE, 0);
	retry = fake_open(&fake, policy, "retries=0");
	assert_int_equal(count_yes(retry, 0), 0);
}

static void test_refusals(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	assert_string_equal(fake_open_refused(&fake, policy, "retries=3,wait=10001"),
			    "argument 2, \"wait=10001\": want retries=N, wait=MILLISECONDS to "
			    "10000, or trim=0|1");
	assert_non_null(strstr(fake_open_refused(&fake, policy, "retries=-1"), "argument 1"));
}

TEST_MAIN(cmocka_unit_test(test_bounded_with_longer_waits),
	  cmocka_unit_test(test_trim_comes_first), cmocka_unit_test(test_waits_have_an_end),
	  cmocka_unit_test(test_never_during_capture), cmocka_unit_test(test_refusals));
