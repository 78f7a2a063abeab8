/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exported functions, every one made from hooks.def, and nothing else. A definition that
 * differs from CUDA's prototype does not compile.
 */
/* Before the bodies: what it defines is compiled into the doors. */
#include "driver_plain.h"

#include "bodies.h"
#include "common.h"
#include "resolve.h"
#include "runtime_door.h"

#define ARGS(...) (__VA_ARGS__)
#define UNPACK(...) __VA_ARGS__

#define CW_DRIVER(symbol, base, version, stream, kind, body, args, ...)                            \
	CW_EXPORT CUresult CUDAAPI symbol(__VA_ARGS__);                                            \
	CUresult CUDAAPI symbol(__VA_ARGS__)                                                       \
	{                                                                                          \
		return body(CW_HOOK_##symbol, __builtin_return_address(0), UNPACK args);           \
	}
#define CW_RUNTIME(symbol, base, kind, body, args, ...)                                            \
	CW_EXPORT cudaError_t CUDARTAPI symbol(__VA_ARGS__);                                       \
	cudaError_t CUDARTAPI symbol(__VA_ARGS__)                                                  \
	{                                                                                          \
		return body(CW_HOOK_##symbol, __builtin_return_address(0), UNPACK args);           \
	}
#define CW_RUNTIME_NAMED(symbol, base, args, ...)                                                  \
	CW_EXPORT cudaError_t CUDARTAPI symbol(__VA_ARGS__);                                       \
	cudaError_t CUDARTAPI symbol(__VA_ARGS__)                                                  \
	{                                                                                          \
		struct cw_named named_outer;                                                       \
		cudaError_t (*named_real)(__VA_ARGS__) = cw_runtime_begin(                         \
			CW_HOOK_##symbol, __builtin_return_address(0), &named_outer);              \
		cudaError_t named_result;                                                          \
                                                                                                   \
		if (CW_UNLIKELY(named_real == NULL)) {                                             \
			return cudaErrorSymbolNotFound;                                            \
		}                                                                                  \
		named_result = named_real args;                                                    \
		cw_runtime_unname(&named_outer);                                                   \
		return named_result;                                                               \
	}
#define CW_NVML(symbol, body, args, ...)                                                           \
	CW_EXPORT int symbol(__VA_ARGS__);                                                         \
	int symbol(__VA_ARGS__)                                                                    \
	{                                                                                          \
		return body(CW_HOOK_##symbol, __builtin_return_address(0), UNPACK args);           \
	}
#define CW_RUNTIME0(symbol, base, kind, body)                                                      \
	CW_EXPORT cudaError_t CUDARTAPI symbol(void);                                              \
	cudaError_t CUDARTAPI symbol(void)                                                         \
	{                                                                                          \
		return body(CW_HOOK_##symbol, __builtin_return_address(0));                        \
	}
#define CW_REAL_ONLY(symbol)
#include "hooks.def"
