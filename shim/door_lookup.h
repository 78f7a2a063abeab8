/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind the look-up doors for names in the table: dlsym and dlvsym reach it
 * through lookup.c, cuGetProcAddress through doors.c. The program's own look-up is made first
 * and decides; only what it found is exchanged for a hook. Any thread, also in a callback.
 */
#ifndef CW_DOOR_LOOKUP_H
#define CW_DOOR_LOOKUP_H

#include "cuda_api.h"
#include "hooks.h"

/* The bodies of cuGetProcAddress: `hook` is the row called, `site` the return address. */
CUresult cw_get_proc_address_v1(enum cw_hook_id hook, const void *site, const char *symbol,
				void **pfn, int version, cuuint64_t flags);
CUresult cw_get_proc_address(enum cw_hook_id hook, const void *site, const char *symbol,
			     void **pfn, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status);

/*
 * The hook to hand out for `pointer`, which a real look-up by base name, version and flags
 * (of cuGetProcAddress) has just returned; `pointer` itself where it is none of ours.
 */
void *cw_hook_for_driver_pointer(const char *base, void *pointer, int version,
				 unsigned long long flags);

#endif
