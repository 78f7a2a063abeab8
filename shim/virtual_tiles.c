/* SPDX-License-Identifier: Apache-2.0 */
#include "virtual_tiles.h"

#include "handles.h"
#include "physical.h"
#include "virtual_books.h"

/* Namespace in handles.h: tile -> number and state, array. */
enum { TILE_SPACE = 98 };

/* In the first value, above the number: what a call on its way does to the tile. */
#define GOING (UINT64_C(1) << 63)

/* Most programs never make a tile, and then no array's end looks for any. */
static bool tiles_made;

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static uint64_t array_of(const CUarrayMapInfo *info)
{
	return (uint64_t)(uintptr_t)info->resource.array;
}

/* Every field of the region that says which, and none that is padding. */
static uint64_t key_of(const CUarrayMapInfo *info)
{
	uint64_t key = mix(mix(1, array_of(info)), (uint64_t)info->subresourceType);

	if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
		key = mix(key, info->subresource.miptail.layer);
		return mix(mix(key, info->subresource.miptail.offset),
			   info->subresource.miptail.size);
	}
	key = mix(key, info->subresource.sparseLevel.level);
	key = mix(key, info->subresource.sparseLevel.layer);
	key = mix(key, info->subresource.sparseLevel.offsetX);
	key = mix(key, info->subresource.sparseLevel.offsetY);
	key = mix(key, info->subresource.sparseLevel.offsetZ);
	key = mix(key, info->subresource.sparseLevel.extentWidth);
	key = mix(key, info->subresource.sparseLevel.extentHeight);
	return mix(key, info->subresource.sparseLevel.extentDepth);
}

static enum cw_handle_verdict mark(struct cw_handle *entry, void *argument)
{
	bool *marked = argument;

	*marked = (entry->value & GOING) == 0;
	entry->value |= GOING;
	return CW_HANDLE_KEEP;
}

void cw_tiles_begin(const CUarrayMapInfo *list, unsigned int count, struct cw_batch *batch)
{
	for (unsigned int i = 0; i < count; i++) {
		struct cw_handle entry;
		bool marked = false;

		/* What was in the tile goes, and what comes is held before it is there. */
		if (cw_handles_update(TILE_SPACE, key_of(&list[i]), mark, &marked, &entry) &&
		    marked) {
			cw_physical_drop(entry.value & ~GOING, 1, batch, NULL);
		}
		if (list[i].memOperationType == CU_MEM_OPERATION_TYPE_MAP) {
			cw_virtual_hold(list[i].memHandle.memHandle);
		}
	}
}

static enum cw_handle_verdict unmark(struct cw_handle *entry, void *argument)
{
	bool *was_going = argument;

	*was_going = (entry->value & GOING) != 0;
	entry->value &= ~GOING;
	return CW_HANDLE_KEEP;
}

/* The number that cw_tiles_begin held. */
static uint64_t number_of(const CUarrayMapInfo *info)
{
	struct cw_handle entry;

	return cw_handles_get(CW_HANDLE_VIRTUAL, info->memHandle.memHandle, &entry) ? entry.value
										    : 0;
}

static void restore(const CUarrayMapInfo *info)
{
	struct cw_handle entry;
	bool was_going = false;

	if (cw_handles_update(TILE_SPACE, key_of(info), unmark, &was_going, &entry) &&
	    was_going) {
		cw_physical_restore(entry.value, 0);
	}
	if (info->memOperationType == CU_MEM_OPERATION_TYPE_MAP) {
		cw_virtual_let_go(number_of(info));
	}
}

void cw_tiles_end(const CUarrayMapInfo *list, unsigned int count, bool done)
{
	for (unsigned int i = 0; i < count; i++) {
		uint64_t number;

		if (!done) {
			restore(&list[i]);
			continue;
		}
		number = list[i].memOperationType == CU_MEM_OPERATION_TYPE_MAP
				 ? number_of(&list[i]) : 0;
		if (number != 0) {
			__atomic_store_n(&tiles_made, true, __ATOMIC_RELAXED);
		}
		if (number == 0) {
			cw_handles_remove(TILE_SPACE, key_of(&list[i]), NULL);
		} else if (cw_handles_set(TILE_SPACE, key_of(&list[i]), number,
					  array_of(&list[i])) < 0) {
			cw_virtual_let_go(number);
		}
	}
}

struct ending {
	uint64_t array;
	uint64_t key;
	bool found;
};

static bool of_array(const struct cw_handle *entry, void *argument)
{
	struct ending *ending = argument;

	ending->found = entry->value2 == ending->array;
	ending->key = entry->key;
	return !ending->found;
}

void cw_tiles_array_ended(enum cw_hook_id hook, const void *site, uint64_t array)
{
	struct ending ending = { .array = array, .found = true };
	struct cw_batch batch;
	struct cw_handle entry;

	if (!__atomic_load_n(&tiles_made, __ATOMIC_RELAXED)) {
		return;
	}
	cw_batch_begin(&batch, hook, site);
	while (ending.found) {
		ending.found = false;
		cw_handles_walk(TILE_SPACE, of_array, &ending);
		if (ending.found && cw_handles_remove(TILE_SPACE, ending.key, &entry) &&
		    (entry.value & GOING) == 0) {
			cw_physical_drop(entry.value, 1, &batch, NULL);
		}
	}
	cw_batch_announce(&batch);
	(void)cw_batch_finish(&batch, CUDA_SUCCESS);
}
