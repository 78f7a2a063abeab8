/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for doors.c, so that the look-up room is tested alone: each exported function
 * forwards to the real one, or says CUDA_ERROR_NOT_FOUND. The cuweir_test_* functions show
 * the tests what only the shim's own code can ask.
 */
#include "cuda_api.h"
#include "door_lookup.h"
#include "each_row.h"
#include "nvml_api.h"
#include "resolve.h"

#define EXPORT __attribute__((visibility("default")))

#define DEFINE_PLAIN(symbol, type, find, body, args, ...)                                  \
	EXPORT type stub_##symbol(__VA_ARGS__) __asm__(#symbol);                           \
	type stub_##symbol(__VA_ARGS__)                                                    \
	{                                                                                  \
		type (*real)(__VA_ARGS__) = find;                                          \
		return real == NULL ? (type)CUDA_ERROR_NOT_FOUND : real args;              \
	}
#define DEFINE_LOOKUP(symbol, type, find, body, args, ...)                                 \
	EXPORT type stub_##symbol(__VA_ARGS__) __asm__(#symbol);                           \
	type stub_##symbol(__VA_ARGS__)                                                    \
	{                                                                                  \
		return body(CW_HOOK_##symbol, __builtin_return_address(0), UNPACK args);   \
	}
/* Lists of arguments travel in parentheses, so that no macro takes them apart. */
#define UNPACK(...) __VA_ARGS__
#define LINKED(symbol) cw_real_runtime(CW_HOOK_##symbol, __builtin_return_address(0))

#define CW_DRIVER(symbol, base, version, stream, kind, body, args, ...)                    \
	ROW_PASTE(DEFINE_, ROW_KIND(body))                                                 \
	(symbol, CUresult, cw_real_of(CW_HOOK_##symbol), body, args, __VA_ARGS__)
#define CW_RUNTIME(symbol, base, kind, body, args, ...)                                    \
	DEFINE_PLAIN(symbol, cudaError_t, LINKED(symbol), body, args, __VA_ARGS__)
#define CW_RUNTIME0(symbol, base, kind, body)                                              \
	DEFINE_PLAIN(symbol, cudaError_t, LINKED(symbol), body, (), void)
#define CW_NVML(symbol, body, args, ...)                                                   \
	EXPORT int stub_##symbol(__VA_ARGS__) __asm__(#symbol);                            \
	int stub_##symbol(__VA_ARGS__)                                                     \
	{                                                                                  \
		int (*real)(__VA_ARGS__) = cw_real_of(CW_HOOK_##symbol);                   \
		return real == NULL ? CW_NVML_ERROR_FUNCTION_NOT_FOUND : real args;        \
	}
#define CW_REAL_ONLY(symbol)
#include "hooks.def"

EXPORT int cuweir_test_heard(const void *runtime_function);

int cuweir_test_heard(const void *runtime_function)
{
	return cw_runtime_hearing(runtime_function) == CW_RUNTIME_HEARD;
}
