/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rest of the shim sees of hooks.def: an id for each intercepted function, its
 * facts, and the address of the real one. Ids and facts are constants, usable from any
 * context, the first look-up of a sanitizer that starts before libc included.
 */
#ifndef CW_HOOKS_H
#define CW_HOOKS_H

#include <stdatomic.h>
#include <stdint.h>

enum cw_door {
	CW_DOOR_DRIVER,
	CW_DOOR_RUNTIME,
	CW_DOOR_NVML,
};

/* Stream variants, by the bit that cuGetProcAddress knows them by. */
enum cw_stream_variant {
	CW_LEGACY = 0,
	CW_PTDS = 2,
};

enum cw_hook_id {
#define CW_DRIVER(symbol, ...) CW_HOOK_##symbol,
#define CW_RUNTIME(symbol, ...) CW_HOOK_##symbol,
#define CW_RUNTIME0(symbol, ...) CW_HOOK_##symbol,
#define CW_REAL_ONLY(symbol)
#include "hooks.def"
#undef CW_REAL_ONLY
	CW_HOOK_EXPORTED, /* ids below this one are exported */
	CW_HOOK_BEFORE_REAL_ONLY = CW_HOOK_EXPORTED - 1,
#define CW_REAL_ONLY(symbol) CW_HOOK_##symbol,
#undef CW_DRIVER
#undef CW_RUNTIME
#undef CW_RUNTIME0
#define CW_DRIVER(symbol, ...)
#define CW_RUNTIME(symbol, ...)
#define CW_RUNTIME0(symbol, ...)
#include "hooks.def"
#undef CW_DRIVER
#undef CW_RUNTIME
#undef CW_RUNTIME0
#undef CW_REAL_ONLY
	CW_HOOK_COUNT,
	CW_HOOK_NONE = CW_HOOK_COUNT,
};

struct cw_hook {
	uint16_t base;      /* of cw_hook_base alone */
	uint16_t version;   /* first cuGetProcAddress version, 0 for the runtime */
	uint8_t door;       /* enum cw_door */
	uint8_t stream;     /* enum cw_stream_variant */
	uint8_t kind;       /* enum cuweir_kind */
};

extern const struct cw_hook cw_hooks[CW_HOOK_COUNT];

/* A hook's name as documented, and as cuGetProcAddress is asked for it. */
const char *cw_hook_base(unsigned int hook);

/* And as exported. No pointers lead to either: they would be relocations, 12 KiB of them. */
const char *cw_hook_symbol(enum cw_hook_id hook);

/* Our exported definition; NULL where there is none. */
void *cw_hook_entry(unsigned int hook);

/*
 * The real function behind each hook, NULL until it is known. Written by resolve.c
 * whenever a look-up of the program's or an ELF search of ours finds it; any thread.
 */
extern __attribute__((visibility("hidden"))) _Atomic(void *) cw_real[CW_HOOK_COUNT];

#endif
