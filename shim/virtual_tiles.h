/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles of sparse arrays: mapping one takes no memory, but holds that of the handle, which may
 * be released before the tile is unmapped. A tile is known by its array and the exact region
 * that was mapped; unmapping another cut of it is not understood, and then the array's end is
 * the end of the hold.
 */
#ifndef CW_VIRTUAL_TILES_H
#define CW_VIRTUAL_TILES_H

#include <stdbool.h>
#include <stdint.h>

#include "batch.h"
#include "cuda_api.h"

/* Before cuMemMapArrayAsync, and after it. */
void cw_tiles_begin(const CUarrayMapInfo *list, unsigned int count, struct cw_batch *batch);
void cw_tiles_end(const CUarrayMapInfo *list, unsigned int count, bool done);

/* An array or mipmapped array is gone, and what is mapped to it with it. */
void cw_tiles_array_ended(enum cw_hook_id hook, const void *site, uint64_t array);

#endif
