/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Naming a runtime call: as long as it lasts, the driver door's events on this thread show it,
 * and where the program called it, instead of the driver function beneath. Any thread.
 */
#ifndef CW_RUNTIME_DOOR_H
#define CW_RUNTIME_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "hooks.h"

/* What naming a call changed of the thread. */
struct cw_named {
	const void *site;
	uint16_t hook;
};

/*
 * Around the real function: names the call, unless the door is off, the runtime one that no
 * driver door hears, or the call part of another runtime call. To be given back to
 * cw_runtime_unname in any case.
 */
struct cw_named cw_runtime_name(enum cw_hook_id hook, const void *site, void *real);
void cw_runtime_unname(const struct cw_named *outer);

/* Both: the real function, and the call named; NULL where there is no such function. */
void *cw_runtime_begin(enum cw_hook_id hook, const void *site, struct cw_named *ret_outer);

/* Whether the door is to do the work, because no driver door hears this runtime (D-19). */
bool cw_runtime_is_alone(enum cw_hook_id hook, void *real);

#endif
