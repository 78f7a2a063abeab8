/* SPDX-License-Identifier: Apache-2.0 */
/* Rows: the handler that a program sets, and figures. */
#include "serving.h"

#include <pthread.h>
#include <stdatomic.h>

#define HUGE_SIZE ((uint64_t)3 << 60)

static struct heard {
	int failures, last_count, refuse_at;
	uint64_t last_size;
	int ups, downs;
	uint64_t up_total, down_total;
	uint64_t allocated, deallocated;
	int status;
	int answers; /* on_alloc_failure: true this many times */
} heard;

static bool on_failure(void *state, uint64_t size, int retry_count,
		       const struct cuweir_event *event)
{
	struct heard *h = state;

	assert_int_equal(event->retry_count, retry_count);
	h->failures++;
	h->last_count = retry_count;
	h->last_size = size;
	return retry_count < h->answers;
}

static bool on_failure_size(void *state, uint64_t size)
{
	struct heard *h = state;

	h->last_size = size;
	return ++h->failures < 3;
}

static int on_up(void *state, uint64_t value, const struct cuweir_event *event)
{
	struct heard *h = state;

	assert_int_equal(event->total_after, value);
	h->ups++;
	h->up_total = value;
	return h->status;
}

static int on_down(void *state, uint64_t value, const struct cuweir_event *event)
{
	struct heard *h = state;

	(void)event;
	h->downs++;
	h->down_total = value;
	return h->status;
}

static void on_allocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	(void)event;
	((struct heard *)state)->allocated += size;
}

static void on_deallocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	(void)event;
	((struct heard *)state)->deallocated += size;
}

static struct cuweir_event_handler handler(void)
{
	return (struct cuweir_event_handler){
		.struct_size = sizeof(struct cuweir_event_handler),
		.on_alloc_failure = on_failure,
		.on_alloc_threshold = on_up,
		.on_dealloc_threshold = on_down,
		.on_allocated = on_allocated,
		.on_deallocated = on_deallocated,
	};
}

static void set(const struct cuweir_event_handler *table, bool debug)
{
	memset(&heard, 0, sizeof(heard));
	assert_int_equal(cuweir_set_event_handler(table, &heard, debug), CUWEIR_SUCCESS);
}

static void *take(uint64_t size)
{
	void *memory = cuweir_allocate_async(size, 0, 0, NULL);

	assert_non_null(memory);
	return memory;
}

static void give(void *memory)
{
	assert_true(cuweir_deallocate_async(memory, NULL));
}

static void figures(void **state)
{
	uint64_t peak;
	void *p, *q;

	(void)state;
	p = take(K); /* */
	assert_int_equal(total(), K);
	assert_int_equal(totals_of(CUWEIR_KIND_DEVICE).peak, K);
	give(p);
	assert_int_equal(total(), 0);
	assert_int_equal(totals_of(CUWEIR_KIND_DEVICE).peak, K);
	p = take(K); /* */
	q = take(K);
	assert_int_equal(cuweir_get_scoped_peak(0, CUWEIR_KIND_DEVICE, &peak), 0);
	assert_int_equal(peak, 2 * K);
	give(p);
	give(q);
	assert_int_equal(cuweir_get_scoped_peak(0, CUWEIR_KIND_DEVICE, &peak), 0);
	assert_int_equal(peak, 2 * K);
	assert_int_equal(cuweir_reset_scoped_peak(0, CUWEIR_KIND_DEVICE, 0), 0);
	assert_int_equal(cuweir_get_scoped_peak(0, CUWEIR_KIND_DEVICE, &peak), 0);
	assert_int_equal(peak, 0);
	assert_int_equal(totals_of(CUWEIR_KIND_DEVICE).peak, 2 * K);
	give(take(K));
	assert_int_equal(cuweir_get_scoped_peak(0, CUWEIR_KIND_DEVICE, &peak), 0);
	assert_int_equal(peak, K);
	give(take(K)); /* */
	assert_int_equal(cuweir_reset_scoped_peak(0, CUWEIR_KIND_DEVICE, 10000), 0);
	assert_int_equal(cuweir_get_scoped_peak(0, CUWEIR_KIND_DEVICE, &peak), 0);
	assert_int_equal(peak, 10000);
	assert_int_equal(totals_of(CUWEIR_KIND_DEVICE).peak, 2 * K);
	p = take(K); /* */
	assert_int_equal(cuweir_reset_scoped_peak(0, CUWEIR_KIND_DEVICE, 1024), 0);
	q = take(20480);
	assert_int_equal(cuweir_get_scoped_peak(0, CUWEIR_KIND_DEVICE, &peak), 0);
	assert_int_equal(peak, 21504);
	assert_int_equal(totals_of(CUWEIR_KIND_DEVICE).peak, 21504);
	/* below the value, and the peak stays */
	give(q);
	give(p);
	give(take(K));
	assert_int_equal(cuweir_get_scoped_peak(0, CUWEIR_KIND_DEVICE, &peak), 0);
	assert_int_equal(peak, 21504);
	assert_int_equal(cuweir_get_scoped_peak(0, 0, &peak), CUWEIR_ERROR_INVALID_VALUE);
	assert_int_equal(cuweir_get_scoped_peak(0, 1, NULL), CUWEIR_ERROR_INVALID_VALUE);
}

static void scopes(void **state) /* */
{
	struct cuweir_scope scope = { .struct_size = sizeof(scope) };
	void *before = take(5 * K);
	void *p, *q;

	(void)state;
	assert_int_equal(cuweir_pop_scope(0, 1, &scope), CUWEIR_ERROR_ILLEGAL_STATE);
	assert_int_equal(cuweir_push_scope(0, 1), 0);
	p = take(K);
	assert_int_equal(cuweir_push_scope(0, 1), 0);
	q = take(2 * K);
	give(before);
	assert_int_equal(cuweir_pop_scope(0, 1, &scope), 0);
	assert_int_equal(scope.current, -3 * K);
	assert_int_equal(scope.peak, 2 * K);
	assert_int_equal(scope.allocations, 1);
	assert_int_equal(scope.frees, 1);
	assert_int_equal(cuweir_pop_scope(0, 1, &scope), 0);
	assert_int_equal(scope.current, -2 * K);
	assert_int_equal(scope.peak, 3 * K);
	assert_int_equal(scope.allocations, 2);
	assert_int_equal(scope.frees, 1);
	give(p);
	give(q);
	for (int i = 0; i < 32; i++) {
		assert_int_equal(cuweir_push_scope(0, 1), 0);
	}
	assert_int_equal(cuweir_push_scope(0, 1), CUWEIR_ERROR_OUT_OF_MEMORY);
	for (int i = 0; i < 32; i++) {
		assert_int_equal(cuweir_pop_scope(0, 1, NULL), 0);
	}
	assert_int_equal(cuweir_pop_scope(0, 1, NULL), CUWEIR_ERROR_ILLEGAL_STATE);
}

static void setting(void **state)
{
	struct cuweir_event_handler table = handler();
	struct cuweir_event_handler small = table;

	(void)state;
	assert_int_equal(cuweir_clear_event_handler(), 0); /* */
	set(&table, false);
	assert_int_equal(cuweir_set_event_handler(&table, NULL, true), /* */
			 CUWEIR_ERROR_NOT_PERMITTED);
	give(take(K)); /* */
	assert_int_equal(heard.failures, 0);
	assert_int_equal(heard.allocated + heard.deallocated, 0);
	heard.answers = 2; /* */
	assert_null(cuweir_allocate(HUGE_SIZE, 0, 0));
	assert_int_equal(heard.failures, 3);
	assert_int_equal(heard.last_count, 2);
	assert_int_equal(heard.last_size, HUGE_SIZE);
	give(take(8192)); /* */
	assert_int_equal(cuweir_clear_event_handler(), 0);
	set(&table, true); /* */
	give(take(K));
	assert_int_equal(heard.allocated, 1024);
	assert_int_equal(heard.deallocated, 1024);
	assert_int_equal(cuweir_set_event_handler(NULL, NULL, false), 0); /* */
	set(&table, false);
	heard.answers = 1 << 30;
	assert_int_equal(cuweir_clear_event_handler(), 0); /* */
	assert_null(cuweir_allocate(HUGE_SIZE, 0, 0));
	assert_int_equal(heard.failures, 0);
	small.struct_size = 8;
	assert_int_equal(cuweir_set_event_handler(&small, NULL, false),
			 CUWEIR_ERROR_INVALID_VALUE);
}

static void debug_switched(void **state) /* R-33, as amended */
{
	struct cuweir_event_handler table = handler();

	(void)state;
	set(&table, false);
	assert_false(cuweir_get_debug());
	assert_int_equal(cuweir_set_debug(true), 0);
	assert_true(cuweir_get_debug());
	give(take(K));
	assert_int_equal(cuweir_set_debug(false), 0);
	give(take(K));
	assert_int_equal(heard.allocated, K);
	assert_int_equal(heard.deallocated, K);
	assert_int_equal(cuweir_clear_event_handler(), 0);
}

static void deprecated(void **state) /* */
{
	struct cuweir_event_handler table = {
		.struct_size = sizeof(table),
		.on_alloc_failure_size = on_failure_size,
	};

	(void)state;
	set(&table, false);
	assert_null(cuweir_allocate(HUGE_SIZE, 0, 0));
	assert_int_equal(heard.failures, 3);
	assert_int_equal(heard.last_size, HUGE_SIZE);
	assert_int_equal(cuweir_clear_event_handler(), 0);
}

static void thresholds(void **state) /* */
{
	uint64_t list[] = { 32 * K, 8 * K };
	struct cuweir_event_handler table = handler();
	void *p[5];

	(void)state;
	table.alloc_thresholds = list;
	table.alloc_threshold_count = 2;
	set(&table, false);
	list[0] = list[1] = 1;
	p[0] = take(6 * K);
	assert_int_equal(heard.ups, 0);
	p[1] = take(2 * K);
	assert_int_equal(heard.ups, 1);
	assert_int_equal(heard.up_total, 8 * K);
	p[2] = take(21 * K);
	assert_int_equal(heard.ups, 1);
	p[3] = take(8 * K);
	assert_int_equal(heard.ups, 2);
	assert_int_equal(heard.up_total, 37 * K);
	p[4] = take(8 * K);
	for (int i = 0; i < 5; i++) {
		give(p[i]);
	}
	assert_int_equal(heard.ups, 2);
	assert_int_equal(heard.downs, 0);
	assert_int_equal(cuweir_clear_event_handler(), 0);
}

static void statuses(void **state) /* */
{
	const uint64_t up[] = { 8 * K }, down[] = { 6 * K };
	struct cuweir_event_handler table = handler();
	void *p;

	(void)state;
	table.alloc_thresholds = up;
	table.alloc_threshold_count = 1;
	table.dealloc_thresholds = down;
	table.dealloc_threshold_count = 1;
	set(&table, false);
	heard.status = CUWEIR_ERROR_NOT_PERMITTED;
	p = take(6 * K);
	assert_false(cuweir_deallocate_async(p, NULL));
	assert_int_equal(heard.downs, 1);
	check_books(0);
	assert_false(cuweir_deallocate_async(p, NULL));
	assert_null(cuweir_allocate_async(12 * K, 0, 0, NULL));
	assert_int_equal(heard.ups, 1);
	check_books(0);
	assert_null(cuweir_allocate(HUGE_SIZE, 0, 0));
	assert_int_equal(heard.failures, 1);
	if (is_preloaded()) {
		CUdeviceptr own = 0;

		assert_int_equal(cuMemAlloc(&own, 12 * K), CUWEIR_ERROR_NOT_PERMITTED);
		assert_int_equal(own, 0);
	}
	assert_int_equal(cuweir_clear_event_handler(), 0);
}

/* The handler comes and goes while others allocate: nothing of it is called after its clear. */
static atomic_bool stop, alive;
static atomic_int wrong;

static bool while_alive(void *state, uint64_t size, int retry_count,
			const struct cuweir_event *event)
{
	(void)state, (void)size, (void)retry_count, (void)event;
	wrong += !atomic_load(&alive);
	return false;
}

static int up_while_alive(void *state, uint64_t value, const struct cuweir_event *event)
{
	(void)state, (void)value, (void)event;
	wrong += !atomic_load(&alive);
	return 0;
}

static void *allocate_all_the_time(void *argument)
{
	CUcontext context;

	(void)argument;
	cuDevicePrimaryCtxRetain(&context, 0);
	cuCtxSetCurrent(context);
	while (!atomic_load(&stop)) {
		cuweir_deallocate_async(cuweir_allocate_async(4 * K, 0, 0, NULL), NULL);
		cuweir_allocate(HUGE_SIZE, 0, 0);
	}
	return NULL;
}

static void exchange(void **state)
{
	uint64_t list[3] = { K, 2 * K, 3 * K };
	struct cuweir_event_handler table = {
		.struct_size = sizeof(table),
		.alloc_thresholds = list,
		.on_alloc_failure = while_alive,
		.on_alloc_threshold = up_while_alive,
	};
	pthread_t threads[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		pthread_create(&threads[i], NULL, allocate_all_the_time, NULL);
	}
	for (int i = 0; i < 2000; i++) {
		table.alloc_threshold_count = (size_t)i % 4;
		atomic_store(&alive, true);
		assert_int_equal(cuweir_set_event_handler(&table, NULL, false), 0);
		assert_int_equal(cuweir_clear_event_handler(), 0);
		atomic_store(&alive, false);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
	}
	assert_int_equal(wrong, 0);
	check_books(0);
}

static int setup(void **state)
{
	(void)state;
	start_cuda();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures),    cmocka_unit_test(scopes),
		cmocka_unit_test(setting),    cmocka_unit_test(debug_switched),
		cmocka_unit_test(deprecated), cmocka_unit_test(thresholds),
		cmocka_unit_test(statuses),   cmocka_unit_test(exchange),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
