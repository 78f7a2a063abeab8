/* SPDX-License-Identifier: Apache-2.0 */
#include "test_main.h"

static void test_marks(void **state)
{
	struct fake_host fake;
	size_t count = 0;
	fake_host_init(&fake);
	void *example = fake_open(&fake, policy, "1048576,18446744073709551615,0");
	const uint64_t *marks = policy->get_alloc_thresholds(example, &count);
	assert_int_equal(count, 3);
	assert_int_equal(marks[0], 1048576);
	assert_int_equal(marks[1], UINT64_MAX);
	assert_int_equal(marks[2], 0);
	marks = policy->get_dealloc_thresholds(example, &count);
	assert_int_equal(count, 3);
	assert_int_equal(marks[0], 1048576);
	example = fake_open(&fake, policy, "");
	policy->get_alloc_thresholds(example, &count);
	assert_int_equal(count, 0);
}

static void test_refusals(void **state)
{
	static const char *const wrong[] = {
		"1M", "x",  ",1", "1,,2",
		"-1", " 1", "18446744073709551616", "1,2,3,4,5,6,7,8,9",
	};
	struct fake_host fake;
	fake_host_init(&fake);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_string_equal(fake_open_refused(&fake, policy, wrong[i]),
				    "want up to 8 marks in bytes: 1048576,8388608");
	}
}

static void test_crossings_are_told(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *example = fake_open(&fake, policy, "100");
	struct cuweir_event event = fake_event(60, 50, 110);
	assert_int_equal(policy->on_alloc_threshold(example, 110, &event), CUWEIR_SUCCESS);
	event = fake_event(60, 110, 50);
	event.call = "cudaFree";
	assert_int_equal(policy->on_dealloc_threshold(example, 50, &event), CUWEIR_SUCCESS);
	assert_int_equal(fake.line_count, 2);
	assert_string_equal(fake.lines[0],
			    "example: device 0 is over a mark: 110 bytes after cudaMalloc");
	assert_string_equal(fake.lines[1],
			    "example: device 0 is under a mark: 50 bytes after cudaFree");
}

static void test_retries_are_bounded(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *example = fake_open(&fake, policy, "");
	struct cuweir_event event = fake_event(60, 0, 0);
	int count = 0;
	while (count < 100 && policy->on_alloc_failure(example, 60, count, &event)) {
		count++;
	}
	assert_int_equal(count, 5);
	assert_int_equal(fake.wait_count, 5);
	assert_int_equal(fake.wait_times[0], 200000000);
}

TEST_MAIN(cmocka_unit_test(test_marks), cmocka_unit_test(test_refusals),
	  cmocka_unit_test(test_crossings_are_told), cmocka_unit_test(test_retries_are_bounded));
