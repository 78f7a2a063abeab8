/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that give intercepted calls their meaning, declared from the table. Each gets
 * the id of the hook, the program's return address, and the program's arguments.
 */
#ifndef CW_BODIES_H
#define CW_BODIES_H

#include "cuda_api.h"
#include "hooks.h"
#include "nvml_api.h"

#define CW_DRIVER(symbol, base, version, stream, kind, body, args, ...)                            \
	CUresult body(enum cw_hook_id hook, const void *site, __VA_ARGS__);
#define CW_RUNTIME(symbol, base, kind, body, args, ...)                                            \
	cudaError_t body(enum cw_hook_id hook, const void *site, __VA_ARGS__);
#define CW_RUNTIME_NAMED(symbol, ...)
#define CW_NVML(symbol, body, args, ...)                                                           \
	int body(enum cw_hook_id hook, const void *site, __VA_ARGS__);
#define CW_RUNTIME0(symbol, base, kind, body)                                                      \
	cudaError_t body(enum cw_hook_id hook, const void *site);
#define CW_REAL_ONLY(symbol)
#include "hooks.def"
#undef CW_DRIVER
#undef CW_RUNTIME
#undef CW_RUNTIME0
#undef CW_REAL_ONLY

#endif
