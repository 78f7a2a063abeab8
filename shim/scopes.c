/* SPDX-License-Identifier: Apache-2.0 */
#include "scopes.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "counts.h"
#include "lock.h"
#include "totals.h"

enum { SCOPE_DEPTH = 32 };

struct scope {
	uint64_t base; /* the total at the push */
	uint64_t peak; /* the highest total since, but for what the cell has not yet told */
	uint64_t allocations;
	uint64_t frees;
};

/* What is remembered of one device and kind. */
struct scopes {
	bool reset;     /* there was a reset */
	uint64_t value; /* given to it */
	uint64_t base;
	uint64_t peak;
	uint32_t depth;
	struct scope open[SCOPE_DEPTH];
};

static struct scopes *all; /* mapped when first wanted */
static struct cw_lock lock;

static struct scopes *get(int device, int kind)
{
	size_t count = (size_t)(CW_TOTAL_DEVICES + 1) * CUWEIR_KIND_COUNT;

	if (all == NULL) {
		void *memory = mmap(NULL, count * sizeof(*all), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED) {
			return NULL;
		}
		all = memory;
	}
	return &all[(size_t)(device + 1) * CUWEIR_KIND_COUNT + (size_t)kind];
}

static bool in_range(int device, int kind)
{
	return device >= -1 && device < CW_TOTAL_DEVICES && kind > CUWEIR_KIND_NONE &&
	       kind < CUWEIR_KIND_COUNT;
}

static void raise_to(uint64_t *peak, uint64_t value)
{
	*peak = value > *peak ? value : *peak;
}

/* Sets a mark: what was highest until now goes to everything that is open. Lock held. */
static uint64_t mark(struct scopes *scopes, int device, int kind)
{
	uint64_t highest = cw_total_mark(device, (unsigned int)kind);

	raise_to(&scopes->peak, highest);
	for (uint32_t i = 0; i < scopes->depth; i++) {
		raise_to(&scopes->open[i].peak, highest);
	}
	return cw_total_current(device, (unsigned int)kind);
}

int cw_scope_reset(int device, int kind, uint64_t value)
{
	struct scopes *scopes;
	int status = CUWEIR_ERROR_OUT_OF_MEMORY;

	if (!in_range(device, kind)) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	cw_lock_acquire(&lock);
	scopes = get(device, kind);
	if (scopes != NULL) {
		scopes->base = mark(scopes, device, kind);
		scopes->peak = scopes->base;
		scopes->value = value;
		scopes->reset = true;
		status = CUWEIR_SUCCESS;
	}
	cw_lock_release(&lock);
	return status;
}

int cw_scope_peak(int device, int kind, uint64_t *ret_peak)
{
	const struct scopes *scopes;
	uint64_t peak;

	if (!in_range(device, kind) || ret_peak == NULL) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	cw_lock_acquire(&lock);
	scopes = all != NULL ? get(device, kind) : NULL;
	if (scopes == NULL || !scopes->reset) {
		peak = cw_total_peak(device, (unsigned int)kind);
	} else {
		peak = cw_total_peak_since_mark(device, (unsigned int)kind);
		raise_to(&peak, scopes->peak);
		peak = peak - scopes->base + scopes->value;
	}
	cw_lock_release(&lock);
	*ret_peak = peak;
	return CUWEIR_SUCCESS;
}

int cw_scope_push(int device, int kind)
{
	struct scopes *scopes;
	int status = CUWEIR_ERROR_OUT_OF_MEMORY;

	if (!in_range(device, kind)) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	cw_lock_acquire(&lock);
	scopes = get(device, kind);
	if (scopes != NULL && scopes->depth < SCOPE_DEPTH) {
		uint64_t now = mark(scopes, device, kind);
		struct scope *scope = &scopes->open[scopes->depth++];

		scope->base = now;
		scope->peak = now;
		cw_counts_read(device, (unsigned int)kind, &scope->allocations, &scope->frees);
		status = CUWEIR_SUCCESS;
	}
	cw_lock_release(&lock);
	return status;
}

static void fill(struct cuweir_scope *ret, const struct scope *scope, uint64_t now, int device,
		 int kind)
{
	struct cuweir_scope filled = { .struct_size = ret->struct_size };
	uint64_t allocations;
	uint64_t frees;

	cw_counts_read(device, (unsigned int)kind, &allocations, &frees);
	filled.current = (int64_t)(now - scope->base);
	filled.peak = scope->peak - scope->base;
	filled.allocations = allocations - scope->allocations;
	filled.frees = frees - scope->frees;
	memcpy(ret, &filled, ret->struct_size < sizeof(filled) ? ret->struct_size : sizeof(filled));
}

int cw_scope_pop(int device, int kind, struct cuweir_scope *ret_scope)
{
	struct scopes *scopes;
	int status = CUWEIR_ERROR_ILLEGAL_STATE;

	if (!in_range(device, kind) ||
	    (ret_scope != NULL &&
	     ret_scope->struct_size < offsetof(struct cuweir_scope, reserved))) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	cw_lock_acquire(&lock);
	scopes = all != NULL ? get(device, kind) : NULL;
	if (scopes != NULL && scopes->depth != 0) {
		uint64_t now = mark(scopes, device, kind);

		scopes->depth--;
		if (ret_scope != NULL) {
			fill(ret_scope, &scopes->open[scopes->depth], now, device, kind);
		}
		status = CUWEIR_SUCCESS;
	}
	cw_lock_release(&lock);
	return status;
}

/* The child has no memory of the parent's, and so no scopes of it. */
void cw_scopes_postfork_child(void)
{
	cw_lock_reset(&lock);
	if (all != NULL) {
		munmap(all, (size_t)(CW_TOTAL_DEVICES + 1) * CUWEIR_KIND_COUNT * sizeof(*all));
		all = NULL;
	}
}
