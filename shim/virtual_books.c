/* SPDX-License-Identifier: Apache-2.0 */
#include "virtual_books.h"

#include <cuweir/policy.h>

#include "counts.h"
#include "handles.h"
#include "ledger.h"
#include "origins.h"
#include "physical.h"
#include "stacks.h"
#include "thread.h"
#include "totals.h"
#include "virtual_share.h"

/* In a mapping's size: a call that unmaps it is on its way. Sizes are multiples of pages. */
enum { GOING = 1 };

static uint64_t size_of(const struct cw_handle *mapping)
{
	return mapping->value2 & ~(uint64_t)GOING;
}

/* Holds that nobody will give back: their calls were not heard, or did not come about. */
static void drop_now(uint64_t number, uint64_t holds)
{
	struct cw_batch batch;

	cw_batch_begin(&batch, CW_HOOK_cuMemRelease, NULL);
	cw_physical_drop(number, holds, &batch, NULL);
	cw_batch_announce(&batch);
	(void)cw_batch_finish(&batch, CUDA_SUCCESS);
}

/* ---- handles ------------------------------------------------------------------------------ */

bool cw_virtual_handle(uint64_t handle, uint64_t number)
{
	struct cw_handle stale;

	if (CW_UNLIKELY(cw_handles_remove(CW_HANDLE_VIRTUAL, handle, &stale))) {
		drop_now(stale.value, stale.value2);
	}
	return cw_handles_set(CW_HANDLE_VIRTUAL, handle, number, 1) >= 0;
}

static enum cw_handle_verdict one_reference_less(struct cw_handle *entry, void *argument)
{
	(void)argument;
	entry->value2 -= entry->value2 > 0;
	return entry->value2 == 0 ? CW_HANDLE_REMOVE : CW_HANDLE_KEEP;
}

uint64_t cw_virtual_hold(uint64_t handle)
{
	struct cw_handle entry;

	if (cw_handles_get(CW_HANDLE_VIRTUAL, handle, &entry) && cw_physical_hold(entry.value)) {
		return entry.value;
	}
	return 0;
}

void cw_virtual_let_go(uint64_t number)
{
	if (number != 0) {
		drop_now(number, 1);
	}
}

/* Finds the mapping that holds an address: by its start, or else by looking at all. */
struct search {
	uint64_t address;
	uint64_t number;
	bool found;
};

static bool holds_address(const struct cw_handle *mapping, void *argument)
{
	struct search *search = argument;

	if (search->address - mapping->key < size_of(mapping)) {
		search->number = mapping->value;
		search->found = true;
	}
	return !search->found;
}

static uint64_t number_at(uint64_t address)
{
	struct search search = { .address = address };
	struct cw_handle mapping;

	if (cw_handles_get(CW_HANDLE_MAPPING, address, &mapping)) {
		return mapping.value;
	}
	cw_handles_walk(CW_HANDLE_MAPPING, holds_address, &search);
	return search.number;
}

/* The handle may have been released before; the mapping knows what it stood for (C-94). */
void cw_virtual_retained(uint64_t handle, uint64_t address)
{
	struct cw_handle entry;

	if (cw_handles_update(CW_HANDLE_VIRTUAL, handle, cw_handle_one_more, NULL, &entry)) {
		cw_physical_hold(entry.value);
		return;
	}
	entry.value = number_at(address);
	if (cw_handles_set(CW_HANDLE_VIRTUAL, handle, entry.value, 1) >= 0) {
		cw_physical_hold(entry.value);
	}
}

bool cw_virtual_release_begin(struct cw_virtual_release *release, uint64_t handle,
			      struct cw_batch *batch)
{
	struct cw_handle entry;

	/* The last reference goes out before the call: the value may come again at once. */
	if (!cw_handles_update(CW_HANDLE_VIRTUAL, handle, one_reference_less, NULL, &entry)) {
		return false;
	}
	release->handle = handle;
	release->number = entry.value;
	cw_physical_drop(entry.value, 1, batch, &release->state);
	return true;
}

void cw_virtual_release_undo(const struct cw_virtual_release *release)
{
	if (!cw_handles_update(CW_HANDLE_VIRTUAL, release->handle, cw_handle_one_more, NULL,
			       NULL)) {
		cw_handles_put(CW_HANDLE_VIRTUAL, release->handle, release->number, 1);
	}
	cw_physical_restore(release->number, release->state);
}

/* ---- mappings ----------------------------------------------------------------------------- */

void cw_virtual_mapped(uint64_t start, uint64_t size, uint64_t number)
{
	struct cw_handle stale;

	/* Unmapped by a way that no door hears. */
	if (CW_UNLIKELY(cw_handles_remove(CW_HANDLE_MAPPING, start, &stale)) &&
	    (stale.value2 & GOING) == 0) {
		cw_virtual_let_go(stale.value);
	}
	if (cw_handles_set(CW_HANDLE_MAPPING, start, number, size) < 0) {
		cw_count_untracked_allocation();
		cw_virtual_let_go(number);
	}
}

struct range {
	uint64_t start;
	uint64_t size;
	bool (*visit)(const struct cw_handle *mapping, void *argument);
	struct cw_batch *batch;
	bool unmapped;
};

static bool visit_within(const struct cw_handle *mapping, void *argument)
{
	struct range *range = argument;

	return mapping->key - range->start >= range->size || range->visit(mapping, range);
}

/*
 * What is unmapped is whole mappings side by side (C-91), so that each leads to the next. Only
 * where one is missing, whose making no door heard, all have to be looked at.
 */
static void each_mapping(struct range *range)
{
	uint64_t at = 0;
	struct cw_handle mapping;

	while (at < range->size &&
	       cw_handles_get(CW_HANDLE_MAPPING, range->start + at, &mapping)) {
		range->visit(&mapping, range);
		at += size_of(&mapping);
	}
	if (at < range->size) {
		cw_handles_walk(CW_HANDLE_MAPPING, visit_within, range);
	}
}

static enum cw_handle_verdict mark(struct cw_handle *entry, void *argument)
{
	bool *marked = argument;

	*marked = (entry->value2 & GOING) == 0;
	entry->value2 |= GOING;
	return CW_HANDLE_KEEP;
}

static bool mark_and_drop(const struct cw_handle *mapping, void *argument)
{
	struct range *range = argument;
	struct cw_handle entry;
	bool marked = false;

	if (cw_handles_update(CW_HANDLE_MAPPING, mapping->key, mark, &marked, &entry) && marked) {
		cw_physical_drop(entry.value, 1, range->batch, NULL);
	}
	return true;
}

void cw_virtual_unmap_begin(uint64_t start, uint64_t size, struct cw_batch *batch)
{
	struct range range = { start, size, mark_and_drop, batch, false };

	each_mapping(&range);
}

struct outcome {
	bool unmapped;
	bool was_going;
};

static enum cw_handle_verdict unmark(struct cw_handle *entry, void *argument)
{
	struct outcome *outcome = argument;

	/* One that is not marked is a new mapping of another thread's. */
	outcome->was_going = (entry->value2 & GOING) != 0;
	entry->value2 &= ~(uint64_t)GOING;
	return outcome->was_going && outcome->unmapped ? CW_HANDLE_REMOVE : CW_HANDLE_KEEP;
}

static bool remove_or_restore(const struct cw_handle *mapping, void *argument)
{
	const struct range *range = argument;
	struct outcome outcome = { .unmapped = range->unmapped };
	struct cw_handle entry;

	if (cw_handles_update(CW_HANDLE_MAPPING, mapping->key, unmark, &outcome, &entry) &&
	    outcome.was_going && !range->unmapped) {
		cw_physical_restore(entry.value, 0);
	}
	return true;
}

void cw_virtual_unmap_end(uint64_t start, uint64_t size, bool unmapped)
{
	struct range range = { start, size, remove_or_restore, NULL, unmapped };

	each_mapping(&range);
}

/* ---- shareable handles -------------------------------------------------------------------- */

static void remember(uint64_t identity, uint64_t number)
{
	if (identity != 0) {
		cw_share_remember(identity, number);
		cw_physical_shared(number);
	}
}

void cw_virtual_exported(uint64_t handle, const void *shareable, int type)
{
	struct cw_handle entry;

	if (cw_handles_get(CW_HANDLE_VIRTUAL, handle, &entry) && entry.value != 0) {
		remember(cw_share_identity(shareable, type), entry.value);
	}
}

void cw_virtual_imported(uint64_t handle, const void *shareable, int type, int device)
{
	uint64_t identity = cw_share_identity(shareable, type);
	uint64_t number = cw_share_find(identity);
	struct cw_handle entry;

	if (cw_handles_update(CW_HANDLE_VIRTUAL, handle, cw_handle_one_more, NULL, &entry)) {
		cw_physical_hold(entry.value);
		return;
	}
	if (!cw_physical_hold(number)) {
		number = cw_physical_number();
		if (!cw_physical_enter_import(number, device)) {
			cw_count_untracked_allocation();
			return;
		}
		remember(identity, number);
	}
	if (!cw_virtual_handle(handle, number)) {
		cw_virtual_let_go(number);
	}
}

/* ---- address space ------------------------------------------------------------------------ */

/* Address space belongs to the process, and to no device. */
void cw_virtual_reserved(enum cw_hook_id hook, const void *site, uint64_t start, uint64_t size)
{
	struct cw_origin origin = {
		.hook = (uint16_t)hook,
		.kind = CUWEIR_KIND_VIRTUAL,
		.device = CW_TOTAL_NO_DEVICE,
		.site = cw_stack_of(site),
	};
	uint32_t index = cw_origin_intern(&origin);
	struct cw_record stale;
	int replaced = -1;

	if (index != CW_ORIGIN_UNKNOWN) {
		replaced = cw_ledger_replace(cw_key(CW_KEY_RANGE, start), size, index, &stale);
	}
	if (replaced < 0) {
		cw_count_untracked_allocation();
		return;
	}
	if (replaced > 0) {
		cw_virtual_range_settle(&stale, true);
	}
	cw_total_add(CW_TOTAL_NO_DEVICE, CUWEIR_KIND_VIRTUAL, size);
	cw_count_allocation(CW_TOTAL_NO_DEVICE, CUWEIR_KIND_VIRTUAL);
}

bool cw_virtual_range_take(uint64_t start, struct cw_record *ret)
{
	return cw_ledger_remove(cw_key(CW_KEY_RANGE, start), ret);
}

void cw_virtual_range_settle(const struct cw_record *record, bool freed)
{
	if (!freed) {
		cw_ledger_insert(record->address, record->size, record->origin);
		return;
	}
	cw_total_sub(CW_TOTAL_NO_DEVICE, CUWEIR_KIND_VIRTUAL, record->size);
	cw_count_free(CW_TOTAL_NO_DEVICE, CUWEIR_KIND_VIRTUAL);
}
