/* SPDX-License-Identifier: Apache-2.0 */
#include "test_main.h"

static int ask(void *limit, uint64_t size, uint32_t kind, int device)
{
	struct cuweir_event event = fake_event(size, 0, 0);
	event.kind = kind;
	event.device = device;
	return policy->admit(limit, &event);
}

static struct cuweir_memory_info query(void *limit, int device, uint64_t free, uint64_t total)
{
	struct cuweir_memory_info info = {
		.struct_size = sizeof(info),
		.call = "cuMemGetInfo",
		.device = device,
		.free_bytes = free,
		.total_bytes = total,
	};
	policy->memory_info(limit, &info);
	return info;
}

/* landing exactly on the limit is allowed; nothing wraps. */
static void test_without_budget(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *limit = fake_open(&fake, policy, "bytes=10K,device=1");
	struct cuweir_totals *device = &fake.totals[1][CUWEIR_KIND_DEVICE];
	fake.totals[1][CUWEIR_KIND_HOST].current = 1 << 20;
	device->current = 4096;
	device->held = 2048;
	assert_int_equal(ask(limit, 4096, CUWEIR_KIND_DEVICE, 1), CUWEIR_SUCCESS);
	assert_int_equal(ask(limit, 4097, CUWEIR_KIND_DEVICE, 1), CUWEIR_ERROR_OUT_OF_MEMORY);
	assert_int_equal(ask(limit, UINT64_MAX, CUWEIR_KIND_DEVICE, 1), CUWEIR_ERROR_OUT_OF_MEMORY);
	assert_int_equal(ask(limit, 4097, CUWEIR_KIND_DEVICE, 0), CUWEIR_SUCCESS);
	assert_int_equal(ask(limit, 4097, CUWEIR_KIND_HOST, 1), CUWEIR_SUCCESS);
	device->current = 20480; /* above the limit: pitches, imports */
	assert_int_equal(ask(limit, 1, CUWEIR_KIND_DEVICE, 1), CUWEIR_ERROR_OUT_OF_MEMORY);
}

static void test_several_kinds(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *limit = fake_open(&fake, policy, "kinds=device+managed,bytes=100");
	fake.totals[0][CUWEIR_KIND_DEVICE].current = 40;
	fake.totals[0][CUWEIR_KIND_MANAGED].current = 50;
	assert_int_equal(ask(limit, 10, CUWEIR_KIND_MANAGED, 0), CUWEIR_SUCCESS);
	assert_int_equal(ask(limit, 11, CUWEIR_KIND_DEVICE, 0), CUWEIR_ERROR_OUT_OF_MEMORY);
}

static void test_with_budget(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	fake.budget_status = CUWEIR_SUCCESS;
	void *limit = fake_open(&fake, policy, "bytes=2G,device=1,kinds=device+managed");
	assert_int_equal(fake.budget_device, 1);
	assert_int_equal(fake.budget_bytes, 2ull << 30);
	assert_int_equal(fake.budget_kinds, 6);
	/* The shim enforces it: the totals are not asked. */
	fake.totals[1][CUWEIR_KIND_DEVICE].current = 4ull << 30;
	assert_int_equal(ask(limit, 1, CUWEIR_KIND_DEVICE, 1), CUWEIR_SUCCESS);
	fake.budget_used = 1ull << 30;
	struct cuweir_memory_info info = query(limit, 1, 70ull << 30, 80ull << 30);
	assert_int_equal(info.free_bytes, 1ull << 30);
	assert_int_equal(info.total_bytes, 2ull << 30);
}

static void test_memory_info(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *limit = fake_open(&fake, policy, "bytes=1000");
	fake.totals[0][CUWEIR_KIND_DEVICE].current = 300;
	struct cuweir_memory_info info = query(limit, 0, 5000, 8000);
	assert_int_equal(info.free_bytes, 700);
	assert_int_equal(info.total_bytes, 1000);
	info = query(limit, 0, 600, 900); /* never raised */
	assert_int_equal(info.free_bytes, 600);
	assert_int_equal(info.total_bytes, 900);
	info = query(limit, 1, 5000, 8000); /* another device */
	assert_int_equal(info.free_bytes, 5000);
	assert_int_equal(info.total_bytes, 8000);
	fake.totals[0][CUWEIR_KIND_DEVICE].current = 1001;
	assert_int_equal(query(limit, 0, 5000, 8000).free_bytes, 0);
}

static void test_refusals(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	assert_string_equal(fake_open_refused(&fake, policy, ""), "no limit: want bytes=SIZE");
	assert_string_equal(fake_open_refused(&fake, policy, "device=0,bytes=8X"),
			    "argument 2, \"bytes=8X\": want bytes=SIZE, device=N or kinds=NAME");
	assert_non_null(strstr(fake_open_refused(&fake, policy, "bytes=16777217T"), "argument 1"));
	fake.budget_status = CUWEIR_ERROR_INVALID_VALUE;
	assert_string_equal(fake_open_refused(&fake, policy, "bytes=1,device=9"),
			    "the budget was not taken: want a device that exists");
}

TEST_MAIN(cmocka_unit_test(test_without_budget), cmocka_unit_test(test_several_kinds),
	  cmocka_unit_test(test_with_budget), cmocka_unit_test(test_memory_info),
	  cmocka_unit_test(test_refusals));
