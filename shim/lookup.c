/* SPDX-License-Identifier: Apache-2.0 */
#include "lookup.h"

#include <stdbool.h>
#include <stddef.h>

#include "elf_read.h"

/* A power of two, at least twice the number of rows, so that chains stay short. */
#define INDEX_SLOTS 1024u

_Static_assert(CW_HOOK_COUNT * 2 <= INDEX_SLOTS, "grow the index");

/*
 * The names as one block with offsets, not as pointers: nothing here waits for the loader
 * to relocate it. Strings of REAL_ONLY rows come last, as their ids do.
 */
static const struct {
#define CW_DRIVER(symbol, ...) char symbol[sizeof #symbol];
#define CW_RUNTIME(symbol, ...) char symbol[sizeof #symbol];
#define CW_RUNTIME0(symbol, ...) char symbol[sizeof #symbol];
#define CW_REAL_ONLY(symbol) char symbol[sizeof #symbol];
#include "hooks.def"
#undef CW_DRIVER
#undef CW_RUNTIME
#undef CW_RUNTIME0
#undef CW_REAL_ONLY
} names = {
#define CW_DRIVER(symbol, ...) .symbol = #symbol,
#define CW_RUNTIME(symbol, ...) .symbol = #symbol,
#define CW_RUNTIME0(symbol, ...) .symbol = #symbol,
#define CW_REAL_ONLY(symbol) .symbol = #symbol,
#include "hooks.def"
#undef CW_DRIVER
#undef CW_RUNTIME
#undef CW_RUNTIME0
#undef CW_REAL_ONLY
};

static const uint16_t name_offsets[CW_HOOK_COUNT] = {
#define CW_DRIVER(symbol, ...) [CW_HOOK_##symbol] = offsetof(__typeof__(names), symbol),
#define CW_RUNTIME(symbol, ...) [CW_HOOK_##symbol] = offsetof(__typeof__(names), symbol),
#define CW_RUNTIME0(symbol, ...) [CW_HOOK_##symbol] = offsetof(__typeof__(names), symbol),
#define CW_REAL_ONLY(symbol) [CW_HOOK_##symbol] = offsetof(__typeof__(names), symbol),
#include "hooks.def"
#undef CW_DRIVER
#undef CW_RUNTIME
#undef CW_RUNTIME0
#undef CW_REAL_ONLY
};

/* Open addressing; a slot holds an id + 1, 0 is free. */
static _Atomic(uint16_t) slots[INDEX_SLOTS];
static _Atomic(bool) slots_ready;

const char *cw_hook_symbol(enum cw_hook_id id)
{
	return (const char *)&names + name_offsets[id];
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name != '\0'; name++) {
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	}
	return hash ^ (hash >> 15);
}

/*
 * Threads may build at the same time. All insert the same ids in the same order, so that
 * each id's slot is the same for all: what another thread stored is what we would store.
 */
static void build_index(void)
{
	for (unsigned int id = 0; id < CW_HOOK_COUNT; id++) {
		uint32_t at = hash_of(cw_hook_symbol((enum cw_hook_id)id)) % INDEX_SLOTS;
		uint16_t held;

		while ((held = atomic_load_explicit(&slots[at], memory_order_relaxed)) != 0 &&
		       held != id + 1) {
			at = (at + 1) % INDEX_SLOTS;
		}
		atomic_store_explicit(&slots[at], (uint16_t)(id + 1), memory_order_relaxed);
	}
	atomic_store_explicit(&slots_ready, true, memory_order_release);
}

enum cw_hook_id cw_lookup_id(const char *name)
{
	uint32_t at;
	uint16_t held;

	if (!atomic_load_explicit(&slots_ready, memory_order_acquire)) {
		build_index();
	}
	at = hash_of(name) % INDEX_SLOTS;
	while ((held = atomic_load_explicit(&slots[at], memory_order_relaxed)) != 0) {
		if (cw_elf_same(cw_hook_symbol((enum cw_hook_id)(held - 1)), name)) {
			return (enum cw_hook_id)(held - 1);
		}
		at = (at + 1) % INDEX_SLOTS;
	}
	return CW_HOOK_NONE;
}

struct cw_lookup_result cw_lookup_route(void *handle, const char *name, const char *version,
					const void *caller)
{
	enum cw_hook_id hook = cw_lookup_id(name);

	/* Functions that we only call have no hook to hand out: the program's own business. */
	if (hook >= CW_HOOK_EXPORTED) {
		return (struct cw_lookup_result){ .pass = 1 };
	}
	return cw_lookup_named(hook, handle, name, version, caller);
}

static void *no_symbol(void *handle, const char *name)
{
	return NULL;
}

static void *no_versioned_symbol(void *handle, const char *name, const char *version)
{
	return NULL;
}

static const struct link_map *object_called(const char *soname)
{
	const struct link_map *object = cw_elf_first();

	for (; object != NULL; object = object->l_next) {
		const char *own = cw_elf_soname(object);

		if (own != NULL && cw_elf_same(own, soname)) {
			return object;
		}
	}
	return NULL;
}

/*
 * Where dlvsym is exported, any reference to dlsym or dlvsym of ours binds to ourselves
 * (measured), so the real ones are read from the tables of libc; before glibc 2.34 they were
 * in libdl. The store is atomic and all threads store the same.
 */
void cw_lookup_find_real(void)
{
	static const char *const homes[] = { "libc.so.6", "libdl.so.2" };
	void *(*found)(void *, const char *) = no_symbol;
	void *(*found_versioned)(void *, const char *, const char *) = no_versioned_symbol;

	for (unsigned int i = 0; i < sizeof homes / sizeof *homes; i++) {
		const struct link_map *home = object_called(homes[i]);
		void *plain = home == NULL ? NULL : cw_elf_symbol(home, "dlsym");
		void *versioned = home == NULL ? NULL : cw_elf_symbol(home, "dlvsym");

		if (plain != NULL && versioned != NULL) {
			found = (void *(*)(void *, const char *))plain;
			found_versioned =
				(void *(*)(void *, const char *, const char *))versioned;
			break;
		}
	}
	__atomic_store_n(&cw_lookup_dlsym, found, __ATOMIC_RELAXED);
	__atomic_store_n(&cw_lookup_dlvsym, found_versioned, __ATOMIC_RELAXED);
}
