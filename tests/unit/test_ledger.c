/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger by its values: against uthash as oracle, at its limits, and without memory. */
#include "../../shim/handles.h"
#include "../../shim/ledger.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <uthash.h>

#define WIDE (UINT64_C(1) << 48)

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif

struct oracle {
	uint64_t address;
	struct cw_record record;
	UT_hash_handle hh;
};

static uint64_t seed = 88172645463325252u;

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static bool match_all(const struct cw_record *record, void *arg)
{
	(void)record;
	(void)arg;
	return true;
}

static void empty(void)
{
	struct cw_record_list list = {0};

	cw_ledger_detach_if(match_all, NULL, &list);
	cw_record_list_release(&list);
	assert_int_equal(cw_ledger_live(), 0);
}

static void assert_record(const struct cw_record *is, uint64_t address, uint64_t size,
	uint32_t origin)
{
	assert_int_equal(is->address, address);
	assert_int_equal(is->size, size);
	assert_int_equal(is->origin, origin);
}

static void one_record(void **state)
{
	struct cw_record record = {1, 2, 3};

	(void)state;
	assert_int_equal(cw_ledger_live(), 0);
	assert_false(cw_ledger_find(0x1000, &record));
	assert_false(cw_ledger_remove(0x1000, &record));
	assert_record(&record, 1, 2, 3);
	assert_int_equal(cw_ledger_insert(0x1000, 77, 5), 0);
	assert_int_equal(cw_ledger_insert(0x1000, 78, 6), -EEXIST);
	assert_true(cw_ledger_find(0x1000, &record));
	assert_record(&record, 0x1000, 77, 5);
	assert_int_equal(cw_ledger_replace(0x1000, 79, 7, &record), 1);
	assert_record(&record, 0x1000, 77, 5);
	assert_int_equal(cw_ledger_replace(0x2000, 80, 8, &record), 0);
	assert_record(&record, 0x1000, 77, 5);
	assert_int_equal(cw_ledger_live(), 2);
	assert_true(cw_ledger_remove(0x1000, &record));
	assert_record(&record, 0x1000, 79, 7);
	assert_false(cw_ledger_remove(0x1000, &record));
	assert_true(cw_ledger_remove(0x2000, NULL));
	assert_int_equal(cw_ledger_live(), 0);
}

/* Either side of 2^48, for address and size, and the ends of what 64 bits hold. */
static void wide_values(void **state)
{
	static const uint64_t values[] = {0, 1, WIDE - 1, WIDE, WIDE + 1, UINT64_MAX};
	struct cw_record record;

	(void)state;
	for (size_t a = 0; a < sizeof(values) / sizeof(values[0]); a++) {
		for (size_t s = 0; s < sizeof(values) / sizeof(values[0]); s++) {
			assert_int_equal(cw_ledger_insert(values[a], values[s], UINT32_MAX), 0);
			assert_int_equal(cw_ledger_insert(values[a], 1, 1), -EEXIST);
			assert_int_equal(cw_ledger_insert(values[a], WIDE, 1), -EEXIST);
			assert_true(cw_ledger_find(values[a], &record));
			assert_record(&record, values[a], values[s], UINT32_MAX);
			assert_int_equal(cw_ledger_live(), 1);
			assert_int_equal(cw_ledger_replace(values[a], values[5 - s], 9, &record), 1);
			assert_record(&record, values[a], values[s], UINT32_MAX);
			assert_true(cw_ledger_remove(values[a], &record));
			assert_record(&record, values[a], values[5 - s], 9);
			assert_false(cw_ledger_remove(values[a], &record));
			assert_int_equal(cw_ledger_live(), 0);
		}
	}
}

static bool check_visit(const struct cw_record *record, void *arg)
{
	struct oracle **oracle = arg, *entry;

	HASH_FIND(hh, *oracle, &record->address, sizeof(uint64_t), entry);
	assert_non_null(entry);
	assert_memory_equal(&entry->record.size, &record->size, sizeof(record->size));
	assert_int_equal(entry->record.origin, record->origin);
	HASH_DEL(*oracle, entry);
	free(entry);
	return true;
}

static void step(struct oracle **oracle, uint64_t address, unsigned what)
{
	struct cw_record wanted = {address, any() >> (what & 4 ? 4 : 30), (uint32_t)any()}, got;
	struct oracle *entry;
	bool known;
	int r;

	HASH_FIND(hh, *oracle, &address, sizeof(address), entry);
	known = entry != NULL;
	if ((what & 3) == 0) {
		assert_int_equal(cw_ledger_remove(address, &got), known);
	} else if ((what & 3) == 1) {
		assert_int_equal(cw_ledger_find(address, &got), known);
	} else if ((what & 3) == 2) {
		r = cw_ledger_replace(address, wanted.size, wanted.origin, &got);
		assert_int_equal(r, known);
	} else {
		r = cw_ledger_insert(address, wanted.size, wanted.origin);
		assert_int_equal(r, known ? -EEXIST : 0);
	}
	if (known && (what & 3) != 3) {
		assert_record(&got, address, entry->record.size, entry->record.origin);
	}
	if ((what & 3) == 0 && known) {
		HASH_DEL(*oracle, entry);
		free(entry);
	} else if ((what & 3) == 2 && known) {
		entry->record = wanted;
	} else if ((what & 3) >= 2 && !known) {
		entry = malloc(sizeof(*entry));
		entry->address = address;
		entry->record = wanted;
		HASH_ADD(hh, *oracle, address, sizeof(address), entry);
	}
}

/* A few wide addresses among them; 30,000 different ones, so that all is met often. */
static void against_oracle(void **state)
{
	struct oracle *oracle = NULL;

	(void)state;
	for (int i = 0; i < 1000000; i++) {
		uint64_t n = any() % 30000;
		uint64_t address = n % 100 == 0 ? ~(n << 8) : 0x7f0000000000 + (n << 9);

		step(&oracle, address, (unsigned)(any() >> 20));
		if (i % 100000 == 0) {
			assert_int_equal(cw_ledger_live(), HASH_COUNT(oracle));
		}
	}
	assert_int_equal(cw_ledger_live(), HASH_COUNT(oracle));
	cw_ledger_walk(check_visit, &oracle);
	assert_int_equal(HASH_COUNT(oracle), 0);
	empty();
}

/*
 * Strides of drivers and pools, and powers of two: an earlier hash took 44 bytes at 2^28. What
 * is measured does not depend on a sanitizer, which only makes it slow.
 */
static void bytes_for_each(void **state)
{
	static const uint64_t strides[] = {
		256, 512, 4096, 65536, 2 << 20, 0x1f3000, 1 << 27, 1 << 28,
	};

	(void)state;
#ifdef SANITIZED
	skip();
#endif
	for (size_t s = 0; s < sizeof(strides) / sizeof(strides[0]); s++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			size_t worst = 0;

			cw_ledger_postfork_child();
			for (uint64_t i = 1; i <= 1000000; i++) {
				uint64_t address = (i * strides[s] + 0x700000000000) % WIDE;

				if (cw_ledger_insert(address, strides[s], 1) != 0) {
					_exit(2);
				}
				if (i >= 30000 && cw_ledger_bytes_mapped() * 100 / i > worst) {
					worst = cw_ledger_bytes_mapped() * 100 / i;
				}
			}
			printf("stride %#llx: at most %zu.%02zu bytes from 30,000 to 1 million\n",
				(unsigned long long)strides[s], worst / 100, worst % 100);
			fflush(stdout);
			_exit(worst > 4000);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static bool odd_origin(const struct cw_record *record, void *arg)
{
	++*(size_t *)arg;
	return record->origin & 1;
}

static bool count_odd(const struct cw_record *record, void *arg)
{
	assert_int_equal(record->origin & 1, 1);
	++*(size_t *)arg;
	return true;
}

static bool stop_at_ten(const struct cw_record *record, void *arg)
{
	(void)record;
	return ++*(size_t *)arg < 10;
}

static void detach_and_put_back(void **state)
{
	struct cw_record_list list = {0};
	struct cw_record record;
	size_t looked = 0, seen = 0;

	(void)state;
	for (uint32_t i = 1; i <= 50000; i++) {
		assert_int_equal(cw_ledger_insert(i * UINT64_C(4096), i, i), 0);
	}
	assert_int_equal(cw_ledger_insert(WIDE, 1, 1), 0);
	assert_int_equal(cw_ledger_insert(WIDE + 1, 1, 2), 0);
	assert_int_equal(cw_ledger_detach_if(odd_origin, &looked, &list), 25001);
	assert_int_equal(looked, 50002);
	assert_int_equal(list.error, 0);
	assert_int_equal(cw_ledger_live(), 25001);
	assert_false(cw_ledger_find(4096, &record));
	assert_true(cw_ledger_find(8192, &record));
	cw_record_list_visit(&list, count_odd, &seen);
	assert_int_equal(seen, 25001);
	/* One address was handed out anew meanwhile. */
	assert_int_equal(cw_ledger_insert(4096, 4, 4), 0);
	assert_int_equal(cw_record_list_reinsert(&list), 1);
	assert_int_equal(list.count, 0);
	assert_null(list.first);
	assert_int_equal(cw_ledger_live(), 50002);
	assert_true(cw_ledger_find(3 * 4096, &record));
	assert_record(&record, 3 * 4096, 3, 3);
	assert_true(cw_ledger_find(WIDE, &record));
	seen = 0;
	cw_ledger_walk(stop_at_ten, &seen);
	assert_int_equal(seen, 10);
	empty();
}

/* Nothing can be mapped: -ENOMEM, nothing changed, what is there still works, errno kept. */
static void without_memory(void **state)
{
	struct rlimit limit, none;
	uint64_t inserted = 0, refused = 0;
	struct cw_record record;
	struct cw_record_list list = {0};
	size_t detached;

	(void)state;
#ifdef SANITIZED
	skip();
#endif
	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	none = (struct rlimit){.rlim_cur = 1, .rlim_max = limit.rlim_max};
	assert_int_equal(cw_ledger_insert(1 << 12, 1, 1), 0);
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	errno = 4711;
	for (uint64_t i = 2; i <= 3000000; i++) {
		int r = cw_ledger_insert(i << 12, i, 1);

		inserted += r == 0;
		refused += r == -ENOMEM;
	}
	detached = cw_ledger_detach_if(match_all, NULL, &list);
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	assert_int_equal(errno, 4711);
	assert_int_equal(inserted + refused, 2999999);
	assert_true(refused > 0);
	assert_int_equal(cw_ledger_live(), inserted + 1);
	assert_int_equal(detached, 0);
	assert_int_equal(list.error, -ENOMEM);
	for (uint64_t i = 1; i <= 3000000; i++) {
		if (cw_ledger_remove(i << 12, &record)) {
			assert_record(&record, i << 12, i, 1);
			inserted--;
		}
	}
	assert_int_equal(inserted + 1, 0);
	assert_int_equal(cw_ledger_live(), 0);
	assert_int_equal(cw_ledger_insert(5 << 12, 1, 1), 0);
	empty();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_record),
		cmocka_unit_test(bytes_for_each),
		cmocka_unit_test(wide_values),
		cmocka_unit_test(against_oracle),
		cmocka_unit_test(detach_and_put_back),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
