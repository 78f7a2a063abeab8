/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger under threads and forks. Meant to be run under ThreadSanitizer as well. */
#include "../../shim/handles.h"
#include "../../shim/ledger.h"
#include "../../shim/origins.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define SCALE 10
#else
#define SCALE 1
#endif

#define THREADS 8
#define ROUNDS (200000 / SCALE)
#define ADDRESSES 64

/* cmocka's asserts longjmp, which only the main thread may do. */
#define CHECK(x) ((x) ? (void)0 : abort())

static atomic_bool stop;

static void join(pthread_t *threads, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
}

static void start(pthread_t *threads, unsigned count, void *(*run)(void *))
{
	for (uintptr_t i = 0; i < count; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)i), 0);
	}
}

/* Addresses of each thread's own, 2,000 held at a time, so that segments split beside others. */
static void *disjoint(void *arg)
{
	uint64_t thread = (uintptr_t)arg;
	struct cw_record record;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t address = (thread + 1) << 36 | i << 9;

		CHECK(cw_ledger_insert(address, i, (uint32_t)thread) == 0);
		if (i >= 2000) {
			address -= 2000 << 9;
			CHECK(cw_ledger_find(address, &record) && record.size == i - 2000);
			CHECK(cw_ledger_remove(address, &record));
			CHECK(record.address == address && record.size == i - 2000);
			CHECK(record.origin == thread);
			CHECK(!cw_ledger_remove(address, &record));
		}
	}
	return NULL;
}

static void threads_apart(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	start(threads, THREADS, disjoint);
	join(threads, THREADS);
	assert_int_equal(cw_ledger_live(), THREADS * 2000);
}

/*
 * A driver that reissues an address at once: owned[i] is who may insert it. A free takes the
 * record out before it gives the address back, so an insert never meets a stale record.
 */
static atomic_int owned[ADDRESSES];

static void *reissue(void *arg)
{
	uint64_t thread = (uintptr_t)arg, x = thread + 1;
	struct cw_record record;

	for (int i = 0; i < ROUNDS; i++) {
		int nobody = 0;
		uint64_t n, address;

		x = x * 6364136223846793005u + 1442695040888963407u;
		n = x >> 40 & (ADDRESSES - 1);
		address = 0x7f00000000 + (n << 21);
		if (!atomic_compare_exchange_strong(&owned[n], &nobody, 1)) {
			continue;
		}
		CHECK(cw_ledger_insert(address, thread + 1, (uint32_t)i) == 0);
		CHECK(cw_ledger_remove(address, &record));
		CHECK(record.size == thread + 1 && record.origin == (uint32_t)i);
		atomic_store(&owned[n], 0);
	}
	return NULL;
}

static void same_addresses(void **state)
{
	pthread_t threads[THREADS];
	uint64_t before = cw_ledger_live();

	(void)state;
	start(threads, THREADS, reissue);
	join(threads, THREADS);
	assert_int_equal(cw_ledger_live(), before);
}

/* All threads free the same addresses: each record is got exactly once. */
static atomic_uint got;

static void *race_to_remove(void *arg)
{
	(void)arg;
	for (uint64_t i = 1; i <= ROUNDS / 4; i++) {
		if (cw_ledger_remove(i << 8, NULL)) {
			atomic_fetch_add(&got, 1);
		}
	}
	return NULL;
}

static void removed_once(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (uint64_t i = 1; i <= ROUNDS / 4; i++) {
		assert_int_equal(cw_ledger_insert(i << 8, 1, 1), 0);
	}
	start(threads, THREADS, race_to_remove);
	join(threads, THREADS);
	assert_int_equal(atomic_load(&got), ROUNDS / 4);
}

static bool match_any(const struct cw_record *record, void *arg)
{
	(void)record;
	(void)arg;
	return true;
}

static bool match_any_handle(const struct cw_handle *entry, void *arg)
{
	(void)entry;
	(void)arg;
	return true;
}

static void empty(void)
{
	struct cw_record_list list = {0};

	cw_ledger_detach_if(match_any, NULL, &list);
	cw_record_list_release(&list);
	cw_handles_remove_if(CW_HANDLE_STREAM, match_any_handle, NULL);
	assert_int_equal(cw_ledger_live(), 0);
}

static void *churn(void *arg)
{
	uint64_t base = ((uintptr_t)arg + 100) << 36;
	struct cw_origin origin = {.hook = (uint16_t)(uintptr_t)arg, .kind = 1};

	for (uint64_t i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
		origin.site = i % 1000;
		CHECK(cw_ledger_insert(base + (i << 8), 1, cw_origin_intern(&origin)) == 0);
		CHECK(cw_handles_put(CW_HANDLE_STREAM, base + i, i, 0) == 0);
		if (i >= 5000) {
			CHECK(cw_ledger_remove(base + ((i - 5000) << 8), NULL));
			CHECK(cw_handles_remove(CW_HANDLE_STREAM, base + i - 5000, NULL));
		}
	}
	return NULL;
}

#define STEADY 30000
static unsigned char visits[STEADY];

static bool count_visit(const struct cw_record *record, void *arg)
{
	(void)arg;
	if (record->origin == UINT32_MAX) {
		visits[record->address >> 10]++;
	}
	return true;
}

static bool match_steady(const struct cw_record *record, void *arg)
{
	(void)arg;
	return record->origin == UINT32_MAX;
}

/* Splits and removals go on beside the walk; what stays is visited once, each time. */
static void walk_while_mutating(void **state)
{
	struct cw_record_list list = {0};
	pthread_t threads[4];

	(void)state;
	atomic_store(&stop, false);
	for (uint64_t i = 0; i < STEADY; i++) {
		assert_int_equal(cw_ledger_insert(i << 10 | 1, i, UINT32_MAX), 0);
	}
	start(threads, 4, churn);
	for (unsigned round = 1; round <= 50 / SCALE; round++) {
		cw_ledger_walk(count_visit, NULL);
		for (unsigned i = 0; i < STEADY; i++) {
			assert_int_equal(visits[i], round);
		}
	}
	for (int round = 0; round < 20 / SCALE; round++) {
		assert_int_equal(cw_ledger_detach_if(match_steady, NULL, &list), STEADY);
		assert_int_equal(cw_record_list_reinsert(&list), 0);
	}
	assert_int_equal(cw_ledger_detach_if(match_steady, NULL, &list), STEADY);
	cw_record_list_release(&list);
	atomic_store(&stop, true);
	join(threads, 4);
	empty();
}

static void postfork_child(void)
{
	cw_handles_postfork_child();
	cw_ledger_postfork_child();
	cw_origins_postfork_child();
}

static bool fail_visit(const struct cw_record *record, void *arg)
{
	(void)record;
	*(int *)arg = 1;
	return false;
}

/* In the child: all books are empty, and can be used. */
static int child(void)
{
	struct cw_origin origin = {.kind = 2, .device = 3, .site = 4};
	int seen = 0;

	cw_ledger_walk(fail_visit, &seen);
	if (seen || cw_ledger_live() != 0 || cw_origin_count() != 1 ||
			cw_ledger_bytes_mapped() > 64 * 1024) {
		return 1;
	}
	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t address = UINT64_C(100) << 36 | i << 8;

		if (cw_ledger_remove(address, NULL) || cw_ledger_insert(address, i, 1) != 0 ||
				cw_handles_get(CW_HANDLE_STREAM, (UINT64_C(100) << 36) + i, NULL) ||
				cw_handles_put(CW_HANDLE_STREAM, i, i, i) != 0) {
			return 2;
		}
	}
	if (cw_origin_get(cw_origin_intern(&origin))->device != 3) {
		return 3;
	}
	return cw_ledger_live() == 20000 ? 0 : 4;
}

static void fork_while_working(void **state)
{
	pthread_t threads[4];

	(void)state;
	atomic_store(&stop, false);
	start(threads, 4, churn);
	for (int i = 0; i < 200 / SCALE; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			alarm(20);
			_exit(child());
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	atomic_store(&stop, true);
	join(threads, 4);
}

/* No handlers ran (a raw clone): the books are empty all the same, locks free, and work. */
static void wiped(void **state)
{
	struct cw_record record;
	int status, seen = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(cw_ledger_insert(0x4000, 1, 1), 0);
	pid = _Fork();
	if (pid == 0) {
		cw_ledger_walk(fail_visit, &seen);
		if (seen || cw_ledger_find(0x4000, &record) || cw_ledger_live() != 0) {
			_exit(77); /* Linux before 4.14 */
		}
		for (uint64_t i = 1; i < 100000; i++) {
			if (cw_ledger_insert(i << 12, 1, 1) != 0) {
				_exit(1);
			}
		}
		for (uint64_t i = 1; i < 100000; i++) {
			if (!cw_ledger_remove(i << 12, NULL)) {
				_exit(1);
			}
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(status == 0 || WEXITSTATUS(status) == 77);
	assert_true(cw_ledger_remove(0x4000, &record));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_apart),
		cmocka_unit_test(same_addresses),
		cmocka_unit_test(removed_once),
		cmocka_unit_test(walk_while_mutating),
		cmocka_unit_test(fork_while_working),
		cmocka_unit_test(wiped),
	};

	if (pthread_atfork(NULL, NULL, postfork_child) != 0) {
		return 1;
	}
	return cmocka_run_group_tests_name("ledger under threads", tests, NULL, NULL);
}
