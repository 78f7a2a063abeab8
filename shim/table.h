/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash table under the ledger and the handles; private to ledger*.c and handles.c, whose
 * headers say what may be called from where.
 *
 * A table is an array of shards, each with a lock. A shard is an extendible hash: a directory
 * of 2^depth pointers to segments (segment.h). A segment that is full is split in two by one
 * more bit of the hash, and only if it already used all bits of the directory is that doubled.
 * So a single insert moves about a hundred records at most, whatever the size of the table.
 *
 * Growth alone never leaves segments less than half full. Records that come and go do, since
 * chance fills a segment here and there; so when a shard has fewer than 89 records of 239
 * for each segment, a removal looks for two halves that fit into one.
 *
 * Memory comes from mmap, 16 or 64 KiB at a time for each shard, and is kept. In a fork child
 * it reads as zeros (MADV_WIPEONFORK, Linux 4.14), and so do the shards: fork then copies no
 * page tables for it, the parent takes no copy-on-write faults, and a child that ran no fork
 * handlers (a raw clone) finds an empty table with free locks instead of its parent's.
 */
#ifndef CW_TABLE_H
#define CW_TABLE_H

#include "common.h"
#include "lock.h"
#include "segment.h"

#include <errno.h>

#define CW_DIRECTORY_FEW 8u   /* entries within the shard: no mapping for small programs */
#define CW_DIRECTORY_BITS 20u /* greatest depth: some 10^10 records */

struct cw_shard {
	struct cw_lock lock;
	uint32_t sequence;   /* odd while a writer is at work, where readers take no lock */
	uint32_t low_water;  /* with fewer live, a removal tries to join segments */
	uintptr_t directory; /* address and, in the low bits, depth; 0: no segment yet */
	uint64_t live;
	char *chunk;         /* the next unused segment */
	struct cw_segment *spare; /* once used, linked through a word of theirs */
	uint32_t segments;
	uint32_t sweep;      /* where joining looks next */
	uint32_t pages;      /* mapped, of 4 KiB */
	uint16_t chunk_left; /* unused segments */
	bool wiped;          /* in a fork child all this reads as zeros */
	struct cw_segment *few[CW_DIRECTORY_FEW] __attribute__((aligned(64)));
} __attribute__((aligned(128))); /* two lines, which the prefetcher fetches as one */

_Static_assert(sizeof(struct cw_shard) == 128, "what is hot is the first line");

/* How an array of shards is to lie: in pages that hold nothing else. */
#define CW_SHARDS_ALIGNED __attribute__((aligned(CW_SEGMENT_BYTES)))
#define CW_SHARDS_PER_PAGE (CW_SEGMENT_BYTES / sizeof(struct cw_shard))

/*
 * Splits the segment of this hash, or gives it a first one. 0: look again; -ENOMEM: nothing
 * has changed. Lock held.
 */
int cw_shard_grow(struct cw_shard *shard, const struct cw_shape *shape, uint64_t hash);

/* For a shard below its low water. Lock held. */
void cw_shard_shrink(struct cw_shard *shard, const struct cw_shape *shape);

/*
 * For walks: the segment at a cursor, or NULL, and the cursor after it; 0 is the first and
 * CW_CURSOR_END the last. Cursors count in the order of reversed directory bits (as Redis
 * does for SCAN), in which a segment covers one interval, a split cuts it in two, and a join
 * unites two neighbours: a walk that lets go of the lock between segments misses nothing.
 * Lock held.
 */
#define CW_CURSOR_END (1u << CW_DIRECTORY_BITS)
struct cw_segment *cw_shard_at(struct cw_shard *shard, const struct cw_shape *shape,
	uint32_t cursor, uint32_t *ret_next);

/*
 * Copies what a walk has not seen of the segment at the cursor, under the lock, which it
 * takes, and moves the cursor on; false where there was none.
 */
bool cw_shard_copy(struct cw_shard *shard, const struct cw_shape *shape, uint32_t *cursor,
	struct cw_segment *copy);

/* In a fork child: forgets the memory, frees the lock. */
void cw_shards_forget(struct cw_shard *shards, unsigned count);
size_t cw_shards_mapped(struct cw_shard *shards, unsigned count);

/* Zeroed pages; NULL when there are none. Keeps errno. */
void *cw_table_map(size_t bytes);

/* One load gives address and depth, so that they fit each other without a lock. */
CW_INLINE struct cw_segment **cw_shard_directory(struct cw_shard *shard, uint32_t *ret_depth)
{
	uintptr_t word = __atomic_load_n(&shard->directory, __ATOMIC_ACQUIRE);
	uintptr_t base = word & ~(uintptr_t)63;

	*ret_depth = (uint32_t)(word & 63);
	return base != 0 ? (struct cw_segment **)base : shard->few;
}

CW_INLINE struct cw_segment **cw_shard_entry(struct cw_shard *shard, uint64_t hash)
{
	uint32_t depth;
	struct cw_segment **directory = cw_shard_directory(shard, &depth);

	return &directory[(hash >> CW_HASH_DIRECTORY_SHIFT) & ((UINT64_C(1) << depth) - 1)];
}

CW_INLINE struct cw_segment *cw_shard_segment(struct cw_shard *shard, uint64_t hash)
{
	return __atomic_load_n(cw_shard_entry(shard, hash), __ATOMIC_ACQUIRE);
}

/* The same with the lock, with fewer instructions; NULL only before the first record. */
CW_INLINE struct cw_segment *cw_shard_segment_locked(struct cw_shard *shard, uint64_t hash)
{
	uintptr_t word = shard->directory;
	uint64_t index = hash >> CW_HASH_DIRECTORY_SHIFT;
	struct cw_segment *segment;

	if (__builtin_expect(word == 0, 0)) {
		return NULL;
	}
	/* A shift takes the low six bits of its count, which are the depth. */
	index &= ~(~UINT64_C(0) << (word & 63));
	segment = ((struct cw_segment **)(word & ~(uintptr_t)63))[index];
	if (segment == NULL) {
		__builtin_unreachable(); /* the first one is there before the directory is */
	}
	return segment;
}

/* The count is written under the lock and read without. */
CW_INLINE void cw_shard_count(struct cw_shard *shard, int64_t by)
{
	CW_ADD_OWNED(shard->live, by);
}

/* Lock held. 0; -EEXIST and where it is; -ENOMEM. */
CW_INLINE int cw_shard_insert(struct cw_shard *shard, const struct cw_shape *shape,
	uint64_t hash, const uint64_t *key, const uint64_t *words, struct cw_place *ret_there)
{
	for (;;) {
		struct cw_segment *segment = cw_shard_segment(shard, hash);
		int r;

		if (__builtin_expect(segment != NULL, 1)) {
			if (cw_segment_find(segment, shape, hash, key, false, ret_there)) {
				return -EEXIST;
			}
			if (cw_segment_place(segment, shape, hash, shape->reach, words)) {
				break;
			}
		}
		r = cw_shard_grow(shard, shape, hash);
		if (r == 0) {
			continue;
		}
		/* No memory to keep searches short: use the room there is. */
		if (segment == NULL || !cw_segment_place(segment, shape, hash,
					cw_shape_last(shape) + 1, words)) {
			return r;
		}
		break;
	}
	cw_shard_count(shard, 1);
	return 0;
}

/* Lock held. The record's words, of which the caller gives room for; false: not there. */
CW_INLINE bool cw_shard_remove(struct cw_shard *shard, const struct cw_shape *shape,
	uint64_t hash, const uint64_t *key, uint64_t *ret_words)
{
	struct cw_segment *segment = cw_shard_segment(shard, hash);
	struct cw_place place;

	if (segment == NULL || !cw_segment_find(segment, shape, hash, key, false, &place)) {
		return false;
	}
	for (uint32_t i = 0; i < shape->words; i++) {
		ret_words[i] = place.slot[i];
	}
	cw_segment_erase(segment, shape, hash, &place);
	cw_shard_count(shard, -1);
	if (shard->live < shard->low_water) {
		cw_shard_shrink(shard, shape);
	}
	return true;
}

#endif
