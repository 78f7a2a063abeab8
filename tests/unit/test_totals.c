/* SPDX-License-Identifier: Apache-2.0 */
/* Totals: before and after, peaks, no underflow, and crossings seen once by many threads. */
#include "../../shim/totals.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define THREADS 8
#define ROUNDS 100000

static int clean(void **state)
{
	(void)state;
	cw_totals_postfork_child();
	return 0;
}

static void before_and_peak(void **state)
{
	(void)state;
	assert_int_equal(cw_total_add(0, 1, 100), 0);
	assert_int_equal(cw_total_add(0, 1, 50), 100);
	assert_int_equal(cw_total_sub(0, 1, 100), 150);
	assert_int_equal(cw_total_current(0, 1), 50);
	assert_int_equal(cw_total_peak(0, 1), 150);
	cw_total_reset_peak(0, 1);
	assert_int_equal(cw_total_peak(0, 1), 50);
	assert_int_equal(cw_total_add(0, 1, UINT64_C(1) << 50), 50);
	assert_int_equal(cw_total_peak(0, 1), (UINT64_C(1) << 50) + 50);
	assert_int_equal(cw_total_underflows(0, 1), 0);
}

/* Every device and kind is a cell of its own; what is out of range shares a row or NONE. */
static void cells(void **state)
{
	(void)state;
	for (int device = -1; device <= CW_TOTAL_DEVICES; device++) {
		for (unsigned kind = 0; kind < CW_TOTAL_KINDS; kind++) {
			assert_int_equal(cw_total_add(device, kind, 1), 0);
			assert_int_equal((uintptr_t)cw_total_cell(device, kind) % 64, 0);
		}
	}
	assert_int_equal(cw_total_add(1000, 1, 1), 1);
	assert_int_equal(cw_total_current(CW_TOTAL_DEVICES, 1), 2);
	assert_int_equal(cw_total_add(-7, 1, 1), 1);
	assert_int_equal(cw_total_current(CW_TOTAL_NO_DEVICE, 1), 2);
	assert_int_equal(cw_total_add(3, 99, 1), 1);
	assert_int_equal(cw_total_current(3, 0), 2);
	cw_totals_postfork_child();
	assert_int_equal(cw_total_current(5, 5), 0);
	assert_int_equal(cw_total_peak(5, 5), 0);
}

static void never_below_zero(void **state)
{
	(void)state;
	cw_total_add(2, 3, 10);
	assert_int_equal(cw_total_sub(2, 3, 30), 10);
	assert_int_equal(cw_total_current(2, 3), 0);
	assert_int_equal(cw_total_underflows(2, 3), 1);
	assert_int_equal(cw_total_sub(2, 3, 1), 0);
	assert_int_equal(cw_total_underflows(2, 3), 2);
	assert_int_equal(cw_total_add(2, 3, 7), 0);
	assert_int_equal(cw_total_current(2, 3), 7);
	assert_int_equal(cw_total_peak(2, 3), 10);
}

/* While another thread's underflow is not yet mended, the cell is negative. */
static void seen_while_mended(void **state)
{
	struct cw_total *cell = cw_total_cell(4, 1);

	(void)state;
	cell->current = -5;
	assert_int_equal(cw_total_current(4, 1), 0);
	assert_int_equal(cw_total_sub(4, 1, 3), 0);
	assert_int_equal(cell->current, -5);
	assert_int_equal(cw_total_add(4, 1, 100), 0);
	assert_int_equal(cell->current, 95);
	cw_total_mend_(&cell->current, &cell->underflows, 0, 5);
	assert_int_equal(cw_total_current(4, 1), 100);
}

static void held(void **state)
{
	(void)state;
	cw_total_hold(1, 1, 64);
	cw_total_hold(1, 1, 64);
	assert_int_equal(cw_total_held(1, 1), 128);
	assert_int_equal(cw_total_current(1, 1), 0);
	cw_total_unhold(1, 1, 100);
	assert_int_equal(cw_total_held(1, 1), 28);
	/* A block goes back before what the program had of it has become held. */
	cw_total_unhold(1, 1, 100);
	assert_int_equal(cw_total_held(1, 1), 0);
	cw_total_hold(1, 1, 72);
	assert_int_equal(cw_total_held(1, 1), 0);
	cw_total_hold(1, 1, 8);
	assert_int_equal(cw_total_held(1, 1), 8);
	assert_int_equal(cw_total_underflows(1, 1), 0);
}

#define THRESHOLD 4000
static atomic_long ups, downs;
static _Atomic uint64_t highest;

static void *add_and_sub(void *arg)
{
	uint64_t x = (uintptr_t)arg + 1;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t bytes, before;

		x = x * 6364136223846793005u + 1442695040888963407u;
		bytes = x >> 54;
		before = cw_total_add(0, 1, bytes);
		if (before < THRESHOLD && before + bytes >= THRESHOLD) {
			atomic_fetch_add(&ups, 1);
		}
		for (uint64_t seen = atomic_load(&highest); before + bytes > seen;) {
			if (atomic_compare_exchange_weak(&highest, &seen, before + bytes)) {
				break;
			}
		}
		before = cw_total_sub(0, 1, bytes);
		if (before >= THRESHOLD && before - bytes < THRESHOLD) {
			atomic_fetch_add(&downs, 1);
		}
	}
	return NULL;
}

/* D-14: at rest, as many ups as downs; the peak is the highest after that any thread saw. */
static void crossed_once(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, add_and_sub, (void *)i), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
	assert_int_equal(cw_total_current(0, 1), 0);
	assert_int_equal(atomic_load(&ups), atomic_load(&downs));
	assert_int_equal(cw_total_peak(0, 1), atomic_load(&highest));
	assert_int_equal(cw_total_underflows(0, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(before_and_peak, clean),
		cmocka_unit_test_teardown(cells, clean),
		cmocka_unit_test_teardown(never_below_zero, clean),
		cmocka_unit_test_teardown(seen_while_mended, clean),
		cmocka_unit_test_teardown(held, clean),
		cmocka_unit_test_teardown(crossed_once, clean),
	};

	return cmocka_run_group_tests_name("totals", tests, NULL, NULL);
}
