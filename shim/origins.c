/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Origins are found again through the handles' table, under a hash of the tuple, made odd
 * (0 means none below); tuples that share all of it use the odd numbers after it. Calls
 * what handles.c calls.
 */
#include "origins.h"

#include "handles.h"
#include "lock.h"
#include "table.h"
#include "totals.h"

/* Two tuples of one hash in 2^20 are a matter of luck at 10^-8; eight are none. */
#define COLLISIONS 8

const struct cw_origin_entry cw_origin_unknown_ = {.origin.device = -1};
struct cw_origin_entry cw_origin_first_[CW_ORIGIN_FIRST];
struct cw_origin_entry *cw_origin_chunks_[CW_ORIGIN_LIMIT / CW_ORIGIN_CHUNK];
uint32_t cw_origin_count_ = 1;

/* Guesses: each is checked against the tuple, so a fork child's stale ones do no harm. */
_Thread_local uint32_t cw_origin_recent_[4] __attribute__((tls_model("initial-exec")));

static struct cw_lock lock; /* appending */
static uint64_t degraded;

static uint64_t origin_hash(const struct cw_origin *origin)
{
	uint64_t head, hash;

	__builtin_memcpy(&head, origin, sizeof(head));
	hash = cw_hash(head);
	hash = cw_hash((hash ^ hash >> 32) + origin->context);
	hash = cw_hash((hash ^ hash >> 32) + origin->site);
	return (hash ^ hash >> 32) | 1;
}

/* The index, or CW_ORIGIN_UNKNOWN and the first free number for it. */
static uint32_t look_up(const struct cw_origin *origin, uint64_t *ret_free)
{
	uint64_t hash = origin_hash(origin);

	for (unsigned i = 0; i < 2 * COLLISIONS; i += 2) {
		struct cw_handle entry;

		if (!cw_handles_get(CW_HANDLE_ORIGIN, hash + i, &entry)) {
			*ret_free = hash + i;
			return CW_ORIGIN_UNKNOWN;
		}
		if (cw_origin_equal(cw_origin_get((uint32_t)entry.value), origin)) {
			return (uint32_t)entry.value;
		}
	}
	*ret_free = 0;
	return CW_ORIGIN_UNKNOWN;
}

/* Lock held. Where the entry of this index lies; NULL without memory. */
static struct cw_origin_entry *place_of(uint32_t index)
{
	struct cw_origin_entry *chunk;

	if (index < CW_ORIGIN_FIRST) {
		return &cw_origin_first_[index];
	}
	chunk = cw_origin_chunks_[index / CW_ORIGIN_CHUNK];
	if (chunk == NULL) {
		chunk = cw_table_map(CW_ORIGIN_CHUNK * sizeof(*chunk));
		if (chunk == NULL) {
			return NULL;
		}
		__atomic_store_n(&cw_origin_chunks_[index / CW_ORIGIN_CHUNK], chunk,
			__ATOMIC_RELEASE);
	}
	return &chunk[index % CW_ORIGIN_CHUNK];
}

static uint32_t limit_of(const struct cw_origin *origin)
{
	if (origin->site != 0) {
		return CW_ORIGIN_FULL_LIMIT;
	}
	return origin->context != 0 || origin->hook != 0 ? CW_ORIGIN_SITELESS_LIMIT :
		CW_ORIGIN_LIMIT;
}

/* Lock held. */
static uint32_t append(const struct cw_origin *origin)
{
	uint32_t index;
	uint64_t key = 0;
	struct cw_origin_entry *place;

	index = look_up(origin, &key);
	if (index != CW_ORIGIN_UNKNOWN) {
		return index;
	}
	index = cw_origin_count_;
	if (key == 0 || index >= limit_of(origin)) {
		return CW_ORIGIN_UNKNOWN;
	}
	place = place_of(index);
	if (place == NULL) {
		return CW_ORIGIN_UNKNOWN;
	}
	place->origin = *origin;
	place->total = origin->policy != 0 || (origin->flags & CW_ORIGIN_PITCHED) != 0 ?
		NULL : cw_total_cell(origin->device, origin->kind);
	/*
	 * Findable first, then counted: if this fails, nothing has happened; and whoever
	 * finds it too early is shown the unknown entry, and comes to wait for our lock.
	 */
	if (cw_handles_put(CW_HANDLE_ORIGIN, key, index, 0) < 0) {
		return CW_ORIGIN_UNKNOWN;
	}
	__atomic_store_n(&cw_origin_count_, index + 1, __ATOMIC_RELEASE);
	return index;
}

static uint32_t intern(const struct cw_origin *origin)
{
	uint64_t key;
	uint32_t index = look_up(origin, &key);

	if (index == CW_ORIGIN_UNKNOWN) {
		cw_lock_acquire(&lock);
		index = append(origin);
		cw_lock_release(&lock);
	}
	return index;
}

uint32_t cw_origin_intern_slow_(const struct cw_origin *origin, uint32_t *recent)
{
	struct cw_origin less = *origin;
	uint32_t index = intern(origin);

	if (__builtin_expect(index != CW_ORIGIN_UNKNOWN, 1)) {
		*recent = index;
		return index;
	}
	__atomic_fetch_add(&degraded, 1, __ATOMIC_RELAXED);
	less.site = 0;
	index = intern(&less);
	if (index == CW_ORIGIN_UNKNOWN) {
		less.context = 0;
		less.hook = 0;
		index = intern(&less);
	}
	return index;
}

uint32_t cw_origin_count(void)
{
	return __atomic_load_n(&cw_origin_count_, __ATOMIC_ACQUIRE);
}

uint64_t cw_origin_degraded(void)
{
	return __atomic_load_n(&degraded, __ATOMIC_RELAXED);
}

void cw_origins_postfork_child(void)
{
	__atomic_store_n(&cw_origin_count_, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&degraded, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < CW_ORIGIN_LIMIT / CW_ORIGIN_CHUNK; i++) {
		__atomic_store_n(&cw_origin_chunks_[i], NULL, __ATOMIC_RELAXED);
	}
	cw_lock_reset(&lock);
}
