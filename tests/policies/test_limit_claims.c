/* SPDX-License-Identifier: Apache-2.0 */
/* limit:shared= in one process: what is claimed, settled and given back. */
#include "test_main.h"

#include "test_limit_start.h"

static int uuid(unsigned char identity[16], int device)
{
	memset(identity, device + 1, 16);
	return CUWEIR_SUCCESS;
}

static void *find_driver(const char *symbol)
{
	return strcmp(symbol, "cuDeviceGetUuid_v2") == 0 ? (void *)uuid : NULL;
}

static void *open_limit(struct fake_host *fake, const char *arguments)
{
	fake_host_init(fake);
	fake->find_driver = find_driver;
	fake->budget_status = CUWEIR_SUCCESS;
	return fake_open(fake, policy, arguments);
}

static int attempt(void *limit, uint64_t size, uint32_t flags)
{
	struct cuweir_event event = fake_event(size, 0, 0);
	event.flags = flags;
	return policy->admit(limit, &event);
}

static void end(void *limit, uint64_t size, uint64_t charged, bool success)
{
	struct cuweir_event event = fake_event(size, 0, 0);
	event.charged = charged;
	if (success) {
		policy->on_allocated(limit, size, &event);
	} else {
		event.status = CUWEIR_ERROR_OUT_OF_MEMORY;
		policy->on_alloc_failed(limit, &event);
	}
}

static void give_back(void *limit, uint64_t charged)
{
	struct cuweir_event event = fake_free_event(charged, (void *)0x10, 0);
	policy->on_deallocated(limit, charged, &event);
}

static uint64_t used_of(void *limit, int device)
{
	struct cuweir_memory_info info = {
		.struct_size = sizeof(info),
		.call = "cuMemGetInfo",
		.device = device,
		.free_bytes = 5000,
		.total_bytes = 5000,
	};
	policy->memory_info(limit, &info);
	return 1000 - info.free_bytes;
}

static uint64_t used(void *limit)
{
	return used_of(limit, 0);
}

static void test_claims(void **state)
{
	struct fake_host fake;
	void *limit = open_limit(&fake, "1000,shared=claims");
	assert_int_equal(attempt(limit, 600, 0), 0);
	assert_int_equal(used(limit), 600); /* before the driver is asked */
	end(limit, 600, 600, true);
	assert_int_equal(attempt(limit, 401, 0), CUWEIR_ERROR_OUT_OF_MEMORY);
	end(limit, 401, 401, false);
	assert_int_equal(used(limit), 600);
	assert_int_equal(attempt(limit, 400, 0), 0); /* inclusive */
	end(limit, 400, 400, false); /* the driver has none */
	assert_int_equal(used(limit), 600);
	/* An attempt that was tried again from outside is claimed once. */
	assert_int_equal(attempt(limit, 400, 0), 0);
	assert_int_equal(attempt(limit, 400, 0), 0);
	end(limit, 400, 400, true);
	assert_int_equal(used(limit), 1000);
	give_back(limit, 400);
	/* Asked after a failure, it has given its claim back, and says no. */
	struct cuweir_event event = fake_event(300, 0, 0);
	assert_int_equal(policy->admit(limit, &event), 0);
	assert_false(policy->on_alloc_failure(limit, 300, 0, &event));
	assert_int_equal(used(limit), 600);
	/* Within a callback during an attempt: both are kept apart. */
	assert_int_equal(attempt(limit, 100, 0), 0);
	assert_int_equal(attempt(limit, 50, CUWEIR_EVENT_NESTED), 0);
	assert_int_equal(used(limit), 750);
	event = fake_event(50, 0, 0);
	event.flags = CUWEIR_EVENT_NESTED;
	policy->on_alloc_failed(limit, &event);
	assert_int_equal(used(limit), 700);
	end(limit, 100, 160, true); /* pitched: larger than was asked for */
	assert_int_equal(used(limit), 760);
	give_back(limit, 160);
	give_back(limit, 600);
	give_back(limit, 5000); /* P-30: never below 0 */
	assert_int_equal(used(limit), 0);
	/* Other kinds, and devices without a limit. */
	event = fake_event(5000, 0, 0);
	event.kind = CUWEIR_KIND_HOST;
	assert_int_equal(policy->admit(limit, &event), 0);
	assert_int_equal(attempt(limit, UINT64_MAX, 0), CUWEIR_ERROR_OUT_OF_MEMORY); /* */
}

/* The same name is the same sum, by the identity of the device; another name another one. */
static void test_names_and_devices(void **state)
{
	struct fake_host fake, other;
	void *limit = open_limit(&fake, "1000,shared=same");
	void *again = open_limit(&other, "1000,shared=same");
	void *apart = open_limit(&other, "1000,shared=apart");
	attempt(limit, 700, 0);
	end(limit, 700, 700, true);
	assert_int_equal(used(again), 700);
	assert_int_equal(used(apart), 0);
	assert_int_equal(used_of(again, 1), 0);
	give_back(again, 700);
	assert_int_equal(used(limit), 0);
}

/* Two in one chain: each has its own claims, and its own sum. */
static void test_two_in_a_chain(void **state)
{
	struct fake_host fake, other;
	void *outer = open_limit(&fake, "1000,shared=outer");
	void *inner = open_limit(&other, "1000,shared=inner");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(attempt(outer, 300, 0), 0);
		assert_int_equal(attempt(inner, 300, 0), 0);
		end(inner, 300, 300, true);
		end(outer, 300, 300, true);
	}
	assert_int_equal(used(outer), 900);
	assert_int_equal(used(inner), 900);
	/* Refused by the inner one: the outer one's claim is given back when that is told. */
	assert_int_equal(attempt(outer, 100, 0), 0);
	assert_int_equal(attempt(inner, 101, 0), CUWEIR_ERROR_OUT_OF_MEMORY);
	end(inner, 101, 101, false);
	end(outer, 100, 100, false);
	for (int i = 0; i < 3; i++) {
		give_back(inner, 300);
		give_back(outer, 300);
	}
	assert_int_equal(used(outer), 0);
	assert_int_equal(used(inner), 0);
}

/* Beside a lower limit, which get_budget tells: what others have is not taken from that one. */
static void test_beside_a_lower_one(void **state)
{
	struct fake_host fake;
	void *limit = open_limit(&fake, "1000,shared=lower");
	attempt(limit, 700, 0);
	end(limit, 700, 700, true);
	fake.budgets[0] = 500;
	fake.budget_used = 100;
	assert_int_equal(1000 - used(limit), 300);
	fake.budget_used = 300;
	assert_int_equal(1000 - used(limit), 200);
	give_back(limit, 700);
}

/* What a pool behind it keeps is not heard, which is told once; what one before it takes is. */
static void test_beside_a_pool(void **state)
{
	struct fake_host fake;
	void *limit = open_limit(&fake, "1000,shared=pool");
	attempt(limit, 300, 0);
	end(limit, 300, 300, true);
	give_back(limit, 300);
	assert_int_equal(fake.line_count, 0);
	fake.totals[0][CUWEIR_KIND_DEVICE].held = 320;
	attempt(limit, 300, 0);
	end(limit, 300, 300, true);
	give_back(limit, 300);
	assert_int_equal(fake.line_count, 1);
	assert_non_null(strstr(fake.lines[0], "shared=pool stands before a policy that keeps "
					      "memory"));
	limit = open_limit(&fake, "1000,shared=pool");
	attempt(limit, 320, CUWEIR_EVENT_HELD);
	end(limit, 320, 320, true);
	fake.totals[0][CUWEIR_KIND_DEVICE].held = 320;
	attempt(limit, 300, 0); /* of a kind that the pool does not serve */
	end(limit, 300, 300, true);
	assert_int_equal(used(limit), 620);
	give_back(limit, 300);
	give_back(limit, 320);
	assert_int_equal(fake.line_count, 0);
}

static int tear_down(void **state)
{
	static const char *const names[] = { "claims", "same",	"apart", "outer",
					     "inner",  "lower", "pool" };
	return remove_files(names, sizeof(names) / sizeof(names[0]));
}

TEST_MAIN_WITH(NULL, tear_down,
	cmocka_unit_test(test_claims),
	cmocka_unit_test(test_names_and_devices),
	cmocka_unit_test(test_two_in_a_chain),
	cmocka_unit_test(test_beside_a_lower_one),
	cmocka_unit_test(test_beside_a_pool));
