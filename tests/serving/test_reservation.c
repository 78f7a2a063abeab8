/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as amended: reservations under a budget of 8192 bytes; D-05, D-09. */
#include "serving.h"

#include <pthread.h>

enum { LIMIT = 8192 };

static uint64_t reserved_bytes(void)
{
	uint64_t reserved = 77;

	assert_int_equal(cuweir_get_budget(0, NULL, NULL, &reserved), 0);
	return reserved;
}

static uint64_t used_bytes(void)
{
	uint64_t used = 77;

	assert_int_equal(cuweir_get_budget(0, NULL, &used, NULL), 0);
	return used;
}

static struct cuweir_reservation *new_reservation(void)
{
	struct cuweir_reservation *r = NULL;

	assert_int_equal(cuweir_reservation_open(0, &r), 0);
	assert_non_null(r);
	return r;
}

static void adds(void **state)
{
	struct cuweir_reservation *r = new_reservation();

	(void)state;
	/* */
	assert_int_equal(cuweir_reservation_get_size(r), 0);
	assert_false(cuweir_reservation_is_used(r));
	assert_false(cuweir_reservation_is_closed(r));
	assert_int_equal(reserved_bytes(), 0);
	/* exact */
	assert_int_equal(cuweir_reservation_add(r, 64), 0);
	assert_int_equal(reserved_bytes(), 64);
	assert_int_equal(cuweir_reservation_add(r, 33), 0);
	assert_int_equal(cuweir_reservation_add(r, 0), 0);
	assert_int_equal(cuweir_reservation_reserve(r, 3), 0);
	assert_int_equal(cuweir_reservation_get_size(r), 100);
	assert_int_equal(reserved_bytes(), 100);
	/* */
	assert_int_equal(cuweir_reservation_add(r, UINT64_MAX), CUWEIR_ERROR_INVALID_VALUE);
	assert_int_equal(cuweir_reservation_add(r, LIMIT - 99), CUWEIR_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuweir_reservation_get_size(r), 100);
	assert_int_equal(reserved_bytes(), 100);
	assert_int_equal(cuweir_reservation_add(r, LIMIT - 100), 0);
	assert_int_equal(reserved_bytes(), LIMIT);
	/* */
	assert_int_equal(cuweir_reservation_close(r), 0);
	assert_int_equal(reserved_bytes(), 0);
	assert_int_equal(cuweir_reservation_close(r), 0);
	assert_true(cuweir_reservation_is_closed(r));
	assert_int_equal(cuweir_reservation_add(r, 1), CUWEIR_ERROR_ILLEGAL_STATE);
	assert_int_equal(cuweir_reservation_reserve(r, 1), CUWEIR_ERROR_ILLEGAL_STATE);
	assert_int_equal(cuweir_reservation_get_size(r), LIMIT);
	void *memory = r;
	assert_int_equal(cuweir_reservation_allocate_buffer(r, NULL, &memory),
			 CUWEIR_ERROR_ILLEGAL_STATE);
	assert_null(memory);
	cuweir_reservation_destroy(r);
	cuweir_reservation_destroy(NULL);
	check_books(0);
}

static void buffers(void **state)
{
	struct cuweir_reservation *r = new_reservation();
	void *memory = NULL, *again = &memory;

	(void)state;
	/* */
	assert_int_equal(cuweir_reservation_add(r, 32), 0);
	assert_int_equal(cuweir_reservation_add(r, 64), 0);
	assert_int_equal(cuweir_reservation_allocate_buffer(r, NULL, &memory), 0);
	assert_non_null(memory);
	assert_true(cuweir_reservation_is_used(r));
	assert_int_equal(reserved_bytes(), 0);
	assert_int_equal(used_bytes(), 96);
	check_books(96);
	assert_int_equal(cuweir_reservation_allocate_buffer(r, NULL, &again),
			 CUWEIR_ERROR_ILLEGAL_STATE);
	assert_null(again);
	assert_int_equal(cuweir_reservation_add(r, 1), CUWEIR_ERROR_ILLEGAL_STATE);
	assert_int_equal(cuweir_reservation_get_size(r), 96);
	/* */
	assert_int_equal(cuweir_reservation_close(r), 0);
	assert_int_equal(used_bytes(), 96);
	cuweir_reservation_destroy(r);
	assert_true(cuweir_deallocate_async(memory, NULL));
	assert_int_equal(used_bytes(), 0);
	check_books(0);
	/* */
	r = new_reservation();
	assert_int_equal(cuweir_reservation_add(r, LIMIT), 0);
	assert_int_equal(cuweir_reservation_allocate_buffer(r, NULL, &memory), 0);
	assert_true(cuweir_deallocate(memory));
	assert_int_equal(cuweir_reservation_close(r), 0);
	assert_int_equal(used_bytes() + reserved_bytes(), 0);
	cuweir_reservation_destroy(r);
	/* */
	r = new_reservation();
	memory = r;
	assert_int_equal(cuweir_reservation_allocate_buffer(r, NULL, &memory), 0);
	assert_null(memory);
	assert_true(cuweir_reservation_is_used(r));
	cuweir_reservation_destroy(r);
}

static void others_are_kept_out(void **state)
{
	struct cuweir_reservation *r = new_reservation(), *s = new_reservation();
	void *memory;

	(void)state;
	/* and allocations count against the same budget */
	assert_int_equal(cuweir_reservation_add(r, LIMIT - 1000), 0);
	assert_int_equal(cuweir_reservation_add(s, 1001), CUWEIR_ERROR_OUT_OF_MEMORY);
	assert_null(cuweir_allocate(1001, 0, 0));
	memory = cuweir_allocate(1000, 0, 0);
	assert_non_null(memory);
	assert_int_equal(cuweir_reservation_add(s, 1), CUWEIR_ERROR_OUT_OF_MEMORY);
	assert_true(cuweir_deallocate(memory));
	assert_int_equal(cuweir_reservation_add(s, 1000), 0);
	cuweir_reservation_destroy(s);
	cuweir_reservation_destroy(r);
	assert_int_equal(used_bytes() + reserved_bytes(), 0);
}

static int asked;

static bool ask(void *state, uint64_t size, int retry_count, const struct cuweir_event *event)
{
	uint64_t reserved = 0;

	(void)state, (void)event;
	asked++;
	/* D-05: the claim is kept until the final outcome. */
	assert_int_equal(cuweir_get_budget(0, NULL, NULL, &reserved), 0);
	assert_int_equal(reserved, size);
	return retry_count < 2;
}

static int veto(void *state, uint64_t value, const struct cuweir_event *event)
{
	(void)state, (void)value, (void)event;
	return CUWEIR_ERROR_NOT_PERMITTED;
}

static void failures(void **state)
{
	const uint64_t list[] = { 1 };
	struct cuweir_event_handler table = {
		.struct_size = sizeof(table), .on_alloc_failure = ask,
	};
	struct cuweir_reservation *r = new_reservation();
	void *memory = r;

	(void)state;
	/* no question about a reservation, but about the buffer */
	assert_int_equal(cuweir_set_budget(0, 0, UINT64_MAX - 1), 0);
	assert_int_equal(cuweir_set_event_handler(&table, NULL, false), 0);
	assert_int_equal(cuweir_reservation_add(r, UINT64_MAX), CUWEIR_ERROR_OUT_OF_MEMORY);
	assert_int_equal(asked, 0);
	assert_int_equal(cuweir_reservation_add(r, (uint64_t)3 << 60), 0);
	assert_int_equal(cuweir_reservation_allocate_buffer(r, NULL, &memory),
			 CUWEIR_ERROR_OUT_OF_MEMORY);
	assert_int_equal(asked, 3);
	assert_null(memory);
	assert_true(cuweir_reservation_is_used(r));
	assert_int_equal(used_bytes() + reserved_bytes(), 0);
	assert_int_equal(cuweir_reservation_close(r), 0);
	assert_int_equal(used_bytes() + reserved_bytes(), 0);
	cuweir_reservation_destroy(r);
	assert_int_equal(cuweir_clear_event_handler(), 0);
	/* A veto gives all back, once. */
	table.alloc_thresholds = list;
	table.alloc_threshold_count = 1;
	table.on_alloc_threshold = veto;
	assert_int_equal(cuweir_set_event_handler(&table, NULL, false), 0);
	assert_int_equal(cuweir_set_budget(0, 0, LIMIT), 0);
	r = new_reservation();
	assert_int_equal(cuweir_reservation_add(r, 100), 0);
	assert_int_equal(cuweir_reservation_allocate_buffer(r, NULL, &memory),
			 CUWEIR_ERROR_NOT_PERMITTED);
	assert_int_equal(used_bytes() + reserved_bytes(), 0);
	cuweir_reservation_destroy(r);
	assert_int_equal(used_bytes() + reserved_bytes(), 0);
	assert_int_equal(cuweir_clear_event_handler(), 0);
	check_books(0);
}

static void without_budget(void **state)
{
	unsigned long long calls;
	struct cuweir_reservation *r;

	(void)state;
	assert_int_equal(cuweir_set_budget(0, 0, UINT64_MAX), 0);
	assert_int_equal(cuweir_get_budget(0, NULL, NULL, NULL), CUWEIR_ERROR_NOT_FOUND);
	calls = cuweir_sim_calls(NULL);
	r = new_reservation();
	assert_int_equal(cuweir_reservation_add(r, (uint64_t)1 << 60), 0);
	assert_int_equal(cuweir_reservation_close(r), 0);
	cuweir_reservation_destroy(r);
	assert_int_equal(cuweir_sim_calls(NULL), calls);
	/* Beside what is in use, too: there is nothing that it could be above. */
	void *memory = cuweir_allocate(1000, 0, 0);
	assert_non_null(memory);
	r = new_reservation();
	assert_int_equal(cuweir_reservation_add(r, UINT64_MAX - 10), 0);
	cuweir_reservation_destroy(r);
	assert_true(cuweir_deallocate(memory));
	assert_int_equal(cuweir_set_budget(0, 0, LIMIT), 0);
	assert_int_equal(used_bytes() + reserved_bytes(), 0);
}

static void arguments(void **state)
{
	struct cuweir_reservation *r = NULL;
	void *memory = &r;

	(void)state;
	assert_int_equal(cuweir_reservation_open(0, NULL), CUWEIR_ERROR_INVALID_VALUE);
	assert_int_equal(cuweir_reservation_open(-1, &r), CUWEIR_ERROR_INVALID_VALUE);
	assert_int_equal(cuweir_reservation_add(NULL, 1), CUWEIR_ERROR_INVALID_VALUE);
	assert_int_equal(cuweir_reservation_allocate_buffer(NULL, NULL, &memory),
			 CUWEIR_ERROR_INVALID_VALUE);
	assert_null(memory);
	assert_int_equal(cuweir_reservation_close(NULL), 0);
	r = new_reservation();
	assert_int_equal(cuweir_reservation_add(r, 1), 0);
	assert_int_equal(cuweir_reservation_allocate_buffer(r, NULL, NULL),
			 CUWEIR_ERROR_INVALID_VALUE);
	assert_false(cuweir_reservation_is_used(r));
	cuweir_reservation_destroy(r);
	assert_int_equal(cuweir_reservation_open(1, &r), 0);
	assert_int_equal(cuweir_reservation_add(r, 1), 0);
	memory = r;
	assert_int_equal(cuweir_reservation_allocate_buffer(r, NULL, &memory),
			 CUWEIR_ERROR_INVALID_DEVICE);
	assert_null(memory);
	assert_false(cuweir_reservation_is_used(r));
	cuweir_reservation_destroy(r);
	assert_int_equal(reserved_bytes(), 0);
}

static unsigned int next_random(unsigned int *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 8;
}

static void within_budget(void)
{
	if (cuweir_sim_used(0, CUWEIR_SIM_DEVICE) > LIMIT) {
		abort();
	}
}

static void *work(void *argument)
{
	unsigned int seed = (unsigned int)(uintptr_t)argument;
	CUcontext context;

	cuDevicePrimaryCtxRetain(&context, 0);
	cuCtxSetCurrent(context);
	for (int i = 0; i < 3000; i++) {
		struct cuweir_reservation *r = NULL;
		void *memory = NULL;

		if (next_random(&seed) % 3 == 0) {
			memory = cuweir_allocate(next_random(&seed) % 3000 + 1, 0, 0);
			within_budget();
			cuweir_deallocate(memory);
			continue;
		}
		cuweir_reservation_open(0, &r);
		for (unsigned int adds = next_random(&seed) % 4; adds > 0; adds--) {
			cuweir_reservation_add(r, next_random(&seed) % 3000);
		}
		if (next_random(&seed) % 2 == 0) {
			cuweir_reservation_allocate_buffer(r, NULL, &memory);
			within_budget();
		}
		if (next_random(&seed) % 2 == 0) {
			cuweir_reservation_close(r);
		}
		cuweir_deallocate(memory);
		cuweir_reservation_destroy(r);
	}
	return NULL;
}

static void threads(void **state)
{
	enum { THREADS = 8 };
	pthread_t ids[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		pthread_create(&ids[i], NULL, work, (void *)(uintptr_t)(i * 7 + 1));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(ids[i], NULL);
	}
	assert_int_equal(used_bytes(), totals_of(CUWEIR_KIND_DEVICE).held);
	assert_int_equal(reserved_bytes(), 0);
	check_books(0);
}

static int setup(void **state)
{
	(void)state;
	start_cuda();
	assert_int_equal(cuweir_set_budget(0, 0, LIMIT), 0);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds),
		cmocka_unit_test(buffers),
		cmocka_unit_test(others_are_kept_out),
		cmocka_unit_test(failures),
		cmocka_unit_test(without_budget),
		cmocka_unit_test(arguments),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
