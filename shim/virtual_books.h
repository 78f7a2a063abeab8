/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who still has hold of the physical memory of cuMemCreate. It lives until the last reference of
 * a handle is released and the last mapping is gone (C-90, C-91), in either order, and the
 * driver may give a released handle's value to other memory while the first is still mapped. So
 * memory has a number of ours, and leads to it:
 *
 *	handle  -> number and references    (CW_HANDLE_VIRTUAL)
 *	mapping -> number and size          (CW_HANDLE_MAPPING, by its start)
 *	number  -> references and mappings  (physical.h)
 *
 * Handles and mappings of what is no memory (multicast objects), or has no record, lead to
 * number 0, which nothing holds: they are known and mean nothing.
 *
 * Each call that may give memory back has a begin before the real call, which takes what it ends
 * into a batch, and an end after it, which makes good what did not happen. Any thread; counts
 * change under the handle table's locks, and none is held between the two.
 */
#ifndef CW_VIRTUAL_BOOKS_H
#define CW_VIRTUAL_BOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "batch.h"
#include "cuda_api.h"
#include "hooks.h"

/*
 * The driver has handed out this handle: it leads to `number`, which has one hold for it. Where
 * it led elsewhere its releases took a way that no door hears, and what it held goes. False
 * where there is no room.
 */
bool cw_virtual_handle(uint64_t handle, uint64_t number);

/* The number, held once more for a mapping to come; 0 for an unknown handle. */
uint64_t cw_virtual_hold(uint64_t handle);

/* The hold for a mapping that did not come about. */
void cw_virtual_let_go(uint64_t number);

/* The mapping is there; the hold is its. */
void cw_virtual_mapped(uint64_t start, uint64_t size, uint64_t number);

/* cuMemRetainAllocationHandle gave this handle for an address. */
void cw_virtual_retained(uint64_t handle, uint64_t address);

/* One reference less. False: nobody knows the handle. */
struct cw_virtual_release {
	uint64_t handle;
	uint64_t number;
	uint64_t state; /* of the number, should it come back */
};

bool cw_virtual_release_begin(struct cw_virtual_release *release, uint64_t handle,
			      struct cw_batch *batch);
void cw_virtual_release_undo(const struct cw_virtual_release *release);

/* All mappings that begin in the range. */
void cw_virtual_unmap_begin(uint64_t start, uint64_t size, struct cw_batch *batch);
void cw_virtual_unmap_end(uint64_t start, uint64_t size, bool unmapped);

/*
 * Memory that came by a shareable handle. What this process exported, or has imported before, is
 * known again where the handle says so, and then it is one more reference; other memory's size
 * shows only when it is mapped.
 */
void cw_virtual_exported(uint64_t handle, const void *shareable, int type);
void cw_virtual_imported(uint64_t handle, const void *shareable, int type, int device);

/* Reserved address space: a gauge and a record, and no event. */
void cw_virtual_reserved(enum cw_hook_id hook, const void *site, uint64_t start, uint64_t size);

/* The reservation's record is taken out; false where there was none. */
bool cw_virtual_range_take(uint64_t start, struct cw_record *ret);
void cw_virtual_range_settle(const struct cw_record *record, bool freed);

#endif
