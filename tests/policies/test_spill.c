/* SPDX-License-Identifier: Apache-2.0 */
/* The policy `spill` by value: what is served from where, and given back when. */
#include "test_main.h"

#define GIB (1ull << 30)
#define MANAGED_BASE 0x600000000000ull

static struct {
	int status; /* of cuMemAllocManaged */
	unsigned int taken;
	unsigned int freed;
	uint64_t last_freed;
	unsigned int context_syncs;
	void *stream_synced;
	int free_status;
} driver;

static int take(uint64_t *pointer, size_t bytes, unsigned int flags)
{
	assert_int_equal(flags, 1); /* attached globally */
	if (driver.status == CUWEIR_SUCCESS) {
		*pointer = MANAGED_BASE + driver.taken++ * GIB;
	}
	return driver.status;
}

static int give(uint64_t pointer)
{
	if (driver.free_status == CUWEIR_SUCCESS) {
		driver.freed++;
		driver.last_freed = pointer;
	}
	return driver.free_status;
}

static int synchronize(void)
{
	driver.context_syncs++;
	return CUWEIR_SUCCESS;
}

static int synchronize_stream(void *stream)
{
	assert_int_equal(driver.freed, 0); /* before the memory goes */
	driver.stream_synced = stream;
	return CUWEIR_SUCCESS;
}

static void *find_driver(const char *symbol)
{
	static const struct {
		const char *symbol;
		void *function;
	} functions[] = {
		{ "cuMemAllocManaged", (void *)take },
		{ "cuMemFree_v2", (void *)give },
		{ "cuCtxSynchronize", (void *)synchronize },
		{ "cuStreamSynchronize", (void *)synchronize_stream },
	};
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(symbol, functions[i].symbol) == 0) {
			return functions[i].function;
		}
	}
	return NULL;
}

static void *open_spill(struct fake_host *fake, const char *arguments)
{
	fake_host_init(fake);
	memset(&driver, 0, sizeof(driver));
	fake->find_driver = find_driver;
	return fake_open(fake, policy, arguments);
}

/* As the shim does: an attempt, the question, another attempt. */
static void *allocate(struct fake_host *fake, void *spill, uint64_t size,
		      struct cuweir_event *event)
{
	*event = fake_event(size, 0, 0);
	event->context = (void *)0xc0;
	fake->event = event;
	assert_int_equal(policy->admit(spill, event), CUWEIR_SUCCESS);
	for (int count = 0;; count++) {
		void *memory = policy->allocator->allocate(spill, size, 0, 0);
		if (memory != NULL || !policy->on_alloc_failure(spill, size, count, event)) {
			return memory;
		}
		assert_in_range(count, 0, 1);
	}
}

static void test_spills_when_full(void **state)
{
	struct fake_host fake;
	struct cuweir_event event;
	void *spill = open_spill(&fake, "");
	fake.next_left = 100;
	void *first = allocate(&fake, spill, 100, &event);
	assert_int_equal(driver.taken, 0);
	assert_int_equal(fake.line_count, 0);
	void *second = allocate(&fake, spill, 50, &event);
	void *third = allocate(&fake, spill, 60, &event);
	assert_int_equal((uintptr_t)second, MANAGED_BASE);
	assert_int_equal(driver.taken, 2);
	assert_int_equal(fake.line_count, 1); /* told once */
	assert_non_null(strstr(fake.lines[0], "50 bytes of cudaMalloc"));
	/* Each goes back to where it came from. */
	assert_true(policy->allocator->deallocate(spill, second));
	assert_int_equal(driver.last_freed, MANAGED_BASE);
	assert_int_equal(fake.next_frees, 0);
	assert_true(policy->allocator->deallocate(spill, first));
	assert_int_equal(fake.next_frees, 1);
	/* Room again: the device's. */
	allocate(&fake, spill, 90, &event);
	assert_int_equal(driver.taken, 2);
	driver.freed = 0;
	assert_true(policy->allocator->deallocate_async(spill, third, (void *)0x55));
	assert_ptr_equal(driver.stream_synced, (void *)0x55);
	assert_int_equal(driver.freed, 1);
	assert_false(policy->allocator->deallocate(spill, third)); /* nobody's any more */
	assert_true(policy->allocator->deallocate(spill, NULL));
}

static void test_default_streams(void **state)
{
	struct fake_host fake;
	struct cuweir_event event;
	void *spill = open_spill(&fake, "tell=0");
	fake.next_left = 0;
	void *memory = allocate(&fake, spill, 10, &event);
	void *other = allocate(&fake, spill, 10, &event);
	assert_int_equal(fake.line_count, 0);
	policy->allocator->deallocate_async(spill, memory, NULL);
	assert_ptr_equal(driver.stream_synced, (void *)1);
	driver.freed = 0;
	event.flags = CUWEIR_EVENT_PER_THREAD;
	policy->allocator->deallocate_async(spill, other, NULL);
	assert_ptr_equal(driver.stream_synced, (void *)2);
}

/* Bounds, other kinds of failure, and attempts that never come. */
static void test_does_not_spill(void **state)
{
	struct fake_host fake;
	struct cuweir_event event;
	void *spill = open_spill(&fake, "max=100,min=20");
	fake.next_left = 0;
	assert_null(allocate(&fake, spill, 19, &event));
	assert_null(allocate(&fake, spill, 101, &event));
	assert_int_equal(driver.taken, 0);
	assert_non_null(allocate(&fake, spill, 60, &event));
	assert_null(allocate(&fake, spill, 41, &event));
	driver.status = CUWEIR_ERROR_OUT_OF_MEMORY;
	assert_null(allocate(&fake, spill, 40, &event));
	driver.status = CUWEIR_SUCCESS;
	void *last = allocate(&fake, spill, 40, &event);
	assert_non_null(last);
	/* The driver refuses the free: the block stays in the books, and can be freed later. */
	driver.free_status = 700;
	assert_false(policy->allocator->deallocate(spill, last));
	assert_null(allocate(&fake, spill, 20, &event));
	driver.free_status = 0;
	assert_true(policy->allocator->deallocate(spill, last));
	/* A question whose attempt did not come does not spill the next allocation. */
	event = fake_event(30, 0, 0);
	assert_true(policy->on_alloc_failure(spill, 30, 0, &event));
	unsigned int taken = driver.taken;
	fake.next_left = 30;
	assert_non_null(allocate(&fake, spill, 30, &event));
	assert_int_equal(driver.taken, taken);
	event.kind = CUWEIR_KIND_MANAGED;
	assert_false(policy->on_alloc_failure(spill, 30, 0, &event));
	event.kind = CUWEIR_KIND_DEVICE;
	event.flags = CUWEIR_EVENT_CAPTURING;
	assert_false(policy->on_alloc_failure(spill, 30, 0, &event));
}

/* While a capture is open nothing is called; later the context is waited for first. */
static void test_capture(void **state)
{
	struct fake_host fake;
	struct cuweir_event event;
	void *spill = open_spill(&fake, "");
	fake.next_left = 0;
	void *memory = allocate(&fake, spill, 10, &event);
	event.flags = CUWEIR_EVENT_CAPTURING;
	assert_true(policy->allocator->deallocate_async(spill, memory, (void *)5));
	assert_int_equal(driver.freed, 0);
	assert_null(driver.stream_synced);
	assert_false(policy->allocator->deallocate(spill, memory)); /* it is free for the program */
	event.flags = 0;
	event.context = (void *)0xc1; /* another one */
	assert_false(policy->allocator->deallocate(spill, (void *)0x123));
	assert_int_equal(driver.freed, 0);
	event.context = (void *)0xc0;
	assert_false(policy->allocator->deallocate(spill, (void *)0x123));
	assert_int_equal(driver.context_syncs, 1);
	assert_int_equal(driver.freed, 1);
}

static void test_context_end(void **state)
{
	struct fake_host fake;
	struct cuweir_event event;
	void *spill = open_spill(&fake, "max=10");
	fake.next_left = 0;
	void *memory = allocate(&fake, spill, 10, &event);
	policy->on_context_ended(spill, (void *)0xc1, 0);
	assert_null(allocate(&fake, spill, 10, &event));
	policy->on_context_ended(spill, (void *)0xc0, 0);
	assert_int_equal(driver.freed, 0); /* the context took it */
	assert_false(policy->allocator->deallocate(spill, memory));
	assert_non_null(allocate(&fake, spill, 10, &event));
}

static void test_refusals(void **state)
{
	static const char want[] = "want max=SIZE, min=SIZE, or tell=0 or tell=1";
	static const char *const wrong[] = { "max=x", "min", "tell=2", "8G" };
	struct fake_host fake;
	fake_host_init(&fake);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_non_null(strstr(fake_open_refused(&fake, policy, wrong[i]), want));
	}
}

TEST_MAIN(cmocka_unit_test(test_spills_when_full), cmocka_unit_test(test_default_streams),
	  cmocka_unit_test(test_does_not_spill), cmocka_unit_test(test_capture),
	  cmocka_unit_test(test_context_end), cmocka_unit_test(test_refusals));
