/* SPDX-License-Identifier: Apache-2.0 */
/* What ledger.c and ledger_walk.c share: the shards, and how a record becomes a slot. */
#ifndef CW_LEDGER_PRIVATE_H
#define CW_LEDGER_PRIVATE_H

#include "handles.h"
#include "ledger.h"
#include "table.h"

extern CW_HIDDEN struct cw_shard cw_ledger_shards_[CW_LEDGER_SHARDS] CW_SHARDS_ALIGNED;

extern CW_HIDDEN void (*cw_ledger_watcher_)(void);

/* After the number of records has changed; without a lock. */
static inline void cw_ledger_changed(void)
{
	void (*watcher)(void) = __atomic_load_n(&cw_ledger_watcher_, __ATOMIC_ACQUIRE);

	if (__builtin_expect(watcher != NULL, 0)) {
		watcher();
	}
}

/* Also counts it out, which cw_handles_remove alone would not. */
bool cw_wide_remove(uint64_t address, struct cw_record *ret);

/* slot[0]: address, then the size's high 16 bits; slot[1]: the size's low 32 bits, origin. */
static inline uint64_t cw_slot_hash(const uint64_t *slot)
{
	return cw_hash(slot[0] >> 16);
}

static inline bool cw_slot_same(const uint64_t *slot, const uint64_t *key)
{
	return slot[0] >> 16 == *key;
}

/* In ledger.c, once: its address alone would be a copy in each file. */
CW_HIDDEN void cw_slot_divide(struct cw_segment *from, struct cw_segment *to, uint64_t bit);

/*
 * 16 groups of 16 + 15 * 16 bytes fill 4 KiB exactly: 239 records. The reach weighs room
 * against time (measured, growing from 30,000 to 4 million records): with 3 a record takes
 * 38.4 bytes at the worst moment, and a pair beside 100,000 others 12% more instructions than
 * beside 10; with 4 it is 37.4 and 23%, with 6 35.4 and 32%.
 */
static const struct cw_shape cw_ledger_shape = {
	.words = 2,
	.group_bits = 4,
	.reach = 3,
	.hash = cw_slot_hash,
	.same = cw_slot_same,
	.divide = cw_slot_divide,
};

static inline void cw_slot_pack(uint64_t *slot, uint64_t address, uint64_t size, uint32_t origin)
{
	slot[0] = address << 16 | size >> 32;
	slot[1] = size << 32 | origin;
}

static inline void cw_slot_unpack(const uint64_t *slot, struct cw_record *ret)
{
	ret->address = slot[0] >> 16;
	/* One shift of both words, and what came of the address cut off. */
	ret->size = (slot[0] << 32 | slot[1] >> 32) & 0xffffffffffff;
	ret->origin = (uint32_t)slot[1];
}

static inline void cw_wide_unpack(const struct cw_handle *entry, struct cw_record *ret)
{
	ret->address = entry->key;
	ret->size = entry->value;
	ret->origin = (uint32_t)entry->value2;
}

#endif
