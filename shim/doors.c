/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exported functions, every one made from hooks.def, and nothing else. A definition that
 * differs from CUDA's prototype does not compile.
 */
#include "bodies.h"
#include "common.h"

#define ARGS(...) , __VA_ARGS__

#define CW_DRIVER(symbol, base, version, stream, kind, body, args, ...)                            \
	CW_EXPORT CUresult CUDAAPI symbol(__VA_ARGS__);                                            \
	CUresult CUDAAPI symbol(__VA_ARGS__)                                                       \
	{                                                                                          \
		return body(CW_HOOK_##symbol, __builtin_return_address(0) args);                   \
	}
#define CW_RUNTIME(symbol, base, kind, body, args, ...)                                            \
	CW_EXPORT cudaError_t CUDARTAPI symbol(__VA_ARGS__);                                       \
	cudaError_t CUDARTAPI symbol(__VA_ARGS__)                                                  \
	{                                                                                          \
		return body(CW_HOOK_##symbol, __builtin_return_address(0) args);                   \
	}
#define CW_RUNTIME0(symbol, base, kind, body)                                                      \
	CW_EXPORT cudaError_t CUDARTAPI symbol(void);                                              \
	cudaError_t CUDARTAPI symbol(void)                                                         \
	{                                                                                          \
		return body(CW_HOOK_##symbol, __builtin_return_address(0));                        \
	}
#define CW_REAL_ONLY(symbol)
#include "hooks.def"
