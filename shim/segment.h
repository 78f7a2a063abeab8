/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment of a table.h table: 4 KiB of groups, each with 15 slots. Private to table.c,
 * ledger*.c and handles.c. Nothing here takes a lock or calls anything.
 *
 * The first 16 bytes of a group are a tag for each slot (0: empty; else 7 bits of the hash)
 * and a count of the records that wanted to lie here and went on because it was full. A
 * search compares 15 tags at once and goes on only while that count is not 0; so its cost
 * depends neither on the size of the table nor, much, on how full it is, and nothing need
 * be moved, nor a mark be left, when a record goes. (Linear probing in 16-byte slots at the
 * same fill of up to 95% looks at a hundred slots and more.) Where a record goes on to also
 * depends on its hash, so that full groups do not fill their neighbours.
 *
 * Slot 14 of group 0 is the segment's header; its tag matches nothing.
 */
#ifndef CW_SEGMENT_H
#define CW_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SSE2__) && !defined(CW_TABLE_PORTABLE)
#define CW_TABLE_SSE2 1
#include <emmintrin.h>
#endif

#define CW_SEGMENT_BYTES 4096u
#define CW_GROUP_SLOTS 15u
#define CW_TAG_HEADER 1u
#define CW_TAG_USED 0x80u

/* Bits of a hash: 6 shard (or fewer), 7 tag, 4 group (or fewer), 20 directory, 27 unused. */
#define CW_HASH_SHARD_SHIFT 58
#define CW_HASH_TAG_SHIFT 51
#define CW_HASH_GROUP_SHIFT 47
#define CW_HASH_DIRECTORY_SHIFT 27

#define CW_INLINE static inline __attribute__((always_inline))

struct cw_group {
	uint8_t tags[CW_GROUP_SLOTS];
	uint8_t passed; /* records that went by; at most 239, so it cannot wrap */
	uint64_t slots[];
};

/* 4 KiB of groups. */
struct cw_segment {
	uint64_t words[CW_SEGMENT_BYTES / 8] __attribute__((aligned(16)));
};

/* What differs between tables; constants, so that all of it is folded where it is hot. */
struct cw_shape {
	uint32_t words;      /* of 8 bytes in a slot; at least 2 */
	uint32_t group_bits;
	uint32_t reach;      /* a record finding so many groups full splits the segment */
	uint64_t (*hash)(const uint64_t *slot);
	bool (*same)(const uint64_t *slot, const uint64_t *key);
	/* cw_segment_divide with this shape, compiled for it */
	void (*divide)(struct cw_segment *from, struct cw_segment *to, uint64_t bit);
};

/* Where a search ended: the slot, and how many groups after its home. */
struct cw_place {
	uint64_t *slot;
	uint8_t *tag;
	uint32_t steps;
};

/*
 * Every used bit of the product depends on all bits of the key: the first multiplication
 * carries upward, the shift brings the high half down, the second carries upward again.
 * The constants are those of MurmurHash3. Which ones matters: the golden ratio's spread
 * addresses 2^28 apart so badly that a record took 44.6 bytes (measured); these stay below
 * 40 at all of 37 strides, powers of two and others.
 */
CW_INLINE uint64_t cw_hash(uint64_t key)
{
	key *= UINT64_C(0xff51afd7ed558ccd);
	key ^= key >> 32;
	return key * UINT64_C(0xc4ceb9fe1a85ec53);
}

CW_INLINE uint32_t cw_shape_last(const struct cw_shape *shape)
{
	return (1u << shape->group_bits) - 1;
}

CW_INLINE struct cw_group *cw_group_at(struct cw_segment *segment, const struct cw_shape *shape,
	uint32_t index)
{
	size_t bytes = sizeof(struct cw_group) + CW_GROUP_SLOTS * sizeof(uint64_t) * shape->words;

	return (struct cw_group *)(void *)((char *)segment + index * bytes);
}

CW_INLINE uint32_t cw_hash_tag(uint64_t hash)
{
	return ((uint32_t)(hash >> CW_HASH_TAG_SHIFT) & 0x7f) | CW_TAG_USED;
}

CW_INLINE uint32_t cw_hash_home(uint64_t hash, const struct cw_shape *shape)
{
	return (uint32_t)(hash >> CW_HASH_GROUP_SHIFT) & cw_shape_last(shape);
}

/* Odd, so that all groups are met, whose number is a power of two. */
CW_INLINE uint32_t cw_hash_step(uint64_t hash)
{
	return (uint32_t)(hash >> (CW_HASH_TAG_SHIFT - 1)) | 1;
}

CW_INLINE struct cw_group *cw_group_home(struct cw_segment *segment, const struct cw_shape *shape,
	uint64_t hash)
{
	return cw_group_at(segment, shape, cw_hash_home(hash, shape));
}

#ifndef CW_TABLE_SSE2
/* One bit for each byte of the word that is 0; exact, no borrow runs into the next byte. */
CW_INLINE uint32_t cw_zero_bytes(uint64_t word)
{
	const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
	uint64_t zero = ~(((word & low) + low) | word | low);

	return (uint32_t)(((zero >> 7) * UINT64_C(0x0102040810204080)) >> 56);
}
#endif

/*
 * Bit i is set where tag i equals this one. shared: a writer may be at work; then the tags
 * are read as two atomic words, and acquired, so that what is read after is not older.
 */
CW_INLINE uint32_t cw_group_match(const struct cw_group *group, uint32_t tag, bool shared)
{
	const uint64_t *words = (const void *)group;
	uint32_t mask;

#ifdef CW_TABLE_SSE2
	__m128i tags;

	if (shared) {
		uint64_t low = __atomic_load_n(&words[0], __ATOMIC_ACQUIRE);
		uint64_t high = __atomic_load_n(&words[1], __ATOMIC_ACQUIRE);

		tags = _mm_set_epi64x((int64_t)high, (int64_t)low);
	} else {
		tags = _mm_load_si128((const __m128i *)(const void *)group);
	}
	/* By a multiplication: one instruction less than unpacking takes. */
	mask = (uint32_t)_mm_movemask_epi8(
		_mm_cmpeq_epi8(tags, _mm_set1_epi32((int)(tag * 0x01010101u))));
#else
	uint64_t pattern = tag * UINT64_C(0x0101010101010101);
	uint64_t low = __atomic_load_n(&words[0], __ATOMIC_ACQUIRE);
	uint64_t high = __atomic_load_n(&words[1], __ATOMIC_ACQUIRE);

	(void)shared;
	mask = cw_zero_bytes(low ^ pattern) | cw_zero_bytes(high ^ pattern) << 8;
#endif
	return mask & ((1u << CW_GROUP_SLOTS) - 1);
}

/*
 * Whether a new record may simply be put here, and at which slot: no record went on from here,
 * and there is room. One comparison for both, since `passed` lies behind the tags. For writers.
 */
CW_INLINE bool cw_group_free(const struct cw_group *group, size_t *ret_slot)
{
	uint32_t zeros;

#ifdef CW_TABLE_SSE2
	__m128i tags = _mm_load_si128((const __m128i *)(const void *)group);

	zeros = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_setzero_si128()));
#else
	zeros = cw_group_match(group, 0, false) | (uint32_t)(group->passed == 0) << CW_GROUP_SLOTS;
#endif
	if (__builtin_expect(zeros <= 1u << CW_GROUP_SLOTS, 0)) {
		return false;
	}
	*ret_slot = (size_t)(unsigned)__builtin_ctz(zeros);
	return true;
}

/* Bit i is set where slot i holds a record. For writers, and copies. */
CW_INLINE uint32_t cw_group_used(const struct cw_group *group)
{
	uint32_t mask = ~cw_group_match(group, 0, false) & ((1u << CW_GROUP_SLOTS) - 1);

	/* The header is neither empty nor a record. */
	return group->tags[CW_GROUP_SLOTS - 1] == CW_TAG_HEADER ?
		mask & ~(1u << (CW_GROUP_SLOTS - 1)) : mask;
}

/* Looks in one group; true, and the place but for its steps, where it is. */
CW_INLINE bool cw_group_find(struct cw_group *group, const struct cw_shape *shape, uint32_t tag,
	const uint64_t *key, bool shared, struct cw_place *ret)
{
	for (uint32_t hits = cw_group_match(group, tag, shared); hits != 0; hits &= hits - 1) {
		size_t i = (size_t)(unsigned)__builtin_ctz(hits);

		if (__builtin_expect(shape->same(&group->slots[i * shape->words], key), 1)) {
			ret->slot = &group->slots[i * shape->words];
			ret->tag = &group->tags[i];
			return true;
		}
	}
	return false;
}

CW_INLINE bool cw_group_passed(const struct cw_group *group)
{
	return __builtin_expect(__atomic_load_n(&group->passed, __ATOMIC_ACQUIRE) != 0, 0);
}

CW_INLINE bool cw_segment_find(struct cw_segment *segment, const struct cw_shape *shape,
	uint64_t hash, const uint64_t *key, bool shared, struct cw_place *ret)
{
	const uint32_t last = cw_shape_last(shape);
	uint32_t tag = cw_hash_tag(hash), index = cw_hash_home(hash, shape);

	for (uint32_t steps = 0; steps <= last; steps++) {
		struct cw_group *group = cw_group_at(segment, shape, index);

		if (cw_group_find(group, shape, tag, key, shared, ret)) {
			ret->steps = steps;
			return true;
		}
		if (!cw_group_passed(group)) {
			return false;
		}
		index = (index + cw_hash_step(hash)) & last;
	}
	return false;
}

/* Counts a record in or out of the groups that it passed on the way from its home. */
CW_INLINE void cw_segment_pass(struct cw_segment *segment, const struct cw_shape *shape,
	uint64_t hash, uint32_t steps, int by)
{
	uint32_t index = cw_hash_home(hash, shape);

	for (; __builtin_expect(steps != 0, 0); steps--) {
		struct cw_group *group = cw_group_at(segment, shape, index);

		__atomic_store_n(&group->passed, (uint8_t)(group->passed + by), __ATOMIC_RELEASE);
		index = (index + cw_hash_step(hash)) & cw_shape_last(shape);
	}
}

/*
 * Stores are releases for the sake of readers without a lock: what they see of this, they
 * see after the odd sequence number before it. On x86 that costs nothing.
 */
CW_INLINE void cw_slot_write(uint64_t *slot, const struct cw_shape *shape, const uint64_t *words)
{
	for (uint32_t i = 0; i < shape->words; i++) {
		__atomic_store_n(&slot[i], words[i], __ATOMIC_RELEASE);
	}
}

/* Writes the record into this group, if there is room. */
CW_INLINE bool cw_group_place(struct cw_group *group, const struct cw_shape *shape, uint32_t tag,
	const uint64_t *words)
{
	uint32_t empty = cw_group_match(group, 0, false), i;

	if (__builtin_expect(empty == 0, 0)) {
		return false;
	}
	i = (uint32_t)__builtin_ctz(empty);
	cw_slot_write(&group->slots[i * shape->words], shape, words);
	__atomic_store_n(&group->tags[i], (uint8_t)tag, __ATOMIC_RELEASE);
	return true;
}

CW_INLINE bool cw_segment_place(struct cw_segment *segment, const struct cw_shape *shape,
	uint64_t hash, uint32_t reach, const uint64_t *words)
{
	uint32_t tag = cw_hash_tag(hash), index = cw_hash_home(hash, shape);

	for (uint32_t steps = 0; steps < reach; steps++) {
		if (cw_group_place(cw_group_at(segment, shape, index), shape, tag, words)) {
			cw_segment_pass(segment, shape, hash, steps, 1);
			return true;
		}
		index = (index + cw_hash_step(hash)) & cw_shape_last(shape);
	}
	return false;
}

/*
 * Find and place in one pass, for the hot path: true when the record is surely new and was
 * written; false when it is there, or room is not found as simply, and nothing was written.
 */
CW_INLINE bool cw_segment_enter(struct cw_segment *segment, const struct cw_shape *shape,
	uint64_t hash, const uint64_t *key, const uint64_t *words)
{
	uint32_t tag = cw_hash_tag(hash), index = cw_hash_home(hash, shape);
	struct cw_group *room = NULL;
	uint32_t room_steps = 0;

	for (uint32_t steps = 0; steps < shape->reach; steps++) {
		struct cw_group *group = cw_group_at(segment, shape, index);
		struct cw_place there;

		if (__builtin_expect(cw_group_find(group, shape, tag, key, false, &there), 0)) {
			return false;
		}
		if (room == NULL && cw_group_match(group, 0, false) != 0) {
			room = group;
			room_steps = steps;
		}
		if (!cw_group_passed(group) && __builtin_expect(room != NULL, 1)) {
			(void)cw_group_place(room, shape, tag, words);
			cw_segment_pass(segment, shape, hash, room_steps, 1);
			return true;
		}
		index = (index + cw_hash_step(hash)) & cw_shape_last(shape);
	}
	return false;
}

CW_INLINE void cw_segment_erase(struct cw_segment *segment, const struct cw_shape *shape,
	uint64_t hash, const struct cw_place *place)
{
	__atomic_store_n(place->tag, 0, __ATOMIC_RELEASE);
	cw_segment_pass(segment, shape, hash, place->steps, -1);
}

/* The same for slot i of group g, found by going through them. */
CW_INLINE void cw_segment_erase_at(struct cw_segment *segment, const struct cw_shape *shape,
	uint64_t hash, uint32_t g, uint32_t i)
{
	struct cw_place place = {.tag = &cw_group_at(segment, shape, g)->tags[i]};

	for (uint32_t index = cw_hash_home(hash, shape); index != g; place.steps++) {
		index = (index + cw_hash_step(hash)) & cw_shape_last(shape);
	}
	cw_segment_erase(segment, shape, hash, &place);
}

/*
 * Moves the records whose hash has this bit, and takes home those of the others that had
 * found their home full. Any reach: another order may need more of it, and all fit somewhere.
 */
CW_INLINE void cw_segment_divide(struct cw_segment *from, struct cw_segment *to,
	const struct cw_shape *shape, uint64_t bit)
{
	const uint32_t last = cw_shape_last(shape);
	uint32_t away = 0;

	for (uint32_t k = 0; k <= 2 * last + 1; k++) {
		uint32_t g = k & last, used = cw_group_used(cw_group_at(from, shape, g));

		if (k > last && (away >> g & 1) == 0) {
			continue;
		}
		for (; used != 0; used &= used - 1) {
			uint32_t i = (uint32_t)__builtin_ctz(used);
			uint64_t *slot = &cw_group_at(from, shape, g)->slots[i * shape->words];
			uint64_t hash = shape->hash(slot);

			if ((hash & bit) != 0) {
				(void)cw_segment_place(to, shape, hash, last + 1, slot);
				cw_segment_erase_at(from, shape, hash, g, i);
			} else if (cw_hash_home(hash, shape) != g) {
				if (k <= last) {
					away |= 1u << g;
				} else if (cw_segment_place(from, shape, hash, 1, slot)) {
					cw_segment_erase_at(from, shape, hash, g, i);
				}
			}
		}
	}
}

#endif
