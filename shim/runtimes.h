/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What resolve.c and runtimes.c share: the runtime libraries seen so far, each by a slot that
 * is taken once and never given to another library, so that what was cached about it stays
 * true. The first two functions are called inside a walk over the loaded objects only, which
 * the loader serialises; all else from any thread.
 */
#ifndef CW_RUNTIMES_H
#define CW_RUNTIMES_H

#include "resolve.h"

/* The slot of the runtime loaded at these addresses, taken now where it is new. */
int cw_runtime_slot(uintptr_t low, uintptr_t high);

/* Told the first runtime in load order by each walk; another only after that was unloaded. */
void cw_runtime_see_first(int slot);

/* Whether any has been seen. */
bool cw_runtimes_any(void);

/*
 * Forgets those that are in no bit of `seen`, a bit for each slot, and all call sites: other code
 * may lie there now.
 */
void cw_runtimes_forget(uint32_t seen);

/* The function of a hook in one runtime; not stored. */
void *cw_resolve_in(enum cw_hook_id hook, int runtime);

/* The runtime that an address lies in, and the one that the object around it is linked to. */
void cw_runtimes_of_site(const void *site, int *ret_inside, int *ret_linked);

#endif
