/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table's facts as data. cuda.h is not included here: it renames functions by macro
 * (cuMemAlloc becomes cuMemAlloc_v2), and a row means the exported name to the letter.
 */
#include "hooks.h"

#include <stddef.h>
#include <stdint.h>

#include "cuweir/policy.h"

/* entries.S */
extern const int32_t cw_entries_[CW_HOOK_EXPORTED] __attribute__((visibility("hidden")));

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

const struct cw_hook cw_hooks[CW_HOOK_COUNT] = {
#define CW_DRIVER(name, base_name, since, variant, memory, ...)                               \
	[CW_HOOK_##name] = { .base = BASE(name), .version = since,                            \
			     .door = CW_DOOR_DRIVER, .stream = CW_##variant,                  \
			     .kind = CUWEIR_KIND_##memory },
#define CW_RUNTIME(name, base_name, memory, ...)                                              \
	[CW_HOOK_##name] = { .base = BASE(name), .door = CW_DOOR_RUNTIME,                    \
			     .kind = CUWEIR_KIND_##memory },
#define CW_RUNTIME0(name, base_name, memory, ...)                                             \
	[CW_HOOK_##name] = { .base = BASE(name), .door = CW_DOOR_RUNTIME,                    \
			     .kind = CUWEIR_KIND_##memory },
#define CW_NVML(name, ...)                                                                    \
	[CW_HOOK_##name] = { .base = BASE(name), .door = CW_DOOR_NVML },
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

void *cw_hook_entry(unsigned int hook)
{
	if (hook >= CW_HOOK_EXPORTED) {
		return NULL;
	}
	return (void *)((uintptr_t)cw_entries_ + (uintptr_t)(intptr_t)cw_entries_[hook]);
}

_Atomic(void *) cw_real[CW_HOOK_COUNT];
