/* SPDX-License-Identifier: Apache-2.0 */
#include "test_main.h"

#define STREAM_A ((void *)0x100)
#define STREAM_B ((void *)0x200)
#define CONTEXT_1 ((void *)0x1000)
#define CONTEXT_2 ((void *)0x2000)

static struct fake_host fake;
static struct cuweir_event event;

static void *open_pool(const char *arguments)
{
	fake_host_init(&fake);
	event = fake_event(0, 0, 0);
	event.context = CONTEXT_1;
	fake.event = &event;
	return fake_open(&fake, policy, arguments);
}

static void *take(void *pool, uint64_t size, void *stream)
{
	return policy->allocator->allocate_async(pool, size, 0, 0, stream);
}

static bool put(void *pool, void *memory, void *stream)
{
	return policy->allocator->deallocate_async(pool, memory, stream);
}

static void test_reuse_in_one_stream(void **state)
{
	void *pool = open_pool("");
	void *first = take(pool, 1000, STREAM_A);
	assert_non_null(first);
	assert_int_equal(fake.next_sizes[0], 1024);
	assert_true(put(pool, first, STREAM_A));
	assert_int_equal(fake.next_frees, 0);
	assert_ptr_equal(take(pool, 513, STREAM_A), first);
	assert_int_equal(fake.next_allocations, 1);
	/* In use, of another class, of another stream: each a new block. */
	assert_ptr_not_equal(take(pool, 1024, STREAM_A), first);
	assert_true(put(pool, first, STREAM_A));
	assert_ptr_not_equal(take(pool, 1025, STREAM_A), first);
	assert_ptr_not_equal(take(pool, 1000, STREAM_B), first);
	assert_int_equal(fake.next_allocations, 4);
	/* It is the free's stream that counts. */
	void *moved = take(pool, 1000, STREAM_A);
	assert_ptr_equal(moved, first);
	assert_true(put(pool, moved, STREAM_B));
	assert_ptr_equal(take(pool, 1000, STREAM_B), first);
}

static void test_contexts_and_per_thread_streams(void **state)
{
	void *pool = open_pool("");
	void *first = take(pool, 1000, NULL);
	put(pool, first, NULL);
	event.context = CONTEXT_2;
	assert_ptr_not_equal(take(pool, 1000, NULL), first);
	event.context = CONTEXT_1;
	event.flags = CUWEIR_EVENT_PER_THREAD;
	void *mine = take(pool, 1000, NULL);
	assert_ptr_not_equal(mine, first);
	put(pool, mine, NULL);
	event.thread++;
	assert_ptr_not_equal(take(pool, 1000, NULL), mine);
	event.thread--;
	assert_ptr_equal(take(pool, 1000, NULL), mine);
}

/* T-10, T-18, T-19, T-20. */
static void test_edges(void **state)
{
	void *pool = open_pool("");
	assert_null(take(pool, 0, STREAM_A));
	assert_true(put(pool, NULL, STREAM_A));
	assert_false(put(pool, (void *)0x999, STREAM_A));
	void *memory = take(pool, 1, STREAM_A);
	assert_true(put(pool, memory, STREAM_A));
	assert_false(put(pool, memory, STREAM_A));
	assert_null(take(pool, UINT64_MAX, STREAM_A));
	fake.next_left = 0;
	assert_null(take(pool, 4096, STREAM_A));
	fake.host.next = NULL; /* an allocator that is not live */
	assert_null(take(pool, 4096, STREAM_A));
}

static void test_failure_gives_back(void **state)
{
	void *pool = open_pool("");
	void *kept = take(pool, 1024, STREAM_A);
	void *used = take(pool, 1024, STREAM_A);
	assert_false(policy->on_alloc_failure(pool, 1, 0, &event));
	put(pool, kept, STREAM_B);
	assert_true(policy->on_alloc_failure(pool, 1, 0, &event));
	assert_int_equal(fake.next_frees, 1);
	assert_ptr_equal(fake.next_freed, kept);
	assert_ptr_equal(fake.next_freed_stream, STREAM_B);
	assert_false(policy->on_alloc_failure(pool, 1, 1, &event));
	assert_true(put(pool, used, STREAM_A));
}

static void test_limit_of_what_is_kept(void **state)
{
	void *pool = open_pool("max=1K");
	void *first = take(pool, 512, STREAM_A);
	void *second = take(pool, 1024, STREAM_A);
	put(pool, first, STREAM_A);
	assert_true(put(pool, second, STREAM_B));
	assert_int_equal(fake.next_frees, 1);
	assert_ptr_equal(fake.next_freed, second);
	assert_ptr_equal(fake.next_freed_stream, STREAM_B);
	assert_ptr_equal(take(pool, 512, STREAM_A), first);
	second = take(pool, 1024, STREAM_A);
	assert_true(put(pool, second, STREAM_A));
	assert_int_equal(fake.next_frees, 1);
}

static void test_capture(void **state)
{
	void *pool = open_pool("max=0");
	void *first = take(pool, 512, STREAM_A);
	event.flags = CUWEIR_EVENT_CAPTURING;
	assert_true(put(pool, first, STREAM_A)); /* owned here, given back later */
	assert_int_equal(fake.next_frees, 0);
	assert_ptr_not_equal(take(pool, 512, STREAM_A), first);
	event.flags = 0;
	assert_ptr_equal(take(pool, 512, STREAM_A), first);
}

static void test_context_end(void **state)
{
	void *pool = open_pool("");
	void *used = take(pool, 512, STREAM_A);
	void *kept = take(pool, 512, STREAM_A);
	put(pool, kept, STREAM_A);
	event.context = CONTEXT_2;
	void *other = take(pool, 512, STREAM_A);
	policy->on_context_ended(pool, CONTEXT_1, 0);
	assert_int_equal(fake.next_frees, 0); /* it went with the context */
	assert_false(put(pool, used, STREAM_A));
	assert_false(policy->on_alloc_failure(pool, 1, 0, &event));
	assert_true(put(pool, other, STREAM_A));
}

TEST_MAIN(cmocka_unit_test(test_reuse_in_one_stream),
	  cmocka_unit_test(test_contexts_and_per_thread_streams), cmocka_unit_test(test_edges),
	  cmocka_unit_test(test_failure_gives_back), cmocka_unit_test(test_limit_of_what_is_kept),
	  cmocka_unit_test(test_capture), cmocka_unit_test(test_context_end));
