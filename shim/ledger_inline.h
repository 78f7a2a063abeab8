/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The usual case of the ledger's two operations, to be compiled into its callers: a free lock,
 * room in the record's home group, nothing that went on from there. All else is left to
 * functions of ledger.c, which go on with what was found so far.
 */
#ifndef CW_LEDGER_INLINE_H
#define CW_LEDGER_INLINE_H

#include "common.h"
#include "ledger_private.h"

#define CW_LEDGER_NARROW 48 /* bits of an address and of a size in a slot */

/* A thread that was handed an address also sees the count that its record raised before. */
extern CW_HIDDEN uint64_t cw_ledger_wide_;

int cw_ledger_enter_wide_(uint64_t address, uint64_t size, uint32_t origin,
	struct cw_record *ret_old);
int cw_ledger_enter_waiting_(uint64_t address, uint64_t size, uint32_t origin,
	struct cw_record *ret_old);
/* With the lock, which they give back. */
int cw_ledger_enter_further_(struct cw_shard *shard, uint64_t hash, uint64_t address,
	uint64_t size, uint32_t origin, struct cw_record *ret_old);

bool cw_ledger_take_waiting_(uint64_t address, struct cw_record *ret);
bool cw_ledger_take_further_(struct cw_shard *shard, uint64_t hash, uint64_t address,
	struct cw_record *ret);

CW_INLINE bool cw_ledger_any_wide(void)
{
	return __builtin_expect(CW_IS_SET(cw_ledger_wide_, __ATOMIC_RELAXED), 0);
}

CW_INLINE struct cw_shard *cw_ledger_shard(uint64_t hash)
{
	struct cw_shard *shard = &cw_ledger_shards_[hash >> CW_HASH_SHARD_SHIFT];

	/* Else the array's address is put together anew for each member. */
	__asm__("" : "+r"(shard));
	return shard;
}

/* As cw_ledger_replace. */
CW_INLINE int cw_ledger_enter(uint64_t address, uint64_t size, uint32_t origin,
	struct cw_record *ret_old)
{
	uint64_t hash = cw_hash(address), slot[2];
	struct cw_shard *shard = cw_ledger_shard(hash);
	struct cw_segment *segment;
	struct cw_group *group;
	struct cw_place there;
	uint32_t tag = cw_hash_tag(hash);
	size_t i = 0;

	if (__builtin_expect((address | size) >> CW_LEDGER_NARROW != 0, 0) ||
			cw_ledger_any_wide()) {
		return cw_ledger_enter_wide_(address, size, origin, ret_old);
	}
	if (!cw_lock_try(&shard->lock)) {
		return cw_ledger_enter_waiting_(address, size, origin, ret_old);
	}
	segment = cw_shard_segment_locked(shard, hash);
	if (segment == NULL) {
		return cw_ledger_enter_further_(shard, hash, address, size, origin, ret_old);
	}
	group = cw_group_home(segment, &cw_ledger_shape, hash);
	/* One tag in ten finds its like in a group that is nearly full: hence not the tag alone. */
	if (!cw_group_free(group, &i) || __builtin_expect(cw_group_find(group, &cw_ledger_shape, tag,
			&address, false, &there), 0)) {
		return cw_ledger_enter_further_(shard, hash, address, size, origin, ret_old);
	}
	cw_slot_pack(slot, address, size, origin);
	cw_slot_write(&group->slots[i * cw_ledger_shape.words], &cw_ledger_shape, slot);
	__atomic_store_n(&group->tags[i], (uint8_t)tag, __ATOMIC_RELEASE);
	cw_shard_count(shard, 1);
	if (cw_lock_drop(&shard->lock)) {
		cw_lock_wake(&shard->lock);
	}
	return 0;
}

/* As cw_ledger_remove; ret is not NULL. */
CW_INLINE bool cw_ledger_take(uint64_t address, struct cw_record *ret)
{
	uint64_t hash = cw_hash(address);
	struct cw_shard *shard = cw_ledger_shard(hash);
	struct cw_segment *segment;
	struct cw_record other; /* so that the usual one need not be in memory */
	struct cw_place place;

	if (!cw_lock_try(&shard->lock)) {
		return cw_ledger_take_waiting_(address, &other) && (*ret = other, true);
	}
	segment = cw_shard_segment_locked(shard, hash);
	if (segment == NULL || __builtin_expect(shard->live <= shard->low_water, 0) ||
			__builtin_expect(!cw_group_find(cw_group_home(segment, &cw_ledger_shape,
				hash), &cw_ledger_shape, cw_hash_tag(hash), &address, false,
				&place), 0)) {
		return cw_ledger_take_further_(shard, hash, address, &other) && (*ret = other, true);
	}
	cw_slot_unpack(place.slot, ret);
	__atomic_store_n(place.tag, 0, __ATOMIC_RELEASE);
	cw_shard_count(shard, -1);
	if (cw_lock_drop(&shard->lock)) {
		cw_lock_wake(&shard->lock);
	}
	return true;
}

#endif
