/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handles' table: slots of 32 bytes in 32 shards. Calls what table.h calls.
 *
 * cw_handles_get reads beside a writer. A shard's sequence number is odd while a writer is
 * at work; a reader who finds it even, and the same afterwards, saw no half-made state. No
 * fences are needed (TSan knows none): every store of a writer is a release, after the odd
 * number; every load of a reader is an acquire; so a reader who saw one of those stores also
 * sees the odd number when it looks again. What it reads meanwhile may be senseless, but is
 * mapped: segments and directories are never unmapped, and a directory's depth comes in the
 * same word as its address.
 */
#include "handles.h"

#include "table.h"

#define SHARDS 32
#define TRIES 4

_Static_assert(SHARDS % CW_SHARDS_PER_PAGE == 0, "whole pages");

static struct cw_shard shards[SHARDS] CW_SHARDS_ALIGNED;

/* Two numbers that look alike in different spaces are not to lie together. */
static uint64_t key_hash(uint64_t key, uint64_t space)
{
	return cw_hash(key + space * UINT64_C(0xc2b2ae3d27d4eb4f));
}

/* slot: key, space, value, value2 */
static uint64_t slot_hash(const uint64_t *slot)
{
	return key_hash(slot[0], slot[1]);
}

static bool slot_same(const uint64_t *slot, const uint64_t *key)
{
	return __atomic_load_n(&slot[0], __ATOMIC_ACQUIRE) == key[0] &&
		__atomic_load_n(&slot[1], __ATOMIC_ACQUIRE) == key[1];
}

static void slot_divide(struct cw_segment *from, struct cw_segment *to, uint64_t bit);

/* 8 groups of 16 + 15 * 32 bytes: 3,968 of 4,096. Room is cheap here: a short reach. */
static const struct cw_shape shape = {
	.words = 4,
	.group_bits = 3,
	.reach = 3,
	.hash = slot_hash,
	.same = slot_same,
	.divide = slot_divide,
};

static void slot_divide(struct cw_segment *from, struct cw_segment *to, uint64_t bit)
{
	cw_segment_divide(from, to, &shape, bit);
}

static void slot_read(const uint64_t *slot, struct cw_handle *ret)
{
	ret->key = __atomic_load_n(&slot[0], __ATOMIC_ACQUIRE);
	ret->space = (uint8_t)__atomic_load_n(&slot[1], __ATOMIC_ACQUIRE);
	ret->value = __atomic_load_n(&slot[2], __ATOMIC_ACQUIRE);
	ret->value2 = __atomic_load_n(&slot[3], __ATOMIC_ACQUIRE);
}

static struct cw_shard *shard_of(uint64_t hash)
{
	return &shards[(hash >> CW_HASH_SHARD_SHIFT) % SHARDS];
}

static void write_begin(struct cw_shard *shard)
{
	cw_lock_acquire(&shard->lock);
	__atomic_store_n(&shard->sequence, shard->sequence + 1, __ATOMIC_RELAXED);
}

static void write_end(struct cw_shard *shard)
{
	__atomic_store_n(&shard->sequence, shard->sequence + 1, __ATOMIC_RELEASE);
	cw_lock_release(&shard->lock);
}

static int store(uint8_t space, uint64_t key, uint64_t value, uint64_t value2, bool overwrite)
{
	uint64_t slot[4] = {key, space, value, value2};
	uint64_t hash = key_hash(key, space);
	struct cw_shard *shard = shard_of(hash);
	struct cw_place there = {0};
	int r;

	write_begin(shard);
	r = cw_shard_insert(shard, &shape, hash, slot, slot, &there);
	if (r == -EEXIST && overwrite) {
		cw_slot_write(there.slot, &shape, slot);
		r = 1;
	}
	write_end(shard);
	return r;
}

int cw_handles_put(uint8_t space, uint64_t key, uint64_t value, uint64_t value2)
{
	return store(space, key, value, value2, /* overwrite= */ false);
}

int cw_handles_set(uint8_t space, uint64_t key, uint64_t value, uint64_t value2)
{
	return store(space, key, value, value2, /* overwrite= */ true);
}

CW_INLINE bool look_up(struct cw_shard *shard, uint64_t hash, const uint64_t *key, bool shared,
	struct cw_handle *ret)
{
	struct cw_segment *segment = cw_shard_segment(shard, hash);
	struct cw_place place;

	if (segment == NULL || !cw_segment_find(segment, &shape, hash, key, shared, &place)) {
		return false;
	}
	slot_read(place.slot, ret);
	return true;
}

static bool get_locked(struct cw_shard *shard, uint64_t hash, const uint64_t *key,
	struct cw_handle *ret)
{
	bool found;

	cw_lock_acquire(&shard->lock);
	found = look_up(shard, hash, key, /* shared= */ false, ret);
	cw_lock_release(&shard->lock);
	return found;
}

bool cw_handles_get(uint8_t space, uint64_t key, struct cw_handle *ret)
{
	uint64_t words[2] = {key, space};
	uint64_t hash = key_hash(key, space);
	struct cw_shard *shard = shard_of(hash);
	struct cw_handle entry;
	bool found = false, sure = false;

	for (int i = 0; i < TRIES && !sure; i++) {
		uint32_t sequence = __atomic_load_n(&shard->sequence, __ATOMIC_ACQUIRE);

		if (__builtin_expect((sequence & 1) == 0, 1)) {
			found = look_up(shard, hash, words, /* shared= */ true, &entry);
			sure = __atomic_load_n(&shard->sequence, __ATOMIC_RELAXED) == sequence;
		}
	}
	if (__builtin_expect(!sure, 0)) {
		found = get_locked(shard, hash, words, &entry);
	}
	if (found && ret != NULL) {
		*ret = entry;
	}
	return found;
}

bool cw_handles_update(uint8_t space, uint64_t key,
	enum cw_handle_verdict (*change)(struct cw_handle *entry, void *arg), void *arg,
	struct cw_handle *ret)
{
	uint64_t words[4] = {key, space};
	uint64_t hash = key_hash(key, space);
	struct cw_shard *shard = shard_of(hash);
	struct cw_segment *segment;
	struct cw_place place = {0};
	bool found = false;

	write_begin(shard);
	segment = cw_shard_segment(shard, hash);
	if (segment != NULL && cw_segment_find(segment, &shape, hash, words, false, &place)) {
		struct cw_handle entry;

		found = true;
		slot_read(place.slot, &entry);
		if (change == NULL || change(&entry, arg) == CW_HANDLE_REMOVE) {
			cw_segment_erase(segment, &shape, hash, &place);
			cw_shard_count(shard, -1);
			if (shard->live < shard->low_water) {
				cw_shard_shrink(shard, &shape);
			}
		} else {
			words[2] = entry.value;
			words[3] = entry.value2;
			cw_slot_write(place.slot, &shape, words);
		}
		if (ret != NULL) {
			*ret = entry;
		}
	}
	write_end(shard);
	return found;
}

enum cw_handle_verdict cw_handle_one_more(struct cw_handle *entry, void *arg)
{
	(void)arg;
	entry->value2++;
	return CW_HANDLE_KEEP;
}

bool cw_handles_remove(uint8_t space, uint64_t key, struct cw_handle *ret)
{
	return cw_handles_update(space, key, NULL, NULL, ret);
}

void cw_handles_walk(uint8_t space, bool (*visit)(const struct cw_handle *entry, void *arg),
	void *arg)
{
	struct cw_segment copy;

	for (unsigned i = 0; i < SHARDS; i++) {
		for (uint32_t cursor = 0; cursor != CW_CURSOR_END;) {
			if (!cw_shard_copy(&shards[i], &shape, &cursor, &copy)) {
				continue;
			}
			for (uint32_t k = 0; k < CW_GROUP_SLOTS << shape.group_bits; k++) {
				struct cw_group *group = cw_group_at(&copy, &shape, k / CW_GROUP_SLOTS);
				struct cw_handle entry;

				if ((group->tags[k % CW_GROUP_SLOTS] & CW_TAG_USED) == 0) {
					continue;
				}
				slot_read(&group->slots[k % CW_GROUP_SLOTS * shape.words], &entry);
				if ((space == 0 || entry.space == space) && !visit(&entry, arg)) {
					return;
				}
			}
		}
	}
}

struct remover {
	bool (*match)(const struct cw_handle *entry, void *arg);
	void *arg;
	size_t removed;
};

static enum cw_handle_verdict remove_matching(struct cw_handle *entry, void *arg)
{
	struct remover *remover = arg;

	/* Looked at anew, under the lock: it may have changed since it was copied. */
	if (!remover->match(entry, remover->arg)) {
		return CW_HANDLE_KEEP;
	}
	remover->removed++;
	return CW_HANDLE_REMOVE;
}

static bool visit_to_remove(const struct cw_handle *entry, void *arg)
{
	struct remover *remover = arg;

	if (remover->match(entry, remover->arg)) {
		(void)cw_handles_update(entry->space, entry->key, remove_matching, remover, NULL);
	}
	return true;
}

size_t cw_handles_remove_if(uint8_t space,
	bool (*match)(const struct cw_handle *entry, void *arg), void *arg)
{
	struct remover remover = {.match = match, .arg = arg};

	cw_handles_walk(space, visit_to_remove, &remover);
	return remover.removed;
}

size_t cw_handles_bytes_mapped(void)
{
	return sizeof(shards) + cw_shards_mapped(shards, SHARDS);
}

void cw_handles_postfork_child(void)
{
	cw_shards_forget(shards, SHARDS);
}
