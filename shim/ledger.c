/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pointer ledger: records packed into 16 bytes, in 64 shards. What does not fit into 48
 * bits (no address of a present GPU or host, and no size, does) goes to the handles' table
 * under CW_HANDLE_WIDE; a count of such records keeps everybody else from looking there.
 */
#include "ledger.h"

#include "handles.h"
#include "ledger_private.h"

#define LIMIT (UINT64_C(1) << 48)

_Static_assert(UINT64_MAX >> CW_HASH_SHARD_SHIFT == CW_LEDGER_SHARDS - 1, "top bits choose");

_Static_assert(CW_LEDGER_SHARDS % CW_SHARDS_PER_PAGE == 0, "whole pages");

struct cw_shard cw_ledger_shards_[CW_LEDGER_SHARDS] CW_SHARDS_ALIGNED;

/* A thread that was handed an address also sees the count that its record raised before. */
static uint64_t wide_live;

static struct cw_shard *shard_of(uint64_t hash)
{
	return &cw_ledger_shards_[hash >> CW_HASH_SHARD_SHIFT];
}

static bool any_wide(void)
{
	return __builtin_expect(__atomic_load_n(&wide_live, __ATOMIC_RELAXED) != 0, 0);
}

static int wide_insert(uint64_t address, uint64_t size, uint32_t origin)
{
	int r;

	/* Raised first: whoever sees the record sees the count. */
	__atomic_fetch_add(&wide_live, 1, __ATOMIC_RELAXED);
	r = cw_handles_put(CW_HANDLE_WIDE, address, size, origin);
	if (r < 0) {
		__atomic_fetch_sub(&wide_live, 1, __ATOMIC_RELAXED);
	}
	return r;
}

bool cw_wide_remove(uint64_t address, struct cw_record *ret)
{
	struct cw_handle entry;

	if (!cw_handles_remove(CW_HANDLE_WIDE, address, &entry)) {
		return false;
	}
	__atomic_fetch_sub(&wide_live, 1, __ATOMIC_RELAXED);
	if (ret != NULL) {
		cw_wide_unpack(&entry, ret);
	}
	return true;
}

/* Whatever there is to do, with the lock, which it gives back. Out of the way of the usual. */
static __attribute__((noinline)) int insert_locked(struct cw_shard *shard, uint64_t address,
	uint64_t size, uint32_t origin)
{
	uint64_t slot[2];
	struct cw_place there;
	int r;

	cw_slot_pack(slot, address, size, origin);
	r = cw_shard_insert(shard, &cw_ledger_shape, cw_hash(address), &address, slot, &there);
	cw_lock_release(&shard->lock);
	return r;
}

static __attribute__((noinline)) int insert_beside_wide(struct cw_shard *shard, uint64_t address,
	uint64_t size, uint32_t origin)
{
	struct cw_record there;

	if ((address | size) < LIMIT) {
		if (cw_handles_get(CW_HANDLE_WIDE, address, NULL)) {
			return -EEXIST;
		}
		cw_lock_acquire(&shard->lock);
		return insert_locked(shard, address, size, origin);
	}
	return cw_ledger_find(address, &there) ? -EEXIST : wide_insert(address, size, origin);
}

static __attribute__((noinline)) int insert_waiting(struct cw_shard *shard, uint64_t address,
	uint64_t size, uint32_t origin)
{
	cw_lock_wait(&shard->lock);
	return insert_locked(shard, address, size, origin);
}

static __attribute__((noinline)) int wake_and_return(struct cw_shard *shard, int r)
{
	cw_lock_wake(&shard->lock);
	return r;
}

/* With the lock and a segment, but more than one group to look at. */
static __attribute__((noinline)) int insert_further(struct cw_shard *shard, uint64_t address,
	uint64_t size, uint32_t origin)
{
	uint64_t hash = cw_hash(address), slot[2];

	cw_slot_pack(slot, address, size, origin);
	if (!cw_segment_enter(cw_shard_segment(shard, hash), &cw_ledger_shape, hash, &address,
			slot)) {
		return insert_locked(shard, address, size, origin);
	}
	(void)cw_shard_count(shard, 1);
	if (cw_lock_drop(&shard->lock)) {
		return wake_and_return(shard, 0);
	}
	return 0;
}

/*
 * The usual case is written out: a free lock, room in the record's home group, nothing that
 * went on from there. All else is left to tail calls, so that few registers need be saved.
 */
int cw_ledger_insert(uint64_t address, uint64_t size, uint32_t origin)
{
	uint64_t hash = cw_hash(address), slot[2];
	struct cw_shard *shard = shard_of(hash);
	uint32_t tag = cw_hash_tag(hash);
	struct cw_segment *segment;
	struct cw_group *group;
	struct cw_place there;

	if (__builtin_expect((address | size) >= LIMIT, 0) || any_wide()) {
		return insert_beside_wide(shard, address, size, origin);
	}
	if (!cw_lock_try(&shard->lock)) {
		return insert_waiting(shard, address, size, origin);
	}
	segment = cw_shard_segment(shard, hash);
	if (__builtin_expect(segment == NULL, 0)) {
		return insert_locked(shard, address, size, origin);
	}
	group = cw_group_home(segment, &cw_ledger_shape, hash);
	cw_slot_pack(slot, address, size, origin);
	if (cw_group_passed(group) ||
			cw_group_find(group, &cw_ledger_shape, tag, &address, false, &there) ||
			!cw_group_place(group, &cw_ledger_shape, tag, slot)) {
		return insert_further(shard, address, size, origin);
	}
	(void)cw_shard_count(shard, 1);
	if (cw_lock_drop(&shard->lock)) {
		return wake_and_return(shard, 0);
	}
	return 0;
}

int cw_ledger_replace(uint64_t address, uint64_t size, uint32_t origin, struct cw_record *ret_old)
{
	uint64_t hash = cw_hash(address), slot[2];
	struct cw_shard *shard = shard_of(hash);
	struct cw_record old;
	struct cw_place there = {0};
	int r;

	if ((address | size) >= LIMIT || any_wide()) {
		bool known = cw_ledger_remove(address, &old);

		r = cw_ledger_insert(address, size, origin);
		if (r < 0 && known) {
			/* Its room was just given up, and is there again. */
			(void)cw_ledger_insert(address, old.size, old.origin);
			return r;
		}
		if (r == 0 && known && ret_old != NULL) {
			*ret_old = old;
		}
		return r < 0 ? r : known;
	}
	cw_slot_pack(slot, address, size, origin);
	cw_lock_acquire(&shard->lock);
	r = cw_shard_insert(shard, &cw_ledger_shape, hash, &address, slot, &there);
	if (r == -EEXIST) {
		if (ret_old != NULL) {
			cw_slot_unpack(there.slot, ret_old);
		}
		cw_slot_write(there.slot, &cw_ledger_shape, slot);
		r = 1;
	}
	cw_lock_release(&shard->lock);
	return r;
}

static __attribute__((noinline)) bool remove_locked(struct cw_shard *shard, uint64_t address,
	struct cw_record *ret)
{
	uint64_t slot[2];
	bool found = cw_shard_remove(shard, &cw_ledger_shape, cw_hash(address), &address, slot);

	cw_lock_release(&shard->lock);
	if (found && ret != NULL) {
		cw_slot_unpack(slot, ret);
	}
	return found || (any_wide() && cw_wide_remove(address, ret));
}

static __attribute__((noinline)) bool remove_waiting(struct cw_shard *shard, uint64_t address,
	struct cw_record *ret)
{
	cw_lock_wait(&shard->lock);
	return remove_locked(shard, address, ret);
}

/* With the lock and a segment, but more than one group to look at. */
static __attribute__((noinline)) bool remove_further(struct cw_shard *shard, uint64_t address,
	struct cw_record *ret)
{
	uint64_t hash = cw_hash(address);
	struct cw_segment *segment = cw_shard_segment(shard, hash);
	struct cw_place place;

	if (!cw_segment_find(segment, &cw_ledger_shape, hash, &address, false, &place)) {
		return remove_locked(shard, address, ret);
	}
	if (ret != NULL) {
		cw_slot_unpack(place.slot, ret);
	}
	cw_segment_erase(segment, &cw_ledger_shape, hash, &place);
	(void)cw_shard_count(shard, -1);
	if (cw_lock_drop(&shard->lock)) {
		return wake_and_return(shard, 1) != 0;
	}
	return true;
}

/* As insert. The rest finds it anew. */
bool cw_ledger_remove(uint64_t address, struct cw_record *ret)
{
	uint64_t hash = cw_hash(address);
	struct cw_shard *shard = shard_of(hash);
	struct cw_segment *segment;
	struct cw_place place;

	if (__builtin_expect(address >= LIMIT, 0)) {
		return cw_wide_remove(address, ret);
	}
	if (!cw_lock_try(&shard->lock)) {
		return remove_waiting(shard, address, ret);
	}
	segment = cw_shard_segment(shard, hash);
	if (__builtin_expect(segment == NULL || shard->live <= shard->low_water, 0)) {
		return remove_locked(shard, address, ret);
	}
	if (!cw_group_find(cw_group_home(segment, &cw_ledger_shape, hash), &cw_ledger_shape,
			cw_hash_tag(hash), &address, false, &place)) {
		return remove_further(shard, address, ret);
	}
	if (ret != NULL) {
		cw_slot_unpack(place.slot, ret);
	}
	__atomic_store_n(place.tag, 0, __ATOMIC_RELEASE);
	(void)cw_shard_count(shard, -1);
	if (cw_lock_drop(&shard->lock)) {
		return wake_and_return(shard, 1) != 0;
	}
	return true;
}

bool cw_ledger_find(uint64_t address, struct cw_record *ret)
{
	uint64_t hash = cw_hash(address);
	struct cw_shard *shard = shard_of(hash);
	struct cw_segment *segment;
	struct cw_place place;
	struct cw_handle entry;
	bool found = false;

	if (__builtin_expect(address < LIMIT, 1)) {
		cw_lock_acquire(&shard->lock);
		segment = cw_shard_segment(shard, hash);
		if (segment != NULL &&
				cw_segment_find(segment, &cw_ledger_shape, hash, &address, false, &place)) {
			cw_slot_unpack(place.slot, ret);
			found = true;
		}
		cw_lock_release(&shard->lock);
	}
	if (!found && any_wide() && cw_handles_get(CW_HANDLE_WIDE, address, &entry)) {
		cw_wide_unpack(&entry, ret);
		found = true;
	}
	return found;
}

uint64_t cw_ledger_live(void)
{
	uint64_t live = __atomic_load_n(&wide_live, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < CW_LEDGER_SHARDS; i++) {
		live += __atomic_load_n(&cw_ledger_shards_[i].live, __ATOMIC_RELAXED);
	}
	return live;
}

size_t cw_ledger_bytes_mapped(void)
{
	return sizeof(cw_ledger_shards_) + cw_shards_mapped(cw_ledger_shards_, CW_LEDGER_SHARDS);
}

uint32_t cw_ledger_contended(unsigned shard)
{
	const struct cw_lock *lock = &cw_ledger_shards_[shard % CW_LEDGER_SHARDS].lock;

	return __atomic_load_n(&lock->contended, __ATOMIC_RELAXED);
}

void cw_ledger_prefork(void)
{
	cw_shards_acquire(cw_ledger_shards_, CW_LEDGER_SHARDS);
}

void cw_ledger_postfork_parent(void)
{
	cw_shards_release(cw_ledger_shards_, CW_LEDGER_SHARDS);
}

void cw_ledger_postfork_child(void)
{
	__atomic_store_n(&wide_live, 0, __ATOMIC_RELAXED);
	cw_shards_forget(cw_ledger_shards_, CW_LEDGER_SHARDS);
}
