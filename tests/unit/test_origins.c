/* SPDX-License-Identifier: Apache-2.0 */
/* Origins: interning, many threads at once, and what is dropped when room gets short. */
#include "../../shim/origins.h"

#include "../../shim/handles.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 4
#define SITES 5000

static struct cw_origin some_origin(uint64_t n)
{
	return (struct cw_origin){
		.hook = (uint16_t)(n % 7 + 1),
		.kind = (uint8_t)(n % 8 + 1),
		.device = (int16_t)(n % 4),
		.policy = (uint16_t)(n % 3),
		.context = 0x1000 + n % 2,
		.site = n + 1,
	};
}

static void unknown(void **state)
{
	static const uint32_t indices[] = {CW_ORIGIN_UNKNOWN, 1, 255, 256, CW_ORIGIN_LIMIT, UINT32_MAX};

	(void)state;
	assert_int_equal(cw_origin_count(), 1);
	for (size_t i = 0; i < sizeof(indices) / sizeof(indices[0]); i++) {
		const struct cw_origin *origin = cw_origin_get(indices[i]);

		assert_int_equal(origin->device, -1);
		assert_int_equal(origin->kind, 0);
		assert_int_equal(origin->hook, 0);
	}
}

/* Each field alone makes another origin, and the same tuple has the same index again. */
static void each_field(void **state)
{
	struct cw_origin origins[8] = {{0}};
	uint32_t indices[8];

	(void)state;
	origins[1].hook = 1;
	origins[2].kind = 1;
	origins[3].flags = 1;
	origins[4].device = -1;
	origins[5].policy = 1;
	origins[6].context = 1;
	origins[7].site = 1;
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 8; i++) {
			uint32_t index = cw_origin_intern(&origins[i]);

			assert_int_not_equal(index, CW_ORIGIN_UNKNOWN);
			assert_true(round == 0 || index == indices[i]);
			indices[i] = index;
			assert_memory_equal(cw_origin_get(index), &origins[i], sizeof(origins[i]));
			for (unsigned k = 0; k < i; k++) {
				assert_int_not_equal(indices[k], index);
			}
		}
	}
	assert_int_equal(cw_origin_count(), 9);
}

static uint32_t found[THREADS][SITES];

static void *intern_all(void *arg)
{
	uint32_t *mine = arg;

	for (unsigned i = 0; i < SITES; i++) {
		struct cw_origin origin = some_origin(i);

		mine[i] = cw_origin_intern(&origin);
		if (memcmp(cw_origin_get(mine[i]), &origin, sizeof(origin)) != 0) {
			abort();
		}
	}
	return NULL;
}

static void threads_agree(void **state)
{
	pthread_t threads[THREADS];
	uint32_t before = cw_origin_count();

	(void)state;
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, intern_all, found[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_memory_equal(found[i], found[0], sizeof(found[0]));
	}
	assert_int_equal(cw_origin_count(), before + SITES);
	assert_int_equal(cw_origin_degraded(), 0);
}

static void assert_degraded(struct cw_origin origin, uint64_t context, uint64_t site)
{
	uint64_t before = cw_origin_degraded();
	uint32_t index = cw_origin_intern(&origin);
	const struct cw_origin *is = cw_origin_get(index);

	assert_int_not_equal(index, CW_ORIGIN_UNKNOWN);
	assert_int_equal(cw_origin_degraded(), before + (origin.site != site ||
		origin.context != context));
	assert_int_equal(is->kind, origin.kind);
	assert_int_equal(is->flags, origin.flags);
	assert_int_equal(is->device, origin.device);
	assert_int_equal(is->policy, origin.policy);
	assert_int_equal(is->context, context);
	assert_int_equal(is->site, site);
	assert_int_equal(is->hook, context == 0 ? 0 : origin.hook);
}

/* The ladder of origins.h, to its last step. */
static void full(void **state)
{
	struct cw_origin origin = some_origin(3);
	uint32_t index;

	(void)state;
	for (uint64_t n = 0; cw_origin_count() < CW_ORIGIN_FULL_LIMIT; n++) {
		origin = some_origin(n);
		assert_int_not_equal(cw_origin_intern(&origin), CW_ORIGIN_UNKNOWN);
	}
	assert_degraded(some_origin(77), 0x1001, 78); /* was there before */
	origin = some_origin(3);
	origin.site = UINT64_MAX;
	assert_degraded(origin, origin.context, 0);
	origin.site = 0;
	for (uint64_t n = 1; cw_origin_count() < CW_ORIGIN_SITELESS_LIMIT; n++) {
		origin.context = n << 8;
		assert_int_not_equal(cw_origin_intern(&origin), CW_ORIGIN_UNKNOWN);
	}
	origin.context = 1;
	origin.device = 63;
	origin.flags = 0xa5;
	origin.site = 5;
	assert_degraded(origin, 0, 0);
	origin = (struct cw_origin){.kind = 1};
	for (unsigned n = 0; cw_origin_count() < CW_ORIGIN_LIMIT; n++) {
		origin.flags = (uint8_t)n;
		origin.policy = (uint16_t)(n >> 8);
		index = cw_origin_intern(&origin);
		assert_int_not_equal(index, CW_ORIGIN_UNKNOWN);
	}
	origin.kind = 7;
	assert_int_equal(cw_origin_intern(&origin), CW_ORIGIN_UNKNOWN);
	assert_int_equal(cw_origin_count(), CW_ORIGIN_LIMIT);
	origin.kind = 1;
	assert_int_not_equal(cw_origin_intern(&origin), CW_ORIGIN_UNKNOWN);
}

/* As in a fork child: nothing is known, and this thread's stale guesses mislead nobody. */
static void emptied(void **state)
{
	struct cw_origin origin = some_origin(1);

	(void)state;
	cw_handles_postfork_child();
	cw_origins_postfork_child();
	assert_int_equal(cw_origin_count(), 1);
	assert_int_equal(cw_origin_intern(&origin), 1);
	assert_memory_equal(cw_origin_get(1), &origin, sizeof(origin));
	origin = some_origin(2);
	assert_int_equal(cw_origin_intern(&origin), 2);
	assert_int_equal(cw_origin_count(), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown),
		cmocka_unit_test(each_field),
		cmocka_unit_test(threads_agree),
		cmocka_unit_test(full),
		cmocka_unit_test(emptied),
	};

	return cmocka_run_group_tests_name("origins", tests, NULL, NULL);
}
