/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps freed device memory for the next allocation of the same stream: max=SIZE to keep.
 * Blocks are whole allocations of what stands behind, in sizes of a power of two, and never
 * cut. A block that was freed in one stream is used again in that stream alone: nothing has to
 * be awaited, and the order of the stream is the order of the uses.
 *
 * The interface tells neither the context nor whether NULL is the per-thread stream: both come
 * from host->current_event.
 */
#include "args.h"

#include <pthread.h>
#include <stdlib.h>

#define CLASSES 64

struct block {
	struct block *next;
	void *memory;
	void *stream;
	void *context;
	uint64_t size;
	uint64_t thread; /* of a NULL stream that is per thread, else 0 */
	bool used;
};

struct pool {
	const struct cuweir_host *host;
	uint64_t max;
	pthread_mutex_t lock; /* leaf; nothing behind is called under it */
	uint64_t kept;
	struct block *blocks[CLASSES];
};

static unsigned int class_of(uint64_t size)
{
	unsigned int bits = 64 - (unsigned int)__builtin_clzll(size);
	unsigned int class = (size & (size - 1)) == 0 ? bits - 1 : bits;
	return class < 9 ? 9 : class; /* 512 bytes at least */
}

/* Where an operation belongs; returns whether a capture is open. */
static bool place_of(const struct pool *pool, void *stream, struct block *ret_place)
{
	const struct cuweir_event *event = pool->host->current_event(pool->host);
	*ret_place = (struct block){ .stream = stream };
	if (event != NULL) {
		bool per_thread = (event->flags & CUWEIR_EVENT_PER_THREAD) != 0 && stream == NULL;
		ret_place->context = event->context;
		ret_place->thread = per_thread ? event->thread : 0;
	}
	return event != NULL && (event->flags & CUWEIR_EVENT_CAPTURING) != 0;
}

static struct block *take(struct pool *pool, unsigned int class, const struct block *place)
{
	struct block *block = NULL;
	pthread_mutex_lock(&pool->lock);
	for (block = pool->blocks[class]; block != NULL; block = block->next) {
		if (!block->used && block->stream == place->stream &&
		    block->context == place->context && block->thread == place->thread) {
			block->used = true;
			pool->kept -= block->size;
			break;
		}
	}
	pthread_mutex_unlock(&pool->lock);
	return block;
}

static void *allocate_async(void *state, uint64_t size, uint64_t alignment, uint32_t flags,
			    void *stream)
{
	struct pool *pool = state;
	const struct cuweir_allocator *next = pool->host->next;
	struct block place;
	if (size == 0 || size > 1ull << 62 || next == NULL) {
		return NULL;
	}
	unsigned int class = class_of(size);
	bool capturing = place_of(pool, stream, &place);
	/* Into a capture an allocation is a node of the graph: what stands behind knows how. */
	struct block *block = capturing ? NULL : take(pool, class, &place);
	if (block != NULL) {
		return block->memory;
	}
	block = malloc(sizeof(*block));
	if (block == NULL) {
		return NULL;
	}
	*block = place;
	block->used = true;
	block->size = 1ull << class;
	block->memory = next->allocate_async(pool->host->next_state, block->size, alignment, flags,
					     stream);
	if (block->memory == NULL) {
		free(block);
		return NULL;
	}
	void *memory = block->memory;
	pthread_mutex_lock(&pool->lock);
	block->next = pool->blocks[class];
	pool->blocks[class] = block;
	pthread_mutex_unlock(&pool->lock);
	return memory;
}

/* The used block at `memory`; called with the lock. */
static struct block *find(struct pool *pool, const void *memory)
{
	for (unsigned int class = 0; class < CLASSES; class++) {
		for (struct block *block = pool->blocks[class]; block; block = block->next) {
			if (block->used && block->memory == memory) {
				return block;
			}
		}
	}
	return NULL;
}

/* Unlinks the blocks that `wanted` says yes to. */
static struct block *cut(struct pool *pool, bool (*wanted)(const struct block *, const void *),
			 const void *argument)
{
	struct block *gone = NULL;
	pthread_mutex_lock(&pool->lock);
	for (unsigned int class = 0; class < CLASSES; class++) {
		struct block **link = &pool->blocks[class];
		while (*link != NULL) {
			struct block *block = *link;
			if (!wanted(block, argument)) {
				link = &block->next;
				continue;
			}
			*link = block->next;
			block->next = gone;
			gone = block;
			pool->kept -= block->used ? 0 : block->size;
		}
	}
	pthread_mutex_unlock(&pool->lock);
	return gone;
}

static bool is_kept(const struct block *block, const void *argument)
{
	return !block->used;
}

static bool is_of_context(const struct block *block, const void *context)
{
	return block->context == context;
}

static bool is_memory(const struct block *block, const void *memory)
{
	return block->memory == memory;
}

/* Gives kept blocks back, each in its stream; false where there were none. */
static bool give_back(struct pool *pool, struct block *blocks)
{
	bool any = blocks != NULL;
	while (blocks != NULL) {
		struct block *block = blocks;
		blocks = block->next;
		pool->host->next->deallocate_async(pool->host->next_state, block->memory,
						   block->stream);
		free(block);
	}
	return any;
}

static bool deallocate_async(void *state, void *memory, void *stream)
{
	struct pool *pool = state;
	struct block place;
	if (memory == NULL) {
		return true;
	}
	bool capturing = place_of(pool, stream, &place);
	pthread_mutex_lock(&pool->lock);
	struct block *block = find(pool, memory);
	/* Kept during a capture whatever the limit: nothing can be given back then. */
	bool keep = block != NULL && (capturing || (pool->kept <= pool->max &&
						    block->size <= pool->max - pool->kept));
	if (block != NULL) {
		block->stream = stream;
		block->thread = place.thread;
	}
	if (keep) {
		block->used = false;
		pool->kept += block->size;
	}
	pthread_mutex_unlock(&pool->lock);
	if (block != NULL && !keep) {
		give_back(pool, cut(pool, is_memory, memory));
	}
	return block != NULL;
}

static bool on_alloc_failure(void *state, uint64_t size, int retry_count,
			     const struct cuweir_event *event)
{
	struct pool *pool = state;
	return give_back(pool, cut(pool, is_kept, NULL));
}

static void on_context_ended(void *state, void *context, int device)
{
	struct block *gone = cut(state, is_of_context, context);
	while (gone != NULL) {
		struct block *block = gone;
		gone = block->next;
		free(block);
	}
}

static int open_pool(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	uint64_t max = UINT64_MAX;
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	while (args_next(&rest, &pair)) {
		if (!args_is(pair.key, "max") || !args_size(pair.value, &max)) {
			return args_refuse(host, &pair, "max=SIZE");
		}
	}
	struct pool *pool = calloc(1, sizeof(*pool));
	if (pool == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	pool->host = host;
	pool->max = max;
	pthread_mutex_init(&pool->lock, NULL);
	*ret_state = pool;
	return CUWEIR_SUCCESS;
}

static const struct cuweir_allocator allocator = {
	.struct_size = sizeof(struct cuweir_allocator),
	.allocate_async = allocate_async,
	.deallocate_async = deallocate_async,
};

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "sketch_pool",
	.open = open_pool,
	.on_alloc_failure = on_alloc_failure,
	.on_context_ended = on_context_ended,
	.allocator = &allocator,
};
