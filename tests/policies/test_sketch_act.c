/* SPDX-License-Identifier: Apache-2.0 */
#include "test_main.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[] = "/tmp/cuweir-act-XXXXXX";

/* Opens the policy with a command that adds a line "ran" to the file. */
static void *open_act(struct fake_host *fake, const char *marks)
{
	char arguments[200];
	fake_host_init(fake);
	snprintf(arguments, sizeof(arguments), "%s,run=echo ran,%s >>%s", marks, "$1", path);
	return fake_open(fake, policy, arguments);
}

static void climb(void *act, int device, uint64_t total)
{
	struct cuweir_event event = fake_event(1, total - 1, total);
	event.device = device;
	assert_int_equal(policy->on_alloc_threshold(act, total, &event), CUWEIR_SUCCESS);
}

static void fall(void *act, int device, uint64_t total)
{
	struct cuweir_event event = fake_event(1, total + 1, total);
	event.device = device;
	assert_int_equal(policy->on_dealloc_threshold(act, total, &event), CUWEIR_SUCCESS);
}

/* The command runs by itself: the file is read until it is as long, or 5 s are over. */
static long size_when(long wanted)
{
	long size = 0;
	for (int i = 0; i < 500; i++) {
		FILE *file = fopen(path, "r");
		fseek(file, 0, SEEK_END);
		size = ftell(file);
		fclose(file);
		if (size >= wanted) {
			break;
		}
		usleep(10000);
	}
	return size;
}

static void test_once_for_each_climb(void **state)
{
	struct fake_host fake;
	size_t count = 0;
	void *act = open_act(&fake, "high=8K,low=4K");
	assert_int_equal(policy->get_alloc_thresholds(act, &count)[0], 8192);
	assert_int_equal(count, 1);
	assert_int_equal(policy->get_dealloc_thresholds(act, &count)[0], 4096);
	assert_int_equal(count, 1);
	fake.totals[0][CUWEIR_KIND_DEVICE].current = 8192;
	climb(act, 0, 8192);
	climb(act, 0, 9000); /* it had come down to between the marks */
	assert_int_equal(size_when(6), 6);
	fall(act, 0, 4095);
	climb(act, 0, 8192);
	assert_int_equal(size_when(12), 12);
	climb(act, 0, 8192);
	usleep(100000);
	assert_int_equal(size_when(12), 12);
	/* Another device is another matter, and no child is left for the program to find. */
	fake.totals[1][CUWEIR_KIND_DEVICE].current = 8192;
	climb(act, 1, 8192);
	assert_int_equal(size_when(18), 18);
	assert_int_equal(waitpid(-1, NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
}

/* The fall was told before the climb that it followed: the next climb counts. */
static void test_late_climb(void **state)
{
	struct fake_host fake;
	void *act = open_act(&fake, "high=100");
	long before = size_when(0);
	fall(act, 0, 10);
	fake.totals[0][CUWEIR_KIND_DEVICE].current = 10;
	climb(act, 0, 100);
	assert_int_equal(size_when(before + 6), before + 6);
	climb(act, 0, 100);
	assert_int_equal(size_when(before + 12), before + 12);
}

static void test_refusals(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	assert_string_equal(fake_open_refused(&fake, policy, "high=1,low=2,run=true"),
			    "want high=SIZE, low= not above it, and run=COMMAND");
	assert_string_equal(fake_open_refused(&fake, policy, "high=1"),
			    "want high=SIZE, low= not above it, and run=COMMAND");
	assert_string_equal(fake_open_refused(&fake, policy, "high=x,run=true"),
			    "argument 1, \"high=x\": want high=SIZE, low=SIZE, or run=COMMAND");
}

static int set_up(void **state)
{
	int fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	return unlink(path);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		return 2;
	}
	policy = fake_load(argv[1]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once_for_each_climb),
		cmocka_unit_test(test_late_climb),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
