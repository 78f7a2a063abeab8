/* SPDX-License-Identifier: Apache-2.0 */
#include "physical.h"

#include "handles.h"
#include "virtual_share.h"

/* Namespace in handles.h: number -> holds, and the flags below. */
enum { PHYSICAL_SPACE = 96 };

enum {
	UNSIZED = 1u << 0, /* an import that has not been mapped: there is no record */
	SHARED = 1u << 1,
	DEVICE_SHIFT = 8,  /* an import's device, plus 1 */
};

uint64_t cw_physical_number(void)
{
	static uint64_t last;

	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

bool cw_physical_enter(uint64_t number)
{
	return cw_handles_set(PHYSICAL_SPACE, number, 1, 0) >= 0;
}

bool cw_physical_enter_import(uint64_t number, int device)
{
	return cw_handles_set(PHYSICAL_SPACE, number, 1,
			      (uint64_t)(device + 1) << DEVICE_SHIFT | UNSIZED) >= 0;
}

static enum cw_handle_verdict one_more(struct cw_handle *entry, void *argument)
{
	(void)argument;
	entry->value++;
	return CW_HANDLE_KEEP;
}

bool cw_physical_hold(uint64_t number)
{
	return number != 0 && cw_handles_update(PHYSICAL_SPACE, number, one_more, NULL, NULL);
}

static enum cw_handle_verdict less(struct cw_handle *entry, void *argument)
{
	const uint64_t *holds = argument;

	entry->value -= entry->value < *holds ? entry->value : *holds;
	return entry->value == 0 ? CW_HANDLE_REMOVE : CW_HANDLE_KEEP;
}

void cw_physical_drop(uint64_t number, uint64_t holds, struct cw_batch *batch,
		      uint64_t *ret_state)
{
	struct cw_handle entry = { 0 };

	if (number != 0 && cw_handles_update(PHYSICAL_SPACE, number, less, &holds, &entry) &&
	    entry.value == 0 && (entry.value2 & UNSIZED) == 0) {
		cw_batch_take(batch, cw_key(CW_KEY_PHYSICAL, number));
		if ((entry.value2 & SHARED) != 0) {
			cw_share_forget(number);
		}
	}
	if (ret_state != NULL) {
		*ret_state = entry.value2 & ~(uint64_t)SHARED;
	}
}

void cw_physical_restore(uint64_t number, uint64_t state)
{
	if (number != 0 && !cw_physical_hold(number)) {
		cw_handles_put(PHYSICAL_SPACE, number, 1, state);
	}
}

static enum cw_handle_verdict set_shared(struct cw_handle *entry, void *argument)
{
	(void)argument;
	entry->value2 |= SHARED;
	return CW_HANDLE_KEEP;
}

void cw_physical_shared(uint64_t number)
{
	cw_handles_update(PHYSICAL_SPACE, number, set_shared, NULL, NULL);
}

static enum cw_handle_verdict take_size(struct cw_handle *entry, void *argument)
{
	uint64_t *state = argument;

	*state = entry->value2;
	entry->value2 &= ~(uint64_t)UNSIZED;
	return CW_HANDLE_KEEP;
}

bool cw_physical_first_mapping(uint64_t number, int *ret_device)
{
	uint64_t state = 0;

	cw_handles_update(PHYSICAL_SPACE, number, take_size, &state, NULL);
	*ret_device = (int)(state >> DEVICE_SHIFT) - 1;
	return (state & UNSIZED) != 0;
}
