/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>

#include "elf_read.h"
#include "runtimes.h"

/* One walk over the loaded objects: what is asked, and what was found. */
struct walk {
	const void *address;      /* asks for the home of this address */
	const char *name;         /* asks whether anybody else defines this name */
	const char *soname;       /* asks for the runtime of this soname */
	bool wants_exported_name; /* asks what is exported at `address` */
	enum cw_hook_id hook;     /* asks for this hook's real function, or CW_HOOK_NONE */
	int runtime;              /* in this runtime, or CW_NO_RUNTIME for the first */
	int first;                /* first runtime of this walk */
	struct cw_home home;
	const char *exported_name;
	char linked[64];          /* the runtime that the object at `address` names */
	bool defined;
	bool driver_seen;         /* the first driver in load order has been come by */
	bool nvml_seen;
	uint32_t runtimes_seen;   /* a bit for each slot */
	bool home_seen;           /* a library that should have the hook's function is loaded */
	bool past_own;            /* the walk has come by ourselves */
	void *real;
	void *behind;             /* somebody else's definition that ours hides */
	int named;
};

static struct link_map object_from(const struct dl_phdr_info *info)
{
	struct link_map object = { .l_addr = info->dlpi_addr, .l_name = (char *)info->dlpi_name };

	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
			object.l_ld = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
		}
	}
	return object;
}

static bool contains(const struct dl_phdr_info *info, const void *address)
{
	uintptr_t offset = (uintptr_t)address - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD && offset - header->p_vaddr < header->p_memsz) {
			return true;
		}
	}
	return false;
}

static enum cw_family family_called(const char *name)
{
	if (name == NULL) {
		return CW_FAMILY_OTHER;
	}
	if (cw_elf_begins(name, "libcudart")) {
		return CW_FAMILY_RUNTIME;
	}
	if (cw_elf_begins(name, "libcuda.so")) {
		return CW_FAMILY_DRIVER;
	}
	if (cw_elf_begins(name, "libnvidia-ml.so")) {
		return CW_FAMILY_NVML;
	}
	return CW_FAMILY_OTHER;
}

static enum cw_family family_of(const struct dl_phdr_info *info, const struct link_map *object)
{
	enum cw_family family;

	if (contains(info, cw_hooks)) {
		return CW_FAMILY_OWN;
	}
	family = family_called(cw_elf_basename(object->l_name));
	return family != CW_FAMILY_OTHER ? family : family_called(cw_elf_soname(object));
}

/* The slot of a runtime library, by where it is loaded. */
static int slot_of(const struct dl_phdr_info *info)
{
	uintptr_t high = 0;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD && header->p_vaddr + header->p_memsz > high) {
			high = header->p_vaddr + header->p_memsz;
		}
	}
	return cw_runtime_slot(info->dlpi_addr, info->dlpi_addr + high);
}

/*
 * The loader's own record of an object, which dlsym takes for a handle. The list is read under
 * the lock that it is written under, dl_iterate_phdr()'s, of which a sanitizer knows nothing.
 */
__attribute__((no_sanitize_thread)) static struct link_map *
record_of(const struct link_map *copy)
{
	const struct link_map *object = cw_elf_first();

	while (object != NULL && (object->l_addr != copy->l_addr || object->l_ld != copy->l_ld)) {
		object = object->l_next;
	}
	return (struct link_map *)object;
}

/* Copied, since the library that holds the string may be gone after the walk. */
static void copy_linked(const struct link_map *object, char *ret_name, size_t size)
{
	const char *needed;

	for (unsigned int i = 0; (needed = cw_elf_needed(object, i)) != NULL; i++) {
		size_t length = 0;

		if (family_called(cw_elf_basename(needed)) != CW_FAMILY_RUNTIME) {
			continue;
		}
		needed = cw_elf_basename(needed);
		while (length + 1 < size && needed[length] != '\0') {
			ret_name[length] = needed[length];
			length++;
		}
		ret_name[length] = '\0';
		return;
	}
}

static void see_home(struct walk *walk, const struct link_map *object, enum cw_family family,
		     int slot)
{
	walk->home.family = family;
	walk->home.runtime = slot;
	copy_linked(object, walk->linked, sizeof walk->linked);
	walk->home.object = record_of(object);
	if (walk->wants_exported_name) {
		walk->exported_name = cw_elf_name_at(object, walk->address);
	}
}

static bool is_called(const struct link_map *object, const char *soname)
{
	const char *own = cw_elf_soname(object);

	return own != NULL ? cw_elf_same(own, soname)
			   : cw_elf_same(cw_elf_basename(object->l_name), soname);
}

/* Whether the walk's hook is to be looked for in this object. */
static bool is_home(const struct walk *walk, enum cw_family family, int slot)
{
	switch ((enum cw_door)cw_hooks[walk->hook].door) {
	case CW_DOOR_DRIVER:
		return family == CW_FAMILY_DRIVER;
	case CW_DOOR_NVML:
		return family == CW_FAMILY_NVML;
	case CW_DOOR_RUNTIME:
		return slot != CW_NO_RUNTIME &&
		       slot == (walk->runtime == CW_NO_RUNTIME ? walk->first : walk->runtime);
	}
	return false;
}

static void see_definition(struct walk *walk, const struct link_map *object,
			   enum cw_family family, int slot)
{
	const char *symbol = cw_hook_symbol(walk->hook);

	if (family == CW_FAMILY_OWN) {
		walk->past_own = true;
	} else if (is_home(walk, family, slot)) {
		walk->home_seen = true;
		if (walk->real == NULL) {
			walk->real = cw_elf_symbol(object, symbol);
		}
	} else if (walk->past_own && family == CW_FAMILY_OTHER && walk->behind == NULL) {
		walk->behind = cw_elf_symbol(object, symbol);
	}
}

/*
 * A driver that was closed and opened again lies elsewhere: all that is known of it is found
 * anew, what we call ourselves included, which nobody may ever look up again.
 */
static void see_driver(const struct link_map *object)
{
	static _Atomic uintptr_t base;
	uintptr_t before = atomic_exchange_explicit(&base, object->l_addr, memory_order_relaxed);

	if (before != 0 && before != object->l_addr) {
		for (unsigned int hook = 0; hook < CW_HOOK_COUNT; hook++) {
			if (cw_hooks[hook].door == CW_DOOR_DRIVER &&
			    atomic_load_explicit(&cw_real[hook], memory_order_relaxed) != NULL) {
				cw_real_set((enum cw_hook_id)hook,
					    cw_elf_symbol(object, cw_hook_symbol((enum cw_hook_id)hook)));
			}
		}
	}
}

static int visit(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct walk *walk = argument;
	const struct link_map object = object_from(info);
	enum cw_family family = family_of(info, &object);
	int slot = CW_NO_RUNTIME;
	bool here = walk->address != NULL && contains(info, walk->address);

	/* Before it is relocated, none of its functions can be called. */
	if (object.l_ld == NULL ||
	    (family > CW_FAMILY_OWN && !here && !cw_elf_is_relocated(&object))) {
		return 0;
	}
	if (family == CW_FAMILY_RUNTIME) {
		slot = slot_of(info);
		walk->runtimes_seen |= slot != CW_NO_RUNTIME ? 1u << slot : 0;
		if (walk->first == CW_NO_RUNTIME && slot != CW_NO_RUNTIME) {
			walk->first = slot;
			cw_runtime_see_first(slot);
		}
		if (walk->soname != NULL && walk->named == CW_NO_RUNTIME &&
		    is_called(&object, walk->soname)) {
			walk->named = slot;
		}
	}
	walk->nvml_seen |= family == CW_FAMILY_NVML;
	if (family == CW_FAMILY_DRIVER && !walk->driver_seen) {
		walk->driver_seen = true;
		see_driver(&object);
	}
	if (here) {
		see_home(walk, &object, family, slot);
	}
	if (walk->name != NULL && !here && family != CW_FAMILY_OWN && !walk->defined) {
		walk->defined = cw_elf_symbol(&object, walk->name) != NULL;
	}
	if (walk->hook != CW_HOOK_NONE) {
		see_definition(walk, &object, family, slot);
	}
	return 0;
}

/*
 * A child of a fork has the loader's lock as it was, and dl_iterate_phdr() would wait for ever for
 * a thread that it has not: so no walk of ours is under way at a fork. Nobody waits without end
 * for that: a handler of a signal may have interrupted the walk, or the fork.
 */
enum { PATIENCE = 100000 };

static int walks;
static int forks;
static pthread_t forker; /* valid where forks != 0 */

static void begin_walk(void)
{
	for (int i = 0; i < PATIENCE; i++) {
		__atomic_fetch_add(&walks, 1, __ATOMIC_SEQ_CST);
		if (CW_LIKELY(__atomic_load_n(&forks, __ATOMIC_SEQ_CST) == 0) ||
		    pthread_equal(__atomic_load_n(&forker, __ATOMIC_RELAXED), pthread_self())) {
			return;
		}
		__atomic_fetch_sub(&walks, 1, __ATOMIC_SEQ_CST);
		sched_yield();
	}
	__atomic_fetch_add(&walks, 1, __ATOMIC_SEQ_CST);
}

void cw_resolve_prefork(void)
{
	__atomic_store_n(&forker, pthread_self(), __ATOMIC_RELAXED);
	__atomic_fetch_add(&forks, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < PATIENCE && __atomic_load_n(&walks, __ATOMIC_SEQ_CST) != 0; i++) {
		sched_yield();
	}
}

void cw_resolve_postfork_parent(void)
{
	__atomic_fetch_sub(&forks, 1, __ATOMIC_SEQ_CST);
}

void cw_resolve_postfork_child(void)
{
	__atomic_store_n(&forks, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&walks, 0, __ATOMIC_RELAXED);
}

static void walk_objects(struct walk *walk)
{
	walk->first = CW_NO_RUNTIME;
	walk->named = CW_NO_RUNTIME;
	walk->home.runtime = CW_NO_RUNTIME;
	begin_walk();
	dl_iterate_phdr(visit, walk);
	__atomic_fetch_sub(&walks, 1, __ATOMIC_SEQ_CST);
	walk->home.first_runtime =
		walk->home.runtime != CW_NO_RUNTIME && walk->home.runtime == walk->first;
}

struct cw_home cw_home_of(const void *address)
{
	struct walk walk = { .address = address, .hook = CW_HOOK_NONE };

	walk_objects(&walk);
	return walk.home;
}

void *cw_function_beside(const void *function, const char *name)
{
	return cw_elf_symbol(cw_handle_of(function), name);
}

bool cw_defined_elsewhere(const char *name, const void *caller)
{
	struct walk walk = { .address = caller, .name = name, .hook = CW_HOOK_NONE };

	walk_objects(&walk);
	return walk.defined;
}

const char *cw_exported_name(const void *address)
{
	struct walk walk = { .address = address, .wants_exported_name = true,
			     .hook = CW_HOOK_NONE };

	walk_objects(&walk);
	return walk.exported_name;
}

void *cw_resolve(enum cw_hook_id hook)
{
	struct walk walk = { .hook = hook, .runtime = CW_NO_RUNTIME };

	walk_objects(&walk);
	if (walk.real != NULL) {
		cw_real_set(hook, walk.real);
	}
	/*
	 * Frameworks define CUDA's functions themselves, to load CUDA at the first call. Where
	 * ours hides such a definition and CUDA is not loaded, that is what was called. It is
	 * not kept: by its look-up, the real one will be known from the next call on.
	 */
	return walk.home_seen ? walk.real : walk.behind;
}

void cw_real_forget(enum cw_door door)
{
	for (unsigned int hook = 0; hook < CW_HOOK_COUNT; hook++) {
		if (cw_hooks[hook].door == door) {
			cw_real_set((enum cw_hook_id)hook, NULL);
		}
	}
}

void cw_resolve_closed(void)
{
	struct walk walk = { .hook = CW_HOOK_NONE };

	/* Of a process without CUDA nothing is known. */
	if (!cw_real_is_known(CW_HOOK_cuGetProcAddress) &&
	    !cw_real_is_known(CW_HOOK_cuGetProcAddress_v2) &&
	    !cw_real_is_known(CW_HOOK_cuMemAlloc_v2) && !cw_runtimes_any()) {
		return;
	}
	walk_objects(&walk);
	cw_runtimes_forget(walk.runtimes_seen);
	if (!walk.driver_seen) {
		cw_real_forget(CW_DOOR_DRIVER);
	}
	if (!walk.nvml_seen) {
		cw_real_forget(CW_DOOR_NVML);
	}
}

void *cw_resolve_in(enum cw_hook_id hook, int runtime)
{
	struct walk walk = { .hook = hook, .runtime = runtime };

	walk_objects(&walk);
	return walk.real;
}

void cw_runtimes_of_site(const void *site, int *ret_inside, int *ret_linked)
{
	struct walk walk = { .address = site, .hook = CW_HOOK_NONE };
	struct walk by_name = { .soname = walk.linked, .hook = CW_HOOK_NONE };

	by_name.named = CW_NO_RUNTIME;
	walk_objects(&walk);
	if (walk.linked[0] != '\0') {
		walk_objects(&by_name);
	}
	*ret_inside = walk.home.runtime;
	*ret_linked = by_name.named;
}

bool cw_driver_unheard(void)
{
	for (unsigned int hook = 0; hook < CW_HOOK_COUNT; hook++) {
		if (cw_hooks[hook].door == CW_DOOR_DRIVER &&
		    atomic_load_explicit(&cw_real[hook], memory_order_relaxed) != NULL) {
			return false;
		}
	}
	(void)cw_resolve(CW_HOOK_cuMemAlloc_v2);
	return atomic_load_explicit(&cw_real[CW_HOOK_cuMemAlloc_v2], memory_order_relaxed) != NULL;
}
