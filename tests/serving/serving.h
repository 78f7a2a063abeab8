/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For programs that know of cuweir: linked to its client library and to the simulated driver,
 * run with the shim preloaded, or without it where a test says so.
 */
#ifndef SERVING_H
#define SERVING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda.h>
#include <cuweir/cuweir.h>
#include <sim.h>

enum { K = 1024, M = 1024 * 1024 };

static inline void start_cuda(void)
{
	CUcontext context;

	assert_int_equal(cuInit(0), CUDA_SUCCESS);
	assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	assert_int_equal(cuCtxSetCurrent(context), CUDA_SUCCESS);
}

static inline struct cuweir_totals totals_of(int kind)
{
	struct cuweir_totals totals = { .struct_size = sizeof(totals) };

	assert_int_equal(cuweir_get_totals(0, kind, &totals), CUWEIR_SUCCESS);
	return totals;
}

static inline uint64_t total(void)
{
	return totals_of(CUWEIR_KIND_DEVICE).current;
}

/* D-11: what the program has and what policies hold is what the driver gave. */
static inline void check_books(uint64_t program)
{
	struct cuweir_totals totals;

	/* A stream-ordered free is the pool's of the driver until then. */
	assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	totals = totals_of(CUWEIR_KIND_DEVICE);
	assert_int_equal(totals.current, program);
	assert_int_equal(totals.current + totals.held, cuweir_sim_used(0, CUWEIR_SIM_DEVICE));
}

static inline bool is_preloaded(void)
{
	const char *list = getenv("LD_PRELOAD"); /* which valgrind has its own in */

	return list != NULL && strstr(list, "libcuweir") != NULL;
}

#endif
