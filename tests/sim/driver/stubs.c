/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A weak definition of every exported function: it answers CUDA_ERROR_NOT_SUPPORTED wherever no
 * other file has a real one. No prototypes of cuda.h here; any arguments are left alone.
 */
#define EXPORT(sym, base, version, flags) int stub_##sym(void) __asm__(#sym);
#include "exports.def"
#undef EXPORT

#include "internal.h"

static int stub(enum sim_fn fn)
{
	CUresult r = sim_enter(fn);

	if (r == CUDA_SUCCESS) {
		r = CUDA_ERROR_NOT_SUPPORTED;
	}
	if (atomic_load_explicit(&sim_traced, memory_order_relaxed)) {
		struct sim_line l;

		sim_trace_args(&l, fn, "0", 0, NULL);
		sim_trace_end(&l, r);
	}
	return (int)r;
}

#define EXPORT(sym, base, version, flags)                                                          \
	__attribute__((weak, visibility("default"))) int stub_##sym(void)                          \
	{                                                                                          \
		return stub(SIM_FN_##sym);                                                         \
	}
#include "exports.def"
#undef EXPORT
