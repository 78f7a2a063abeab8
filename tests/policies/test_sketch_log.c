/* SPDX-License-Identifier: Apache-2.0 */
#include "test_main.h"

static void test_lines(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *log = fake_open(&fake, policy, "");
	assert_true(fake.debug);
	struct cuweir_event event = fake_event(64, 0, 64);
	event.pointer = (void *)0x7f00;
	policy->on_allocated(log, 64, &event);
	event = fake_free_event(64, (void *)0x7f00, 64);
	policy->before_free(log, &event);
	event = fake_event(65, 0, 0);
	policy->on_alloc_failed(log, &event);
	policy->on_context_ended(log, (void *)0x55, 1);
	assert_int_equal(fake.line_count, 4);
	assert_string_equal(fake.lines[0], "allocated cudaMalloc 64 0x7f00");
	assert_string_equal(fake.lines[1], "free cudaFree 64 0x7f00");
	assert_string_equal(fake.lines[2], "failed cudaMalloc 65 (nil)");
	assert_string_equal(fake.lines[3], "context 0x55 of device 1 ended");
	assert_string_equal(fake_open_refused(&fake, policy, "x"), "want no arguments");
}

TEST_MAIN(cmocka_unit_test(test_lines));
