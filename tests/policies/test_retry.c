/* SPDX-License-Identifier: Apache-2.0 */
/* The policy `retry` by value: P-49, and what is done between the attempts. */
#include "test_main.h"

#define MS 1000000ull

static unsigned int syncs;

static int synchronize(void)
{
	syncs++;
	return CUWEIR_SUCCESS;
}

static void *find_driver(const char *symbol)
{
	return strcmp(symbol, "cuCtxSynchronize") == 0 ? (void *)synchronize : NULL;
}

static void *open_retry(struct fake_host *fake, const char *arguments)
{
	fake_host_init(fake);
	fake->find_driver = find_driver;
	fake->trim_status = CUWEIR_SUCCESS;
	syncs = 0;
	return fake_open(fake, policy, arguments);
}

static int count_yes(void *retry, uint32_t kind, uint32_t flags)
{
	struct cuweir_event event = fake_event(10, 0, 0);
	event.flags = flags;
	event.kind = kind;
	event.device = 1;
	int count = 0;
	while (count < 100 && policy->on_alloc_failure(retry, 10, count, &event)) {
		event.retry_count = (uint32_t)++count;
	}
	return count;
}

/* P-49: 16 attempts after the first; the pauses double from 1 ms to 100 ms. */
static void test_default(void **state)
{
	static const uint64_t pauses[] = { 2, 4, 8, 16, 32, 64, 100, 100 };
	struct fake_host fake;
	void *retry = open_retry(&fake, "");
	fake.wait_answers[1] = CUWEIR_ERROR_NOT_READY; /* a wait in vain ends nothing */
	assert_int_equal(count_yes(retry, CUWEIR_KIND_DEVICE, 0), 16);
	/* What is only kept is given back before the first and the last, the first at once. */
	assert_int_equal(syncs, 2);
	assert_int_equal(fake.trim_count, 2);
	assert_int_equal(fake.trim_device, 1);
	assert_int_equal(fake.wait_count, 15);
	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		assert_int_equal(fake.wait_times[i], pauses[i] * MS);
	}
	assert_int_equal(policy->flags & CUWEIR_POLICY_CAPTURE_SAFE, 0);
	/* Each allocation anew. */
	assert_int_equal(count_yes(retry, CUWEIR_KIND_DEVICE, 0), 16);
}

static void test_arguments(void **state)
{
	struct fake_host fake;
	void *retry = open_retry(&fake, "max=4,backoff=10ms..25ms,sync=0,trim=0");
	assert_int_equal(count_yes(retry, CUWEIR_KIND_DEVICE, 0), 4);
	assert_int_equal(syncs + fake.trim_count, 0);
	assert_int_equal(fake.wait_count, 4);
	assert_int_equal(fake.wait_times[0], 10 * MS);
	assert_int_equal(fake.wait_times[1], 20 * MS);
	assert_int_equal(fake.wait_times[2], 25 * MS);
	retry = open_retry(&fake, "max=0");
	assert_int_equal(count_yes(retry, CUWEIR_KIND_DEVICE, 0), 0);
	retry = open_retry(&fake, "max=70,backoff=1ns..20m,trim=0,sync=0");
	assert_int_equal(count_yes(retry, CUWEIR_KIND_DEVICE, 0), 70);
	assert_int_equal(fake.wait_times[FAKE_WAITS - 1], 1200000 * MS);
	retry = open_retry(&fake, "max=3,backoff=0..0");
	assert_int_equal(count_yes(retry, CUWEIR_KIND_DEVICE, 0), 3);
	assert_int_equal(fake.wait_count, 0);
}

static void test_time_limit(void **state)
{
	struct fake_host fake;
	void *retry = open_retry(&fake, "max=9,backoff=5m..5m,wait=3s,trim=0,sync=0");
	struct cuweir_event event = fake_event(10, 0, 0);
	assert_true(policy->on_alloc_failure(retry, 10, 0, &event));
	assert_int_equal(fake.wait_times[0], 3000 * MS); /* no pause beyond it */
	assert_true(policy->on_alloc_failure(retry, 10, 1, &event));
	assert_in_range(fake.wait_times[1], 1, 3000 * MS);
	retry = open_retry(&fake, "max=9,wait=1ns,trim=0,sync=0");
	assert_true(policy->on_alloc_failure(retry, 10, 0, &event));
	assert_false(policy->on_alloc_failure(retry, 10, 1, &event));
}

static void test_not_of_use(void **state)
{
	struct fake_host fake;
	void *retry = open_retry(&fake, "max=2");
	/* Pinned memory is the host's: pauses alone. */
	assert_int_equal(count_yes(retry, CUWEIR_KIND_HOST, 0), 2);
	assert_int_equal(syncs + fake.trim_count, 0);
	assert_int_equal(count_yes(retry, CUWEIR_KIND_DEVICE, CUWEIR_EVENT_CAPTURING), 0);
	assert_int_equal(syncs + fake.trim_count, 0);
}

static void test_refusals(void **state)
{
	static const char *const wrong[][2] = {
		{ "max=x", "argument 1, \"max=x\": want max=N, 0 to 1000000" },
		{ "max=1000001", "want max=N" },
		{ "max=3,backoff=1..2",
		  "argument 2, \"backoff=1..2\": want backoff=FIRST..LONGEST" },
		{ "backoff=2ms..1ms", "FIRST not above LONGEST" },
		{ "backoff=1ms..", "want backoff=" },
		{ "backoff", "want backoff=" },
		{ "wait=5", "want wait=TIME with a unit" },
		{ "sync=2", "want sync=0 or sync=1" },
		{ "trim", "want trim=0 or trim=1" },
		{ "retries=3", "want max=, backoff=, wait=, sync= or trim=" },
		{ ",", "want max=" },
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

TEST_MAIN(cmocka_unit_test(test_default), cmocka_unit_test(test_arguments),
	  cmocka_unit_test(test_time_limit), cmocka_unit_test(test_not_of_use),
	  cmocka_unit_test(test_refusals));
