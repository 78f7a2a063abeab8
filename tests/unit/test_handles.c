/* SPDX-License-Identifier: Apache-2.0 */
/* The handles' table: values, namespaces, growth, updates, and reading beside writers. */
#include "../../shim/handles.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MANY 100000u
#define CHECK(x) ((x) ? (void)0 : abort())

static bool match_any(const struct cw_handle *entry, void *arg)
{
	(void)entry;
	(void)arg;
	return true;
}

static bool count(const struct cw_handle *entry, void *arg)
{
	(void)entry;
	++*(size_t *)arg;
	return true;
}

static size_t count_of(uint8_t space)
{
	size_t n = 0;

	cw_handles_walk(space, count, &n);
	return n;
}

static int empty(void **state)
{
	(void)state;
	cw_handles_remove_if(0, match_any, NULL);
	return count_of(0) == 0 ? 0 : -1;
}

static void assert_entry(const struct cw_handle *entry, uint8_t space, uint64_t key,
	uint64_t value, uint64_t value2)
{
	assert_int_equal(entry->space, space);
	assert_int_equal(entry->key, key);
	assert_int_equal(entry->value, value);
	assert_int_equal(entry->value2, value2);
}

static void values(void **state)
{
	static const uint64_t keys[] = {0, 1, 2, UINT64_C(1) << 48, UINT64_MAX};
	struct cw_handle entry = {1, 2, 3, 4};

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		assert_false(cw_handles_get(7, keys[i], &entry));
		assert_false(cw_handles_remove(7, keys[i], &entry));
		assert_entry(&entry, 4, 1, 2, 3);
		assert_int_equal(cw_handles_put(7, keys[i], UINT64_MAX, i), 0);
		assert_int_equal(cw_handles_put(7, keys[i], 1, 1), -EEXIST);
		assert_true(cw_handles_get(7, keys[i], &entry));
		assert_entry(&entry, 7, keys[i], UINT64_MAX, i);
		assert_int_equal(cw_handles_set(7, keys[i], 5, 6), 1);
		assert_true(cw_handles_get(7, keys[i], NULL));
		assert_true(cw_handles_remove(7, keys[i], &entry));
		assert_entry(&entry, 7, keys[i], 5, 6);
		assert_int_equal(cw_handles_set(7, keys[i], 8, 9), 0);
		assert_true(cw_handles_remove(7, keys[i], NULL));
		entry = (struct cw_handle){1, 2, 3, 4};
	}
}

/* One number in every space is that many entries. */
static void spaces(void **state)
{
	struct cw_handle entry;

	(void)state;
	for (unsigned space = 1; space < 256; space++) {
		assert_int_equal(cw_handles_put((uint8_t)space, 0x7f00, space, ~space), 0);
	}
	assert_int_equal(count_of(0), 255);
	assert_int_equal(count_of(9), 1);
	for (unsigned space = 1; space < 256; space++) {
		assert_true(cw_handles_get((uint8_t)space, 0x7f00, &entry));
		assert_entry(&entry, (uint8_t)space, 0x7f00, space, ~space);
		assert_true(cw_handles_remove((uint8_t)space, 0x7f00, NULL));
		assert_false(cw_handles_get((uint8_t)space, 0x7f00, NULL));
	}
}

static bool match_even(const struct cw_handle *entry, void *arg)
{
	(void)arg;
	return entry->value % 2 == 0;
}

static void many(void **state)
{
	struct cw_handle entry;

	(void)state;
	for (uint64_t i = 0; i < MANY; i++) {
		assert_int_equal(cw_handles_put(CW_HANDLE_VIRTUAL, i << 4, i, i + 1), 0);
	}
	assert_true(cw_handles_bytes_mapped() / MANY <= 80);
	assert_int_equal(count_of(CW_HANDLE_VIRTUAL), MANY);
	assert_int_equal(count_of(CW_HANDLE_ARRAY), 0);
	for (uint64_t i = 0; i < MANY; i++) {
		assert_true(cw_handles_get(CW_HANDLE_VIRTUAL, i << 4, &entry));
		assert_entry(&entry, CW_HANDLE_VIRTUAL, i << 4, i, i + 1);
	}
	assert_int_equal(cw_handles_remove_if(CW_HANDLE_VIRTUAL, match_even, NULL), MANY / 2);
	assert_false(cw_handles_get(CW_HANDLE_VIRTUAL, 4 << 4, NULL));
	assert_true(cw_handles_get(CW_HANDLE_VIRTUAL, 5 << 4, NULL));
	assert_int_equal(cw_handles_remove_if(CW_HANDLE_VIRTUAL, match_any, NULL), MANY / 2);
}

static enum cw_handle_verdict add(struct cw_handle *entry, void *arg)
{
	entry->value += *(uint64_t *)arg;
	entry->value2++;
	return entry->value == 0 ? CW_HANDLE_REMOVE : CW_HANDLE_KEEP;
}

static void updates(void **state)
{
	uint64_t by = 2, back = (uint64_t)-7;
	struct cw_handle entry = {0};

	(void)state;
	assert_false(cw_handles_update(CW_HANDLE_IMPORT, 3, add, &by, &entry));
	assert_int_equal(cw_handles_put(CW_HANDLE_IMPORT, 3, 5, 0), 0);
	assert_true(cw_handles_update(CW_HANDLE_IMPORT, 3, add, &by, &entry));
	assert_entry(&entry, CW_HANDLE_IMPORT, 3, 7, 1);
	assert_true(cw_handles_get(CW_HANDLE_IMPORT, 3, &entry));
	assert_entry(&entry, CW_HANDLE_IMPORT, 3, 7, 1);
	assert_true(cw_handles_update(CW_HANDLE_IMPORT, 3, add, &back, &entry));
	assert_entry(&entry, CW_HANDLE_IMPORT, 3, 0, 2);
	assert_false(cw_handles_get(CW_HANDLE_IMPORT, 3, NULL));
}

#define THREADS 4
#define ROUNDS 30000u
static atomic_uint done;

/* Both values of an entry always say the same, and steady entries are always there. */
static void *read_on(void *arg)
{
	struct cw_handle entry;

	(void)arg;
	while (atomic_load(&done) < THREADS / 2) {
		for (uint64_t key = 0; key < 200; key++) {
			CHECK(cw_handles_get(CW_HANDLE_STREAM, key, &entry));
			CHECK(entry.value == entry.value2 && entry.value % 1000 == key);
			if (cw_handles_get(CW_HANDLE_EVENT, key * 97, &entry)) {
				CHECK(entry.value == ~entry.value2 && entry.key == key * 97);
			}
		}
	}
	return NULL;
}

static void *write_on(void *arg)
{
	uint64_t me = (uintptr_t)arg, by = 1;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t key = i * THREADS + me;

		CHECK(cw_handles_put(CW_HANDLE_EVENT, key, i, ~i) == 0);
		CHECK(cw_handles_set(CW_HANDLE_STREAM, i % 200, i * 1000 + i % 200,
			i * 1000 + i % 200) == 1);
		CHECK(cw_handles_update(CW_HANDLE_CONTEXT, 1, add, &by, NULL));
		if (i >= 1000) {
			CHECK(cw_handles_remove(CW_HANDLE_EVENT, key - UINT64_C(1000) * THREADS, NULL));
		}
	}
	atomic_fetch_add(&done, 1);
	return NULL;
}

static void readers_beside_writers(void **state)
{
	pthread_t threads[THREADS];
	struct cw_handle entry;

	(void)state;
	for (uint64_t key = 0; key < 200; key++) {
		assert_int_equal(cw_handles_put(CW_HANDLE_STREAM, key, key, key), 0);
	}
	assert_int_equal(cw_handles_put(CW_HANDLE_CONTEXT, 1, 0, 0), 0);
	for (uintptr_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? read_on : write_on,
			(void *)i), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
	assert_true(cw_handles_get(CW_HANDLE_CONTEXT, 1, &entry));
	assert_entry(&entry, CW_HANDLE_CONTEXT, 1, ROUNDS * THREADS / 2, ROUNDS * THREADS / 2);
	assert_int_equal(count_of(CW_HANDLE_EVENT), 1000 * THREADS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(values, empty),
		cmocka_unit_test_teardown(spaces, empty),
		cmocka_unit_test_teardown(many, empty),
		cmocka_unit_test_teardown(updates, empty),
		cmocka_unit_test_teardown(readers_beside_writers, empty),
	};

	return cmocka_run_group_tests_name("handles", tests, NULL, NULL);
}
