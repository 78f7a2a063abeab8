/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the real functions are (D-18): in the ELF tables of the CUDA libraries that the
 * program has loaded. Nothing is opened, and dlerror() is not touched. Any thread, also in a
 * callback or a fork child; not in the reject path of the look-up doors. No lock of ours is
 * held: all writing happens inside dl_iterate_phdr(), which the loader serialises.
 */
#ifndef CW_RESOLVE_H
#define CW_RESOLVE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#include "common.h"
#include "hooks.h"

/* Whose an object is, by its soname or file name. */
enum cw_family {
	CW_FAMILY_OTHER,
	CW_FAMILY_OWN,
	CW_FAMILY_DRIVER,  /* libcuda.so* */
	CW_FAMILY_RUNTIME, /* libcudart* */
	CW_FAMILY_NVML,    /* libnvidia-ml.so* */
};

/* A runtime instance is known by a small number; this one is none. */
#define CW_NO_RUNTIME (-1)

/* The object an address lies in. */
struct cw_home {
	enum cw_family family;
	int runtime;             /* which runtime instance, or CW_NO_RUNTIME */
	bool first_runtime;      /* the one whose functions are handed out as hooks */
	struct link_map *object; /* also a handle for dlsym; NULL where there is no object */
};

struct cw_home cw_home_of(const void *address);

static inline struct link_map *cw_handle_of(const void *address)
{
	return cw_home_of(address).object;
}

/*
 * Finds, stores and returns the real function of a hook; NULL where nothing is loaded. Where
 * no CUDA library is, but a library behind us defines the name itself, its definition is
 * returned and not stored.
 */
void *cw_resolve(enum cw_hook_id hook);

/* The real function of a hook if it was found before. */
static inline void *cw_real_known(enum cw_hook_id hook)
{
	return atomic_load_explicit(&cw_real[hook], memory_order_acquire);
}

static inline bool cw_real_is_known(enum cw_hook_id hook)
{
	/* Without _Atomic, which the builtins of some compilers refuse. */
	return CW_IS_SET(*(void *const *)(const void *)&cw_real[hook], __ATOMIC_RELAXED);
}

/* The real function of a hook, NULL where there is none. */
static inline void *cw_real_of(enum cw_hook_id hook)
{
	void *real = atomic_load_explicit(&cw_real[hook], memory_order_acquire);

	return real != NULL ? real : cw_resolve(hook);
}

static inline void cw_real_set(enum cw_hook_id hook, void *real)
{
	atomic_store_explicit(&cw_real[hook], real, memory_order_release);
}

/* All of a door's. */
void cw_real_forget(enum cw_door door);

/* Another function of the library that holds this one; NULL where there is none. */
void *cw_function_beside(const void *function, const char *name);

/*
 * The same for a runtime hook called from `site`: where several runtimes are loaded, the one
 * that the caller lies in or is linked to, else the first.
 */
void *cw_real_runtime(enum cw_hook_id hook, const void *site);

/* After a library may have been unloaded: what was known of it is forgotten. */
void cw_resolve_closed(void);

/* Around a fork: see resolve.c. */
void cw_resolve_prefork(void);
void cw_resolve_postfork_parent(void);
void cw_resolve_postfork_child(void);

/* Whether a driver is loaded of which no function was ever asked for or called here. */
bool cw_driver_unheard(void);

/* Called by the look-up doors with the return address of a look-up of a driver function. */
void cw_runtime_note_lookup(const void *site);

/*
 * Whether the runtime that holds this function has looked up driver functions through our
 * doors, so that the driver door hears what it does (D-19). Asked before its first call, this
 * has it look them up. Not while a lock is held.
 */
enum cw_hearing {
	CW_RUNTIME_HEARD,
	CW_RUNTIME_ALONE,
	CW_RUNTIME_BROKEN, /* it finds no driver or device: nothing to do but forward */
};
enum cw_hearing cw_runtime_hearing(const void *runtime_function);

/*
 * The device that this thread's next call of that runtime will be for: 0, the runtime's error,
 * or -1 where it has no cudaGetDevice.
 */
int cw_runtime_device(const void *runtime_function, int *ret_device);

/*
 * Whether an object defines the name, ours and the one that `caller` lies in excepted; and
 * the name under which a loaded object exports a function at this address, or NULL.
 */
bool cw_defined_elsewhere(const char *name, const void *caller);
const char *cw_exported_name(const void *address);

#endif
