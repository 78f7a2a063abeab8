/* SPDX-License-Identifier: Apache-2.0 */
#include "door_lookup.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "config.h"
#include "elf_read.h"
#include "lookup.h"
#include "resolve.h"

/* The real look-up with us as its caller, which matters for RTLD_NEXT and RTLD_DEFAULT. */
static void *ask(void *handle, const char *name, const char *version)
{
	return version == NULL ? cw_lookup_dlsym(handle, name)
			       : cw_lookup_dlvsym(handle, name, version);
}

/*
 * RTLD_DEFAULT searches the global scope, in which our definition stands before the CUDA
 * libraries', then what the calling object was loaded with. Ours says nothing about whether
 * the program has CUDA: the answer is what comes behind us. The calling object's own scope
 * is searched through its handle; the program has none but the global one.
 */
static void *ask_default(const void *ours, const char *name, const char *version,
			 const void *caller)
{
	void *found = ask(RTLD_DEFAULT, name, version);
	struct cw_home home;

	if (found != NULL && found != ours) {
		return found;
	}
	found = ask(RTLD_NEXT, name, version);
	if (found != NULL) {
		return found;
	}
	home = cw_home_of(caller);
	if (home.object == NULL || home.object == cw_elf_first() ||
	    home.family == CW_FAMILY_OWN) {
		return NULL;
	}
	return ask(home.object, name, version);
}

/* The program's own look-up, answered as if the shim were not there. */
static void *ask_for_program(const void *ours, void *handle, const char *name,
			     const char *version, const void *caller)
{
	void *found;

	if (handle == RTLD_DEFAULT) {
		return ask_default(ours, name, version, caller);
	}
	found = ask(handle, name, version);
	/* A handle of the program itself, from dlopen(NULL), has us in its scope too. */
	return found == ours ? ask(RTLD_NEXT, name, version) : found;
}

/* What to hand out for an address that the program's look-up found. */
static void *exchange(enum cw_hook_id id, void *found)
{
	const struct cw_hook *hook = &cw_hooks[id];
	struct cw_home home = cw_home_of(found);
	bool ours = false;

	cw_config_load();
	if (cw_config.dlsym_off) {
		return found;
	}
	switch ((enum cw_door)hook->door) {
	case CW_DOOR_DRIVER:
		ours = home.family == CW_FAMILY_DRIVER;
		break;
	case CW_DOOR_RUNTIME:
		/* A hook has one real function; what other instances do the driver door hears. */
		ours = home.family == CW_FAMILY_RUNTIME && home.first_runtime;
		break;
	case CW_DOOR_NVML:
		ours = home.family == CW_FAMILY_NVML;
		break;
	}
	if (!ours) {
		return found;
	}
	cw_real_set(id, found);
	return cw_hook_entry(id);
}

/* Whether who has looked this up comes to the driver door with what he finds from now on. */
static bool leads_to_driver_door(enum cw_hook_id id)
{
	bool asks_driver = id == CW_HOOK_cuGetProcAddress || id == CW_HOOK_cuGetProcAddress_v2;

	return cw_hooks[id].door == CW_DOOR_DRIVER && !cw_config.dlsym_off &&
	       !(asks_driver && cw_config.getproc_off);
}

struct cw_lookup_result cw_lookup_named(enum cw_hook_id hook, void *handle, const char *name,
					const char *version, const void *caller)
{
	struct cw_lookup_result result = { NULL, 0 };
	int saved_errno = errno;
	void *found;

	if (handle == RTLD_NEXT) {
		/*
		 * Whoever asks for the next one interposes, and only the real dlsym can tell
		 * what comes after him. Were we alone behind him, our definition would be
		 * found; then the look-up is made behind us, and fails as it should.
		 */
		result.pass = cw_defined_elsewhere(name, caller);
		if (result.pass == 0) {
			result.answer = ask(RTLD_NEXT, name, version);
		}
		errno = saved_errno;
		return result;
	}
	found = ask_for_program(cw_hook_entry(hook), handle, name, version, caller);
	if (found != NULL) {
		result.answer = exchange(hook, found);
		if (leads_to_driver_door(hook)) {
			cw_runtime_note_lookup(caller);
		}
	}
	errno = saved_errno;
	return result;
}

/* The rows of one base name that cuGetProcAddress may answer with; all are exported. */
static bool is_candidate(unsigned int id, const char *base)
{
	return cw_hooks[id].door == CW_DOOR_DRIVER && strcmp(cw_hook_base(id), base) == 0;
}

/*
 * Whether row `a` is a better answer than `b` for this version and these flags: not newer
 * than asked, the newest such, of the stream variant asked for.
 */
static bool is_better(const struct cw_hook *a, const struct cw_hook *b, int version,
		      unsigned long long flags)
{
	unsigned int wanted = (flags & CW_PTDS) != 0 ? CW_PTDS : CW_LEGACY;

	if ((a->version <= version) != (b->version <= version)) {
		return a->version <= version;
	}
	if (a->version != b->version) {
		return a->version > b->version;
	}
	return a->stream == wanted && b->stream != wanted;
}

/* The best row whose real function is `pointer`; with NULL, the best of all rows. */
static const struct cw_hook *best_row(const char *base, const void *pointer, int version,
				      unsigned long long flags)
{
	const struct cw_hook *best = NULL;

	for (unsigned int id = 0; id < CW_HOOK_EXPORTED; id++) {
		const struct cw_hook *hook = &cw_hooks[id];

		if (!is_candidate(id, base) ||
		    (pointer != NULL && cw_real_of((enum cw_hook_id)id) != pointer)) {
			continue;
		}
		if (best == NULL || is_better(hook, best, version, flags)) {
			best = hook;
		}
	}
	return best;
}

static bool is_own_entry(const char *base, const void *pointer)
{
	for (unsigned int id = 0; id < CW_HOOK_EXPORTED; id++) {
		if (cw_hook_entry(id) == pointer && strcmp(cw_hook_base(id), base) == 0) {
			return true;
		}
	}
	return false;
}

void *cw_hook_for_driver_pointer(const char *base, void *pointer, int version,
				 unsigned long long flags)
{
	const struct cw_hook *row;
	const char *exported;
	enum cw_hook_id id;

	cw_config_load();
	if (cw_config.getproc_off) {
		return pointer;
	}
	/* A driver that was not linked -Bsymbolic finds our own definitions. */
	if (is_own_entry(base, pointer)) {
		return pointer;
	}
	row = best_row(base, pointer, version, flags);
	if (row != NULL) {
		return cw_hook_entry((unsigned int)(row - cw_hooks));
	}
	if (best_row(base, NULL, version, flags) == NULL) {
		return pointer;
	}
	/*
	 * An address that the driver exports under some name says by that which ABI it has: a
	 * second driver's, or a version newer than the table.
	 */
	exported = cw_exported_name(pointer);
	if (exported != NULL) {
		id = cw_lookup_id(exported);
		if (id >= CW_HOOK_EXPORTED || !is_candidate(id, base)) {
			return pointer;
		}
	} else {
		row = best_row(base, NULL, version, flags);
		if (row->version > version) {
			return pointer;
		}
		id = (enum cw_hook_id)(row - cw_hooks);
	}
	cw_real_set(id, pointer);
	return cw_hook_entry(id);
}

/* After a real cuGetProcAddress that succeeded: exchanges what it stored. */
static void exchange_stored(const void *site, const char *symbol, void **pfn, int version,
			    cuuint64_t flags)
{
	int saved_errno = errno;

	cw_config_load();
	if (!cw_config.getproc_off) {
		cw_runtime_note_lookup(site);
	}
	if (symbol != NULL && pfn != NULL && *pfn != NULL) {
		*pfn = cw_hook_for_driver_pointer(symbol, *pfn, version, flags);
	}
	errno = saved_errno;
}

CUresult cw_get_proc_address_v1(enum cw_hook_id hook, const void *site, const char *symbol,
				void **pfn, int version, cuuint64_t flags)
{
	CUresult (*real)(const char *, void **, int, cuuint64_t) = cw_real_of(hook);
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(symbol, pfn, version, flags);
	if (result == CUDA_SUCCESS) {
		exchange_stored(site, symbol, pfn, version, flags);
	}
	return result;
}

CUresult cw_get_proc_address(enum cw_hook_id hook, const void *site, const char *symbol,
			     void **pfn, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	CUresult (*real)(const char *, void **, int, cuuint64_t,
			 CUdriverProcAddressQueryResult *) = cw_real_of(hook);
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(symbol, pfn, version, flags, status);
	if (result == CUDA_SUCCESS) {
		exchange_stored(site, symbol, pfn, version, flags);
	}
	return result;
}

/* ---- closing -------------------------------------------------------------------------------- */

typedef int (*close_fn)(void *handle);

/*
 * What stands behind us: another interposer's, in the end libc's. By tables: dlerror stays. Without
 * anything behind, as in another namespace, what there is.
 */
static close_fn find_close(void)
{
	const struct link_map *own = cw_home_of((const void *)(uintptr_t)&cw_hooks).object;
	void *anywhere = NULL;
	bool past_own = false;

	for (const struct link_map *object = cw_elf_first(); object != NULL;
	     object = object->l_next) {
		void *found = object != own ? cw_elf_symbol(object, "dlclose") : NULL;

		if (found != NULL && past_own) {
			return (close_fn)found;
		}
		anywhere = anywhere != NULL ? anywhere : found;
		past_own |= object == own;
	}
	return (close_fn)anywhere;
}

/* A library that has gone may come again elsewhere, and another one to where it was. */
CW_EXPORT int dlclose(void *handle)
{
	static _Atomic(close_fn) known;
	close_fn real = atomic_load_explicit(&known, memory_order_relaxed);
	int saved_errno;
	int result;

	if (real == NULL) {
		real = find_close();
		if (real == NULL) {
			return -1;
		}
		atomic_store_explicit(&known, real, memory_order_relaxed);
	}
	result = real(handle);
	saved_errno = errno;
	cw_resolve_closed();
	errno = saved_errno;
	return result;
}
