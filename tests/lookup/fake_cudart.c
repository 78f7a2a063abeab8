/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcudart.so.FAKE_MAJOR for look-ups: every runtime function of the table, returning its
 * number plus FAKE_MAJOR * 1000. fake_bind() looks driver functions up as the real one does.
 */
#include "cuda_api.h"
#include "each_row.h"
#include "hooks.h"

#include <dlfcn.h>
#include <stddef.h>

void *fake_bind(const char *driver, const char *symbol);

#define CW_DRIVER(symbol, ...)
#define CW_RUNTIME(symbol, base, kind, body, args, ...)                                    \
	cudaError_t fake_##symbol(__VA_ARGS__) __asm__(#symbol);                           \
	cudaError_t fake_##symbol(__VA_ARGS__)                                             \
	{                                                                                  \
		return (cudaError_t)(FAKE_RESULT(symbol) + FAKE_MAJOR * 1000);             \
	}
#define CW_RUNTIME0(symbol, base, kind, body) CW_RUNTIME(symbol, base, kind, body, , void)
#define CW_NVML(symbol, ...)
#define CW_REAL_ONLY(symbol)
#include "hooks.def"

void *fake_bind(const char *driver, const char *symbol)
{
	void *handle = dlopen(driver, RTLD_NOW);
	/* Kept, so that the look-up is no tail call: it shall come from this library. */
	void *volatile found = handle == NULL ? NULL : dlsym(handle, symbol);

	return found;
}
