/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table's facts as data. cuda.h is not included here: it renames functions by macro
 * (cuMemAlloc becomes cuMemAlloc_v2), and a row means the exported name to the letter.
 */
#include "hooks.h"

#include <stddef.h>

#include "cuweir/policy.h"

/* Our exported definitions, doors.c; only their addresses are used here. */
#define CW_DRIVER(symbol, ...) void cw_entry_##symbol(void) __asm__(#symbol);
#define CW_RUNTIME(symbol, ...) CW_DRIVER(symbol)
#define CW_RUNTIME0(symbol, ...) CW_DRIVER(symbol)
#define CW_REAL_ONLY(symbol)
#include "hooks.def"
#undef CW_DRIVER
#undef CW_RUNTIME
#undef CW_RUNTIME0
#undef CW_REAL_ONLY

/* The bases as one block with offsets, as lookup.c has the symbols. */
static const struct {
#define CW_DRIVER(name, base, ...) char name[sizeof #base];
#define CW_RUNTIME(name, base, ...) char name[sizeof #base];
#define CW_RUNTIME0(name, base, ...) char name[sizeof #base];
#define CW_REAL_ONLY(name) char name[sizeof #name];
#include "hooks.def"
#undef CW_DRIVER
#undef CW_RUNTIME
#undef CW_RUNTIME0
#undef CW_REAL_ONLY
} bases = {
#define CW_DRIVER(name, base, ...) .name = #base,
#define CW_RUNTIME(name, base, ...) .name = #base,
#define CW_RUNTIME0(name, base, ...) .name = #base,
#define CW_REAL_ONLY(name) .name = #name,
#include "hooks.def"
#undef CW_DRIVER
#undef CW_RUNTIME
#undef CW_RUNTIME0
#undef CW_REAL_ONLY
};

#define BASE(name) offsetof(__typeof__(bases), name)
#define ENTRY(name) ((void *)(name))

const struct cw_hook cw_hooks[CW_HOOK_COUNT] = {
#define CW_DRIVER(name, base_name, since, variant, memory, ...)                               \
	[CW_HOOK_##name] = { .base = BASE(name), \
			     .entry = ENTRY(cw_entry_##name), .version = since,               \
			     .door = CW_DOOR_DRIVER, .stream = CW_##variant,                  \
			     .kind = CUWEIR_KIND_##memory },
#define CW_RUNTIME(name, base_name, memory, ...)                                              \
	[CW_HOOK_##name] = { .base = BASE(name), \
			     .entry = ENTRY(cw_entry_##name), .door = CW_DOOR_RUNTIME,        \
			     .kind = CUWEIR_KIND_##memory },
#define CW_RUNTIME0(name, base_name, memory, ...)                                             \
	[CW_HOOK_##name] = { .base = BASE(name), \
			     .entry = ENTRY(cw_entry_##name), .door = CW_DOOR_RUNTIME,        \
			     .kind = CUWEIR_KIND_##memory },
#define CW_NVML(name, ...)                                                                    \
	[CW_HOOK_##name] = { .base = BASE(name), \
			     .entry = ENTRY(cw_entry_##name), .door = CW_DOOR_NVML },
#define CW_REAL_ONLY(name)                                                                    \
	[CW_HOOK_##name] = { .base = BASE(name), .door = CW_DOOR_DRIVER },
#include "hooks.def"
#undef CW_DRIVER
#undef CW_RUNTIME
#undef CW_RUNTIME0
#undef CW_REAL_ONLY
};

const char *cw_hook_base(unsigned int hook)
{
	return (const char *)&bases + cw_hooks[hook].base;
}

_Atomic(void *) cw_real[CW_HOOK_COUNT];
