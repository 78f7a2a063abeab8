/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory by number: how many handles' references and mappings hold it. Numbers are
 * never used again; 0 is none. The record is in the ledger under cw_key(CW_KEY_PHYSICAL, number).
 *
 * Any thread; a count changes under the handle table's lock, so that exactly one caller takes
 * away the last hold.
 */
#ifndef CW_PHYSICAL_H
#define CW_PHYSICAL_H

#include <stdbool.h>
#include <stdint.h>

#include "batch.h"

/* A number for new memory, not in the table yet. */
uint64_t cw_physical_number(void);

/* Puts it in the table, held once. An import has no size yet, and may be of this device. */
bool cw_physical_enter(uint64_t number);
bool cw_physical_enter_import(uint64_t number, int device);

/* One hold more; false where the memory is gone, or the number 0. */
bool cw_physical_hold(uint64_t number);

/*
 * Takes `holds` away; what that ends goes into the batch. *ret_state, unless NULL, is what
 * cw_physical_restore wants.
 */
void cw_physical_drop(uint64_t number, uint64_t holds, struct cw_batch *batch,
		      uint64_t *ret_state);

/* One hold comes back, and the number too where it went with it. */
void cw_physical_restore(uint64_t number, uint64_t state);

/* The memory is known by an identity (virtual_share.c), to be forgotten with it. */
void cw_physical_shared(uint64_t number);

/* True, once, for an import whose size was not known: the first mapping shows it. */
bool cw_physical_first_mapping(uint64_t number, int *ret_device);

#endif
