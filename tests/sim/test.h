/* SPDX-License-Identifier: Apache-2.0 */
/* For the simulation's own tests. */
#ifndef CUWEIR_SIM_TEST_H
#define CUWEIR_SIM_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <cuda.h>

#include "sim.h"

#define OK(call) assert_int_equal((call), CUDA_SUCCESS)
#define FAILS(code, call) assert_int_equal((call), (code))
#define D_USED(dev) cuweir_sim_used(dev, CUWEIR_SIM_DEVICE)
#define MiB ((size_t)1 << 20)
#endif
