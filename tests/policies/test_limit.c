/* SPDX-License-Identifier: Apache-2.0 */
/* The policy `limit` by value: P-33, P-34. */
#include "test_main.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static struct {
	bool initialized;
	unsigned int inits;
} driver;

static int init(unsigned int flags)
{
	driver.initialized = true;
	driver.inits++;
	return CUWEIR_SUCCESS;
}

static int get_count(int *count)
{
	*count = 2;
	return driver.initialized ? CUWEIR_SUCCESS : CUWEIR_ERROR_NOT_INITIALIZED;
}

static int total_mem(size_t *bytes, int device)
{
	*bytes = (size_t)(device + 1) * 1000 * MIB + 1;
	return !driver.initialized ? CUWEIR_ERROR_NOT_INITIALIZED :
	       device < 2	   ? CUWEIR_SUCCESS :
				     CUWEIR_ERROR_INVALID_DEVICE;
}

static void *find_driver(const char *symbol)
{
	return strcmp(symbol, "cuInit") == 0		  ? (void *)init :
	       strcmp(symbol, "cuDeviceGetCount") == 0	  ? (void *)get_count :
	       strcmp(symbol, "cuDeviceTotalMem_v2") == 0 ? (void *)total_mem :
							    NULL;
}

static void *open_limit(struct fake_host *fake, const char *arguments)
{
	fake_host_init(fake);
	memset(&driver, 0, sizeof(driver));
	driver.initialized = true;
	fake->find_driver = find_driver;
	fake->budget_status = CUWEIR_SUCCESS;
	return fake_open(fake, policy, arguments);
}

/* P-34, all forms. */
static void test_forms(void **state)
{
	static const struct {
		const char *arguments;
		uint64_t budgets[3];
	} rows[] = {
		{ "8GiB", { 8 * GIB, 8 * GIB, 8 * GIB } },
		{ "1024m", { GIB, GIB, GIB } },
		{ "1g", { GIB, GIB, GIB } },
		{ "512MB", { 512 * MIB, 512 * MIB, 512 * MIB } },
		{ "123", { 123, 123, 123 } },
		{ "0=1G,1=512MB", { GIB, 512 * MIB, UINT64_MAX } },
		{ "gpu0=1G", { GIB, UINT64_MAX, UINT64_MAX } },
		{ "1G,gpu2=2G", { GIB, GIB, 2 * GIB } },
		{ "50%", { 500 * MIB, 1000 * MIB, UINT64_MAX } },
		{ "1G,1=100%", { GIB, 2000 * MIB + 1, GIB } },
		{ "0", { 0, 0, 0 } },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fake_host fake;
		open_limit(&fake, rows[i].arguments);
		for (int device = 0; device < 3; device++) {
			if (fake.budgets[device] != rows[i].budgets[device]) {
				fail_msg("%s: device %d: %llu", rows[i].arguments, device,
					 (unsigned long long)fake.budgets[device]);
			}
		}
	}
}

static void test_refusals(void **state)
{
	static const char *const wrong[][2] = {
		{ "", "no limit: want SIZE, PERCENT% or DEVICE=SIZE" },
		{ "-1", "argument 1, \"-1\": want SIZE, PERCENT%, DEVICE=SIZE" },
		{ "abc", "argument 1, \"abc\": want SIZE" },
		{ "1G,2G=x", "argument 2, \"2G=x\": want SIZE" },
		{ "0%", "want SIZE" },
		{ "101%", "want SIZE" },
		{ "8GiBx", "want SIZE" },
		{ "64=1G", "want SIZE" },
		{ "gpu=1G", "want SIZE" },
		{ "18446744073709551616", "want SIZE" },
		{ "16777216T", "want SIZE" },
		{ "safety=1G", "no limit: want" },
		{ "1G,safety=x", "argument 2, \"safety=x\": want safety=SIZE" },
		{ "1G,shared=", "want shared=NAME" },
		{ "1G,shared=../x", "want shared=NAME" },
		{ "1G,shared=.x", "want shared=NAME" },
	};
	struct fake_host fake;
	fake_host_init(&fake);
	fake.budget_status = CUWEIR_SUCCESS;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *reason = fake_open_refused(&fake, policy, wrong[i][0]);
		if (strstr(reason, wrong[i][1]) == NULL) {
			fail_msg("%s: %s", wrong[i][0], reason);
		}
	}
	fake.budget_status = CUWEIR_ERROR_INVALID_DEVICE;
	assert_non_null(strstr(fake_open_refused(&fake, policy, "1G"), "could not be set"));
}

/* A device that is not there: refused where nothing is left to limit, else told. */
static void test_missing_device(void **state)
{
	struct fake_host fake;
	open_limit(&fake, "1=1G");
	assert_int_equal(fake.line_count, 0);
	open_limit(&fake, "0=1G,2=2G");
	assert_int_equal(fake.line_count, 1);
	assert_non_null(strstr(fake.lines[0], "]: limit: there is no device 2 here; want one "
					      "below 2; the other limits hold"));
	assert_int_equal(fake.budgets[0], GIB);
	assert_string_equal(fake_open_refused(&fake, policy, "3=50%,2=1G"),
			    "there is no device 3 here; want one below 2");
	/* Without a driver at the opening it is told at the first allocation, once. */
	fake_host_init(&fake);
	fake.budget_status = CUWEIR_SUCCESS;
	void *limit = fake_open(&fake, policy, "7=1G");
	assert_int_equal(fake.line_count, 0);
	fake.find_driver = find_driver;
	struct cuweir_event event = fake_event(1, 0, 0);
	assert_int_equal(policy->admit(limit, &event), CUWEIR_SUCCESS);
	assert_int_equal(policy->admit(limit, &event), CUWEIR_SUCCESS);
	assert_int_equal(fake.line_count, 1);
	assert_non_null(strstr(fake.lines[0], "no device 7 here; want one below 2"));
}

/* NVML was asked first, and the program may fork before it initializes the driver itself. */
static void test_driver_not_initialized(void **state)
{
	struct fake_host fake;
	struct cuweir_memory_info info = {
		.struct_size = sizeof(info), .device = 1, .free_bytes = 900, .total_bytes = 1000,
	};
	open_limit(&fake, "0=1G,1=50%");
	assert_int_equal(fake.budgets[1], 1000 * MIB);
	fake_host_init(&fake);
	memset(&driver, 0, sizeof(driver));
	fake.find_driver = find_driver;
	fake.budget_status = CUWEIR_SUCCESS;
	void *limit = fake_open(&fake, policy, "0=1G,1=50%");
	fake.budget_status = CUWEIR_ERROR_NOT_FOUND;
	policy->memory_info(limit, &info);
	assert_int_equal(info.total_bytes, 500);
	assert_int_equal(info.free_bytes, 500);
	assert_int_equal(driver.inits, 0);
	assert_int_equal(fake.budgets[0], GIB);
	assert_int_equal(fake.budgets[1], UINT64_MAX);
	fake.budget_status = CUWEIR_SUCCESS;
	struct cuweir_event event = fake_event(1, 0, 0);
	assert_int_equal(policy->admit(limit, &event), CUWEIR_SUCCESS);
	assert_int_equal(driver.inits, 1);
	assert_int_equal(fake.budgets[1], 1000 * MIB);
}

/* A driver that is not there yet when the policy opens is asked at the first allocation. */
static void test_percent_later(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	memset(&driver, 0, sizeof(driver));
	fake.budget_status = CUWEIR_SUCCESS;
	void *limit = fake_open(&fake, policy, "50%");
	assert_int_equal(fake.budgets[0], UINT64_MAX);
	fake.find_driver = find_driver;
	struct cuweir_event event = fake_event(1, 0, 0);
	assert_int_equal(policy->admit(limit, &event), CUWEIR_SUCCESS);
	assert_int_equal(fake.budgets[0], 500 * MIB);
	assert_int_equal(driver.inits, 1);
	fake.budgets[0] = 7; /* set once */
	policy->admit(limit, &event);
	assert_int_equal(fake.budgets[0], 7);
}

static struct cuweir_memory_info ask(void *limit, int device, uint64_t left, uint64_t total)
{
	struct cuweir_memory_info info = {
		.struct_size = sizeof(info),
		.call = "cuMemGetInfo",
		.device = device,
		.free_bytes = left,
		.total_bytes = total,
	};
	policy->memory_info(limit, &info);
	return info;
}

static void check_info(struct cuweir_memory_info info, uint64_t left, uint64_t total)
{
	assert_int_equal(info.free_bytes, left);
	assert_int_equal(info.total_bytes, total);
}

/* total' = min(total, limit), free' = min(free, limit - used - reserved). */
static void test_memory_info(void **state)
{
	struct fake_host fake;
	void *limit = open_limit(&fake, "0=8G");
	check_info(ask(limit, 0, 20 * GIB, 24 * GIB), 8 * GIB, 8 * GIB);
	check_info(ask(limit, 1, 20 * GIB, 24 * GIB), 20 * GIB, 24 * GIB);
	check_info(ask(limit, 0, 3 * GIB, 4 * GIB), 3 * GIB, 4 * GIB);
	fake.budget_used = 5 * GIB;
	fake.budget_reserved = GIB;
	check_info(ask(limit, 0, 20 * GIB, 24 * GIB), 2 * GIB, 8 * GIB);
	check_info(ask(limit, 0, GIB, 24 * GIB), GIB, 8 * GIB);
	fake.budget_used = 8 * GIB; /* reserved beyond it: never below 0 */
	check_info(ask(limit, 0, 20 * GIB, 24 * GIB), 0, 8 * GIB);
	limit = open_limit(&fake, "8G,safety=1G");
	check_info(ask(limit, 0, 20 * GIB, 24 * GIB), 7 * GIB, 8 * GIB);
	fake.budget_used = 8 * GIB - 5;
	check_info(ask(limit, 0, 20 * GIB, 24 * GIB), 0, 8 * GIB);
	/* A question for the total alone has no free figure. */
	check_info(ask(limit, 0, 0, 24 * GIB), 0, 8 * GIB);
}

TEST_MAIN(
	cmocka_unit_test(test_forms),
	cmocka_unit_test(test_refusals),
	cmocka_unit_test(test_missing_device),
	cmocka_unit_test(test_driver_not_initialized),
	cmocka_unit_test(test_percent_later),
	cmocka_unit_test(test_memory_info));
