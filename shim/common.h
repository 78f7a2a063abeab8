/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler words used everywhere in the shim. */
#ifndef CW_COMMON_H
#define CW_COMMON_H

#define CW_EXPORT __attribute__((visibility("default")))
#define CW_COLD __attribute__((cold, noinline))
#define CW_LIKELY(x) __builtin_expect(!!(x), 1)
#define CW_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CW_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* The preloaded object's TLS lies in the static block: one instruction to reach. */
#define CW_TLS _Thread_local __attribute__((tls_model("initial-exec")))

#endif
