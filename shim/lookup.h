/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The look-up doors: dlsym and dlvsym, exported by lookup_*.S. A name that is not in
 * hooks.def goes on to the real function by a tail jump, with the caller's own return
 * address, since RTLD_NEXT and RTLD_DEFAULT are answered by it. That path belongs to
 * lookup.c and elf_read.c, which are built freestanding: sanitizers look up hundreds of names
 * before any libc function may be called. Names in the table go to door_lookup.c.
 */
#ifndef CW_LOOKUP_H
#define CW_LOOKUP_H

#include "hooks.h"

/* Returned in a register pair: `pass` set means jump to the real function after all. */
struct cw_lookup_result {
	void *answer;
	uintptr_t pass;
};

/*
 * The real functions. Until the first use they point at a stub that finds them; to call
 * them from C is right at any time, and then the shim is the caller that they see.
 */
extern void *(*cw_lookup_dlsym)(void *handle, const char *name);
extern void *(*cw_lookup_dlvsym)(void *handle, const char *name, const char *version);

/* Which row of the table is called so; CW_HOOK_NONE for any other name. Any context. */
enum cw_hook_id cw_lookup_id(const char *name);

/* Called by lookup_*.S alone; `version` is NULL for dlsym. */
struct cw_lookup_result cw_lookup_route(void *handle, const char *name, const char *version,
					const void *caller);
void cw_lookup_find_real(void);

/* The look-up of a name in the table, door_lookup.c. */
struct cw_lookup_result cw_lookup_named(enum cw_hook_id hook, void *handle, const char *name,
					const char *version, const void *caller);

#endif
