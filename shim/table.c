/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cold half of table.h: memory, growth, walks, fork. Calls mmap, madvise, sysconf and
 * memcpy alone. All of it but the fork functions runs under the shard's lock.
 */
#include "table.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define CHUNK_SMALL 16384u
#define CHUNK_LARGE 65536u
#define CHUNK_LARGE_FROM 64u /* pages */
#define HEADER_SLOT (CW_GROUP_SLOTS - 1)
#define LINK 2 /* the word of a spare segment that leads to the next: of slot 0, not its tags */

/* Of 239 records: where joining begins, and what may be joined (splits come above 220). */
#define LOW(capacity) ((capacity) * 12 / 32)
#define JOINED(capacity) ((capacity) * 51 / 64)
#define JOIN_TRIES 4
#define JOIN_PAUSE 16

void *cw_table_map(size_t bytes)
{
	int saved = errno;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	errno = saved;
	return memory == MAP_FAILED ? NULL : memory;
}

/*
 * Shards fill whole pages (CW_SHARDS_ALIGNED), which can be wiped along with what hangs on
 * them: all or nothing, since a shard that points to wiped segments would be broken. With
 * pages larger than 4 KiB strangers' data would go too. An older kernel refuses.
 */
static bool shard_wipe_on_fork(struct cw_shard *shard)
{
	uintptr_t page = (uintptr_t)shard & ~(uintptr_t)(CW_SEGMENT_BYTES - 1);

	return sysconf(_SC_PAGESIZE) == CW_SEGMENT_BYTES &&
		madvise((void *)page, CW_SEGMENT_BYTES, MADV_WIPEONFORK) == 0;
}

static void *shard_map(struct cw_shard *shard, size_t bytes)
{
	int saved = errno;
	void *memory = cw_table_map(bytes);

	if (memory == NULL) {
		return NULL;
	}
	if (shard->pages == 0) {
		shard->wiped = shard_wipe_on_fork(shard);
	}
	if (shard->wiped) {
		(void)madvise(memory, bytes, MADV_WIPEONFORK);
	}
	errno = saved;
	__atomic_store_n(&shard->pages, shard->pages + (uint32_t)(bytes / CW_SEGMENT_BYTES),
		__ATOMIC_RELAXED);
	return memory;
}

/* The header's slot lies in group 0, whatever the shape; its first word is the local depth. */
static uint64_t *segment_header(struct cw_segment *segment, const struct cw_shape *shape)
{
	return &cw_group_at(segment, shape, 0)->slots[HEADER_SLOT * shape->words];
}

/*
 * Fresh memory is zero: no tags, nothing passed. Small mappings at first, since what is left
 * of one, times the number of shards, counts where records are few.
 */
static struct cw_segment *segment_new(struct cw_shard *shard)
{
	char *memory = shard->chunk;

	if (shard->spare != NULL) {
		struct cw_segment *spare = shard->spare;

		/* Left without tags; the link in it is in nobody's slot. */
		shard->spare = (struct cw_segment *)spare->words[LINK];
		return spare;
	}
	if (shard->chunk_left == 0) {
		size_t bytes = shard->pages < CHUNK_LARGE_FROM ? CHUNK_SMALL : CHUNK_LARGE;

		memory = shard_map(shard, bytes);
		if (memory == NULL) {
			return NULL;
		}
		__atomic_store_n(&shard->chunk_left, (uint16_t)(bytes / CW_SEGMENT_BYTES),
			__ATOMIC_RELAXED);
	}
	__atomic_store_n(&shard->chunk_left, (uint16_t)(shard->chunk_left - 1), __ATOMIC_RELAXED);
	shard->chunk = memory + CW_SEGMENT_BYTES;
	return (struct cw_segment *)(void *)memory;
}

/* All its tags are 0 but the header's. */
static void segment_retire(struct cw_shard *shard, struct cw_segment *segment)
{
	uint8_t *tags = (uint8_t *)segment;

	__atomic_store_n(&tags[HEADER_SLOT], 0, __ATOMIC_RELEASE);
	__atomic_store_n(&segment->words[LINK], (uint64_t)(uintptr_t)shard->spare,
		__ATOMIC_RELEASE);
	shard->spare = segment;
}

static uint32_t segment_count(struct cw_segment *segment, const struct cw_shape *shape)
{
	uint32_t count = 0;

	for (uint32_t g = 0; g <= cw_shape_last(shape); g++) {
		count += (uint32_t)__builtin_popcount(cw_group_used(cw_group_at(segment, shape, g)));
	}
	return count;
}

static void shard_set_segments(struct cw_shard *shard, const struct cw_shape *shape,
	uint32_t count)
{
	shard->segments = count;
	shard->low_water = LOW(CW_GROUP_SLOTS << shape->group_bits) * (count - 1);
}

static void segment_set_depth(struct cw_segment *segment, const struct cw_shape *shape,
	uint64_t depth)
{
	__atomic_store_n(segment_header(segment, shape), depth, __ATOMIC_RELEASE);
	__atomic_store_n(&cw_group_at(segment, shape, 0)->tags[HEADER_SLOT], CW_TAG_HEADER,
		__ATOMIC_RELEASE);
}

/*
 * The second half becomes a copy of the first, in place while there is room (a page holds
 * 512 entries). An old directory is not unmapped: a reader without a lock may be in it, and
 * all of them together are no larger than the new one.
 */
static int directory_double(struct cw_shard *shard)
{
	uint32_t depth;
	struct cw_segment **old = cw_shard_directory(shard, &depth), **new = old;
	size_t count = (size_t)1 << depth, bytes = 2 * count * sizeof(*old);
	size_t room = old == shard->few ? sizeof(shard->few) : CW_SEGMENT_BYTES;

	if (depth == CW_DIRECTORY_BITS) {
		return -ENOMEM;
	}
	if (bytes > room) {
		size_t mapping = bytes > CW_SEGMENT_BYTES ? bytes : CW_SEGMENT_BYTES;

		new = shard_map(shard, mapping);
		if (new == NULL) {
			return -ENOMEM;
		}
		memcpy(new, old, count * sizeof(*old));
	}
	memcpy(new + count, old, count * sizeof(*old));
	__atomic_store_n(&shard->directory, (uintptr_t)new | (depth + 1), __ATOMIC_RELEASE);
	return 0;
}

static int segment_split(struct cw_shard *shard, const struct cw_shape *shape, uint64_t hash,
	struct cw_segment *segment)
{
	uint64_t local = *segment_header(segment, shape);
	uint64_t bit = UINT64_C(1) << local;
	uint32_t depth;
	struct cw_segment **directory, *sibling;
	size_t i;

	(void)cw_shard_directory(shard, &depth);
	sibling = segment_new(shard);
	if (sibling == NULL) {
		return -ENOMEM;
	}
	if (local == depth && directory_double(shard) < 0) {
		segment_retire(shard, sibling);
		return -ENOMEM;
	}
	segment_set_depth(segment, shape, local + 1);
	segment_set_depth(sibling, shape, local + 1);
	shape->divide(segment, sibling, bit << CW_HASH_DIRECTORY_SHIFT);
	directory = cw_shard_directory(shard, &depth);
	i = (size_t)((hash >> CW_HASH_DIRECTORY_SHIFT) & (bit - 1)) | (size_t)bit;
	for (; i < (size_t)1 << depth; i += (size_t)bit << 1) {
		__atomic_store_n(&directory[i], sibling, __ATOMIC_RELEASE);
	}
	shard_set_segments(shard, shape, shard->segments + 1);
	return 0;
}

/* Joins the segment of this directory index with its other half, if both fit into one. */
static bool segment_join(struct cw_shard *shard, const struct cw_shape *shape, size_t index)
{
	uint32_t depth;
	struct cw_segment **directory = cw_shard_directory(shard, &depth), *lower, *upper;
	uint64_t local = *segment_header(directory[index], shape);
	size_t bit;

	if (local == 0) {
		return false;
	}
	bit = (size_t)1 << (local - 1);
	index &= bit - 1;
	lower = directory[index];
	upper = directory[index | bit];
	if (*segment_header(lower, shape) != local || *segment_header(upper, shape) != local ||
			segment_count(lower, shape) + segment_count(upper, shape) >
				JOINED(CW_GROUP_SLOTS << shape->group_bits)) {
		return false;
	}
	shape->divide(upper, lower, (uint64_t)bit << CW_HASH_DIRECTORY_SHIFT);
	segment_set_depth(lower, shape, local - 1);
	for (index |= bit; index < (size_t)1 << depth; index += bit << 1) {
		__atomic_store_n(&directory[index], lower, __ATOMIC_RELEASE);
	}
	segment_retire(shard, upper);
	shard_set_segments(shard, shape, shard->segments - 1);
	return true;
}

/*
 * A few tries; and when they were in vain, none until some more records have gone, so that
 * a removal costs little on average while nothing fits.
 */
void cw_shard_shrink(struct cw_shard *shard, const struct cw_shape *shape)
{
	uint32_t depth;

	(void)cw_shard_directory(shard, &depth);
	for (int i = 0; i < JOIN_TRIES; i++) {
		if (segment_join(shard, shape, shard->sweep++ & (((size_t)1 << depth) - 1))) {
			return;
		}
	}
	shard->low_water = shard->live > JOIN_PAUSE ? (uint32_t)shard->live - JOIN_PAUSE : 0;
}

int cw_shard_grow(struct cw_shard *shard, const struct cw_shape *shape, uint64_t hash)
{
	struct cw_segment **entry = cw_shard_entry(shard, hash);
	struct cw_segment *segment = *entry;
	uint32_t depth;

	if (segment != NULL) {
		return segment_split(shard, shape, hash, segment);
	}
	/* The shard's first. */
	segment = segment_new(shard);
	if (segment == NULL) {
		return -ENOMEM;
	}
	(void)cw_shard_directory(shard, &depth);
	segment_set_depth(segment, shape, depth);
	shard_set_segments(shard, shape, 1);
	__atomic_store_n(entry, segment, __ATOMIC_RELEASE);
	__atomic_store_n(&shard->directory, (uintptr_t)shard->few | depth, __ATOMIC_RELEASE);
	return 0;
}

static uint32_t reverse_bits(uint32_t value)
{
	uint32_t reversed = 0;

	for (unsigned i = 0; i < CW_DIRECTORY_BITS; i++) {
		reversed = reversed << 1 | (value >> i & 1);
	}
	return reversed;
}

struct cw_segment *cw_shard_at(struct cw_shard *shard, const struct cw_shape *shape,
	uint32_t cursor, uint32_t *ret_next)
{
	uint32_t depth;
	struct cw_segment **directory = cw_shard_directory(shard, &depth);
	struct cw_segment *segment = directory[reverse_bits(cursor) & ((1u << depth) - 1)];

	if (segment != NULL) {
		depth = (uint32_t)*segment_header(segment, shape);
	}
	*ret_next = (cursor | ((CW_CURSOR_END >> depth) - 1)) + 1;
	return segment;
}

bool cw_shard_copy(struct cw_shard *shard, const struct cw_shape *shape, uint32_t *cursor,
	struct cw_segment *copy)
{
	struct cw_segment *segment;
	uint32_t start = *cursor;

	cw_lock_acquire(&shard->lock);
	segment = cw_shard_at(shard, shape, *cursor, cursor);
	if (segment != NULL) {
		memcpy(copy, segment, CW_SEGMENT_BYTES);
	}
	cw_lock_release(&shard->lock);
	if (segment == NULL) {
		return false;
	}
	/* The cursor at its beginning, as ever? Or was it joined with one that was seen? */
	if ((start & ((CW_CURSOR_END >> *segment_header(copy, shape)) - 1)) == 0) {
		return true;
	}
	for (uint32_t g = 0; g <= cw_shape_last(shape); g++) {
		struct cw_group *group = cw_group_at(copy, shape, g);

		for (uint32_t used = cw_group_used(group); used != 0; used &= used - 1) {
			uint32_t i = (uint32_t)__builtin_ctz(used);
			uint64_t hash = shape->hash(&group->slots[i * shape->words]);

			if (reverse_bits((uint32_t)(hash >> CW_HASH_DIRECTORY_SHIFT)) < start) {
				group->tags[i] = 0;
			}
		}
	}
	return true;
}

void cw_shards_forget(struct cw_shard *shards, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct cw_shard *shard = &shards[i];

		__atomic_store_n(&shard->directory, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&shard->live, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&shard->pages, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&shard->sequence, 0, __ATOMIC_RELAXED);
		shard->chunk = NULL;
		__atomic_store_n(&shard->chunk_left, 0, __ATOMIC_RELAXED);
		shard->wiped = false;
		shard->low_water = 0;
		shard->spare = NULL;
		shard->segments = 0;
		shard->sweep = 0;
		for (unsigned k = 0; k < CW_DIRECTORY_FEW; k++) {
			__atomic_store_n(&shard->few[k], NULL, __ATOMIC_RELAXED);
		}
		cw_lock_reset(&shard->lock);
	}
}

size_t cw_shards_mapped(struct cw_shard *shards, unsigned count)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < count; i++) {
		/* A segment that was never used is mapped, and no memory. */
		bytes += (size_t)CW_SEGMENT_BYTES *
			(__atomic_load_n(&shards[i].pages, __ATOMIC_RELAXED) -
				__atomic_load_n(&shards[i].chunk_left, __ATOMIC_RELAXED));
	}
	return bytes;
}
