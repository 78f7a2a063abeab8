/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pointer ledger: records packed into 16 bytes, in 64 shards. What does not fit into 48
 * bits (arrays and the like, whose keys have a sort in the top byte; no address, and no size)
 * goes to the handles' table under CW_HANDLE_WIDE. Of those with a narrow address, which only a
 * size can bring there, a count keeps everybody else from looking there.
 */
#include "ledger.h"

#include "handles.h"
#include "ledger_inline.h"

#define LIMIT (UINT64_C(1) << CW_LEDGER_NARROW)

_Static_assert(UINT64_MAX >> CW_HASH_SHARD_SHIFT == CW_LEDGER_SHARDS - 1, "top bits choose");

_Static_assert(CW_LEDGER_SHARDS % CW_SHARDS_PER_PAGE == 0, "whole pages");

struct cw_shard cw_ledger_shards_[CW_LEDGER_SHARDS] CW_SHARDS_ALIGNED;

uint64_t cw_ledger_wide_;  /* of these, those that a narrow address leads to */
static uint64_t wide_live;

void (*cw_ledger_watcher_)(void);

void cw_slot_divide(struct cw_segment *from, struct cw_segment *to, uint64_t bit)
{
	cw_segment_divide(from, to, &cw_ledger_shape, bit);
}

/* Raised before the record is there: whoever sees the record sees the count. */
static void count_wide(uint64_t address, uint64_t by)
{
	__atomic_fetch_add(&wide_live, by, __ATOMIC_RELAXED);
	if (address < LIMIT) {
		__atomic_fetch_add(&cw_ledger_wide_, by, __ATOMIC_RELAXED);
	}
}

static int wide_insert(uint64_t address, uint64_t size, uint32_t origin)
{
	int r;

	count_wide(address, 1);
	r = cw_handles_put(CW_HANDLE_WIDE, address, size, origin);
	if (r < 0) {
		count_wide(address, UINT64_MAX);
	}
	cw_ledger_changed();
	return r;
}

bool cw_wide_remove(uint64_t address, struct cw_record *ret)
{
	struct cw_handle entry;

	if (!cw_handles_remove(CW_HANDLE_WIDE, address, &entry)) {
		return false;
	}
	count_wide(address, UINT64_MAX);
	if (ret != NULL) {
		cw_wide_unpack(&entry, ret);
	}
	return true;
}

/* With the lock, which it gives back. */
static int insert_locked(struct cw_shard *shard, uint64_t address, uint64_t size,
	uint32_t origin)
{
	uint64_t slot[2];
	struct cw_place there;
	int r;

	cw_slot_pack(slot, address, size, origin);
	r = cw_shard_insert(shard, &cw_ledger_shape, cw_hash(address), &address, slot, &there);
	cw_lock_release(&shard->lock);
	cw_ledger_changed();
	return r;
}

int cw_ledger_insert(uint64_t address, uint64_t size, uint32_t origin)
{
	struct cw_shard *shard = cw_ledger_shard(cw_hash(address));
	struct cw_record there;

	if ((address | size) < LIMIT) {
		if (cw_ledger_any_wide() && cw_handles_get(CW_HANDLE_WIDE, address, NULL)) {
			return -EEXIST;
		}
		cw_lock_acquire(&shard->lock);
		return insert_locked(shard, address, size, origin);
	}
	return cw_ledger_find(address, &there) ? -EEXIST : wide_insert(address, size, origin);
}

/* The address may be there in either table, and comes into one. */
int cw_ledger_enter_wide_(uint64_t address, uint64_t size, uint32_t origin,
	struct cw_record *ret_old)
{
	struct cw_record old;
	bool known = cw_ledger_remove(address, &old);
	int r = cw_ledger_insert(address, size, origin);

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

/* Whatever there is to do, growth too. With the lock, which it gives back. */
static __attribute__((noinline)) int enter_locked(struct cw_shard *shard, uint64_t address,
	uint64_t size, uint32_t origin, struct cw_record *ret_old)
{
	uint64_t slot[2];
	struct cw_place there = {0};
	int r;

	cw_slot_pack(slot, address, size, origin);
	r = cw_shard_insert(shard, &cw_ledger_shape, cw_hash(address), &address, slot, &there);
	if (r == -EEXIST) {
		/* The place is there; that the analyzer cannot see. */
		if (ret_old != NULL && there.slot != NULL) {
			cw_slot_unpack(there.slot, ret_old);
		}
		cw_slot_write(there.slot, &cw_ledger_shape, slot);
		r = 1;
	}
	cw_lock_release(&shard->lock);
	return r;
}

/*
 * A search that goes further than the home group is the time to split a segment, if the shard
 * has enough records for one more: the fullest ones meet most of these, so that they are split
 * one by one while the number of records doubles, and not all at once, at the end, when all
 * are full (docs/performance.md). With 120 a record takes 38.6 bytes at the worst moment, at
 * 80,000, and pairs right after filling 100,000 cost 12% more; with 112 40.5 bytes, and 8%.
 */
#define ENOUGH 112u

static __attribute__((noinline)) int split_and_enter(struct cw_shard *shard, uint64_t hash,
	uint64_t address, uint64_t size, uint32_t origin, struct cw_record *ret_old)
{
	/* Without memory it goes on as it is. */
	(void)cw_shard_grow(shard, &cw_ledger_shape, hash);
	return enter_locked(shard, address, size, origin, ret_old);
}

/* More than one group to look at, or a record that is there already. */
int cw_ledger_enter_further_(struct cw_shard *shard, uint64_t hash, uint64_t address,
	uint64_t size, uint32_t origin, struct cw_record *ret_old)
{
	uint64_t slot[2];
	struct cw_segment *segment = cw_shard_segment_locked(shard, hash);

	if (shard->live > (uint64_t)shard->segments * ENOUGH) {
		return split_and_enter(shard, hash, address, size, origin, ret_old);
	}
	cw_slot_pack(slot, address, size, origin);
	if (segment == NULL || !cw_segment_enter(segment, &cw_ledger_shape, hash, &address, slot)) {
		return enter_locked(shard, address, size, origin, ret_old);
	}
	cw_shard_count(shard, 1);
	cw_lock_release(&shard->lock);
	return 0;
}

int cw_ledger_enter_waiting_(uint64_t address, uint64_t size, uint32_t origin,
	struct cw_record *ret_old)
{
	uint64_t hash = cw_hash(address);
	struct cw_shard *shard = cw_ledger_shard(hash);

	cw_lock_wait(&shard->lock);
	return cw_ledger_enter_further_(shard, hash, address, size, origin, ret_old);
}

int cw_ledger_replace(uint64_t address, uint64_t size, uint32_t origin, struct cw_record *ret_old)
{
	int r = cw_ledger_enter(address, size, origin, ret_old);

	cw_ledger_changed();
	return r;
}

/* With the lock, which it gives back. */
static __attribute__((noinline)) bool take_locked(struct cw_shard *shard, uint64_t address,
	struct cw_record *ret)
{
	uint64_t slot[2];
	bool found = cw_shard_remove(shard, &cw_ledger_shape, cw_hash(address), &address, slot);

	cw_lock_release(&shard->lock);
	if (found) {
		cw_slot_unpack(slot, ret);
	}
	return found || ((address >= LIMIT || cw_ledger_any_wide()) && cw_wide_remove(address, ret));
}

bool cw_ledger_take_further_(struct cw_shard *shard, uint64_t hash, uint64_t address,
	struct cw_record *ret)
{
	struct cw_segment *segment = cw_shard_segment_locked(shard, hash);
	struct cw_place place;

	if (segment == NULL || shard->live <= shard->low_water ||
			!cw_segment_find(segment, &cw_ledger_shape, hash, &address, false, &place)) {
		return take_locked(shard, address, ret);
	}
	cw_slot_unpack(place.slot, ret);
	cw_segment_erase(segment, &cw_ledger_shape, hash, &place);
	cw_shard_count(shard, -1);
	cw_lock_release(&shard->lock);
	return true;
}

bool cw_ledger_take_waiting_(uint64_t address, struct cw_record *ret)
{
	uint64_t hash = cw_hash(address);
	struct cw_shard *shard = cw_ledger_shard(hash);

	cw_lock_wait(&shard->lock);
	return cw_ledger_take_further_(shard, hash, address, ret);
}

bool cw_ledger_remove(uint64_t address, struct cw_record *ret)
{
	struct cw_record unused;
	bool removed = cw_ledger_take(address, ret != NULL ? ret : &unused);

	cw_ledger_changed();
	return removed;
}

bool cw_ledger_find(uint64_t address, struct cw_record *ret)
{
	uint64_t hash = cw_hash(address);
	struct cw_shard *shard = cw_ledger_shard(hash);
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
	if (!found && (address >= LIMIT || cw_ledger_any_wide()) &&
			cw_handles_get(CW_HANDLE_WIDE, address, &entry)) {
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

void cw_ledger_watch(void (*changed)(void))
{
	__atomic_store_n(&cw_ledger_watcher_, changed, __ATOMIC_RELEASE);
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

void cw_ledger_postfork_child(void)
{
	__atomic_store_n(&wide_live, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&cw_ledger_wide_, 0, __ATOMIC_RELAXED);
	cw_shards_forget(cw_ledger_shards_, CW_LEDGER_SHARDS);
}
