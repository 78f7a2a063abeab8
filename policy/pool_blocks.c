/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

/* How many free blocks of a size are looked at: they are the ones that were freed last. */
enum { POOL_LOOK_AT = 64 };

uint64_t pool_class_size(unsigned int class)
{
	unsigned int bits = POOL_SMALLEST_BITS + (class >> POOL_STEP_BITS);
	uint64_t step = (uint64_t)1 << (bits - POOL_STEP_BITS);

	return ((uint64_t)1 << bits) + step * (class & ((1u << POOL_STEP_BITS) - 1));
}

static struct pool_home *find_home(struct pool *pool, const void *context)
{
	for (unsigned int i = 0; i < POOL_HOMES; i++) {
		if (__atomic_load_n(&pool->homes[i].context, __ATOMIC_ACQUIRE) == context) {
			return &pool->homes[i];
		}
	}
	return NULL;
}

struct pool_home *pool_home_make(struct pool *pool, void *context, int32_t device)
{
	struct pool_home *home;

	if (context == NULL) {
		return NULL;
	}
	home = find_home(pool, context);
	if (home != NULL) {
		return home;
	}
	pool_lock_acquire(&pool->homes_lock);
	home = find_home(pool, context);
	if (home == NULL) {
		home = find_home(pool, NULL);
		if (home != NULL) {
			home->device = device;
			__atomic_store_n(&home->first_stream, NULL, __ATOMIC_RELAXED);
			__atomic_store_n(&home->several, false, __ATOMIC_RELAXED);
			__atomic_store_n(&home->context, context, __ATOMIC_RELEASE);
		}
	}
	pool_lock_release(&pool->homes_lock);
	return home;
}

static uint64_t hash(const void *memory)
{
	return ((uint64_t)(uintptr_t)memory >> POOL_SMALLEST_BITS) * 0x9e3779b97f4a7c15u;
}

static struct pool_shard *shard_of(struct pool *pool, const void *memory)
{
	return &pool->shards[hash(memory) >> 58];
}

/* Lock held, as for all of the next few. */
static struct pool_block **bucket_of(struct pool_shard *shard, const void *memory)
{
	return &shard->buckets[hash(memory) >> 26 & (shard->bucket_count - 1)];
}

struct pool_block *pool_find(struct pool *pool, const void *memory)
{
	struct pool_shard *shard = shard_of(pool, memory);
	struct pool_block *block = NULL;

	pool_lock_acquire(&shard->lock);
	if (shard->bucket_count != 0) {
		block = *bucket_of(shard, memory);
		while (block != NULL && block->memory != memory) {
			block = block->hash_next;
		}
	}
	pool_lock_release(&shard->lock);
	return block;
}

/* Twice as many buckets. */
static bool grow(struct pool_shard *shard)
{
	uint32_t count = shard->bucket_count != 0 ? shard->bucket_count * 2 : 16;
	struct pool_block **old = shard->buckets;
	uint32_t old_count = shard->bucket_count;
	struct pool_block **buckets = calloc(count, sizeof(struct pool_block *));

	if (buckets == NULL) {
		return old != NULL;
	}
	shard->buckets = buckets;
	shard->bucket_count = count;
	for (uint32_t i = 0; i < old_count; i++) {
		struct pool_block *block = old[i];

		while (block != NULL) {
			struct pool_block *next = block->hash_next;
			struct pool_block **bucket = bucket_of(shard, block->memory);

			block->hash_next = *bucket;
			*bucket = block;
			block = next;
		}
	}
	free(old);
	return true;
}

bool pool_enter(struct pool *pool, struct pool_block *block)
{
	struct pool_shard *shard = shard_of(pool, block->memory);
	bool room;

	pool_lock_acquire(&shard->lock);
	room = shard->count < shard->bucket_count || grow(shard);
	if (room) {
		struct pool_block **bucket = bucket_of(shard, block->memory);

		block->hash_next = *bucket;
		*bucket = block;
		shard->count++;
	}
	pool_lock_release(&shard->lock);
	return room;
}

/* Lock held. */
static void unlink_block(struct pool_shard *shard, struct pool_block *block)
{
	struct pool_block **link = bucket_of(shard, block->memory);

	while (*link != NULL && *link != block) {
		link = &(*link)->hash_next;
	}
	if (*link == block) {
		*link = block->hash_next;
		shard->count--;
	}
}

void pool_remove(struct pool *pool, struct pool_block *block)
{
	struct pool_shard *shard = shard_of(pool, block->memory);

	pool_lock_acquire(&shard->lock);
	unlink_block(shard, block);
	pool_lock_release(&shard->lock);
}

struct pool_block *pool_block_new(struct pool *pool)
{
	struct pool_block *block;

	pool_lock_acquire(&pool->spare_lock);
	block = pool->spare;
	if (block != NULL) {
		pool->spare = block->next;
	}
	pool_lock_release(&pool->spare_lock);
	if (block == NULL) {
		return calloc(1, sizeof(*block));
	}
	memset(block, 0, sizeof(*block));
	return block;
}

void pool_block_spare(struct pool *pool, struct pool_block *block)
{
	pool_lock_acquire(&pool->spare_lock);
	block->next = pool->spare;
	pool->spare = block;
	pool_lock_release(&pool->spare_lock);
}

void pool_keep(struct pool *pool, struct pool_block *block)
{
	struct pool_bin *bin = &pool->bins[block->class];

	if (pool->max != UINT64_MAX) {
		__atomic_fetch_add(&pool->kept, block->size, __ATOMIC_RELAXED);
	}
	pool_lock_acquire(&bin->lock);
	block->next = bin->first;
	bin->first = block;
	pool_lock_release(&bin->lock);
}

static void taken(struct pool *pool, const struct pool_block *block)
{
	if (pool->max != UINT64_MAX) {
		__atomic_fetch_sub(&pool->kept, block->size, __ATOMIC_RELAXED);
	}
}

struct pool_block *pool_take(struct pool *pool, unsigned int class, struct pool_home *home,
			     const struct pool_stream *stream, bool *ret_wait)
{
	struct pool_bin *bin = &pool->bins[class];
	struct pool_block **found = NULL;
	struct pool_block **link;
	struct pool_block *block = NULL;
	unsigned int looked = 0;

	*ret_wait = true;
	pool_lock_acquire(&bin->lock);
	for (link = &bin->first; *link != NULL && looked < POOL_LOOK_AT; link = &(*link)->next) {
		looked++;
		if ((*link)->home != home) {
			continue;
		}
		if (pool_is_free_for(*link, stream)) {
			*ret_wait = false;
			found = link;
			break;
		}
		/* The last one that is seen was freed first, and will be ready first. */
		if ((*link)->order == POOL_STREAM) {
			found = link;
		}
	}
	if (found != NULL) {
		block = *found;
		*found = block->next;
	}
	pool_lock_release(&bin->lock);
	if (block != NULL) {
		__atomic_store_n(&block->used, true, __ATOMIC_RELAXED);
		taken(pool, block);
	}
	return block;
}

struct pool_block *pool_take_all(struct pool *pool,
				 bool (*match)(struct pool_block *block, const void *argument),
				 const void *argument)
{
	struct pool_block *all = NULL;

	for (unsigned int i = 0; i < POOL_CLASSES; i++) {
		struct pool_bin *bin = &pool->bins[i];
		struct pool_block **link;

		pool_lock_acquire(&bin->lock);
		link = &bin->first;
		while (*link != NULL) {
			struct pool_block *block = *link;

			if (!match(block, argument)) {
				link = &block->next;
				continue;
			}
			*link = block->next;
			block->next = all;
			all = block;
			__atomic_store_n(&block->held, true, __ATOMIC_RELAXED);
			taken(pool, block);
		}
		pool_lock_release(&bin->lock);
	}
	return all;
}

static bool is_of_home(struct pool_block *block, const void *argument)
{
	return block->home == argument;
}

/* Under the lock that pool_forget_home looks at it under. False: it is gone, and spared. */
static bool end_hold(struct pool *pool, struct pool_block *block, bool keep)
{
	struct pool_shard *shard = shard_of(pool, block->memory);
	bool gone;

	pool_lock_acquire(&shard->lock);
	__atomic_store_n(&block->held, false, __ATOMIC_RELAXED);
	gone = block->gone;
	if (!gone && keep) {
		pool_keep(pool, block);
	} else if (!gone) {
		unlink_block(shard, block);
	}
	pool_lock_release(&shard->lock);
	if (gone) {
		pool_block_spare(pool, block);
	}
	return !gone;
}

bool pool_claim(struct pool *pool, struct pool_block *block)
{
	return end_hold(pool, block, false);
}

void pool_keep_held(struct pool *pool, struct pool_block *block)
{
	(void)end_hold(pool, block, true);
}

/* Where it is in it: others are handed out. */
static void take_from_bin(struct pool *pool, struct pool_block *block)
{
	struct pool_bin *bin = &pool->bins[block->class];
	struct pool_block **link;

	pool_lock_acquire(&bin->lock);
	link = &bin->first;
	while (*link != NULL && *link != block) {
		link = &(*link)->next;
	}
	if (*link == block) {
		*link = block->next;
		taken(pool, block);
	}
	pool_lock_release(&bin->lock);
}

/* Its bin's lock is taken under the shard's. */
static void forget(struct pool *pool, struct pool_block *block)
{
	if (__atomic_load_n(&block->held, __ATOMIC_RELAXED)) {
		block->gone = true;
		return;
	}
	if (!__atomic_load_n(&block->used, __ATOMIC_RELAXED)) {
		take_from_bin(pool, block);
	}
	pool_block_spare(pool, block);
}

void pool_forget_home(struct pool *pool, struct pool_home *home)
{
	struct pool_block *ours = pool_take_all(pool, is_of_home, home);

	for (; ours != NULL; ours = ours->next) {
		__atomic_store_n(&ours->held, false, __ATOMIC_RELAXED);
	}
	for (unsigned int i = 0; i < POOL_SHARDS; i++) {
		struct pool_shard *shard = &pool->shards[i];

		pool_lock_acquire(&shard->lock);
		for (uint32_t j = 0; j < shard->bucket_count; j++) {
			struct pool_block **link = &shard->buckets[j];

			while (*link != NULL) {
				struct pool_block *block = *link;

				if (block->home != home) {
					link = &block->hash_next;
					continue;
				}
				*link = block->hash_next;
				shard->count--;
				forget(pool, block);
			}
		}
		pool_lock_release(&shard->lock);
	}
	__atomic_store_n(&home->context, NULL, __ATOMIC_RELEASE);
}
