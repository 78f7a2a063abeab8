/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <stdlib.h>

#include "args.h"

static bool is_capturing(const struct cuweir_event *event)
{
	return event == NULL || (event->flags & CUWEIR_EVENT_CAPTURING) != 0;
}

/* A new block from behind: of its class's size, or as large as is asked for if need be. */
static void *take_from_behind(struct pool *pool, uint64_t size, struct pool_block *block)
{
	const struct cuweir_host *host = pool->host;
	uint64_t exact = (size + 511) & ~(uint64_t)511;

	block->class = (uint16_t)pool_class_of(size);
	block->size = pool_class_size(block->class);
	block->memory = host->next->allocate(host->next_state, block->size, 256, 0);
	if (block->memory != NULL || exact >= block->size) {
		return block->memory;
	}
	/* It is kept with those that it is not smaller than. */
	block->size = exact;
	block->class--;
	block->memory = host->next->allocate(host->next_state, exact, 256, 0);
	if (block->memory == NULL && size < exact) {
		/* The last bytes of a limit that is no multiple. */
		block->size = size;
		block->memory = host->next->allocate(host->next_state, size, 256, 0);
	}
	return block->memory;
}

static void *allocate_new(struct pool *pool, uint64_t size, struct pool_home *home)
{
	struct pool_block *block = pool_block_new(pool);

	if (block == NULL) {
		return NULL;
	}
	block->home = home;
	block->used = true;
	if (take_from_behind(pool, size, block) == NULL) {
		pool_block_spare(pool, block);
		return NULL;
	}
	if (!pool_enter(pool, block)) {
		pool->host->next->deallocate(pool->host->next_state, block->memory);
		pool_block_spare(pool, block);
		return NULL;
	}
	return block->memory;
}

/* `stream` is NULL for memory that is valid in all streams at once. */
static void *allocate_for(struct pool *pool, uint64_t size, struct pool_home *home,
			  const struct pool_stream *stream)
{
	struct pool_block *block;
	bool wait;

	block = pool_take(pool, pool_class_of(size), home, stream, &wait);
	if (__builtin_expect(block == NULL, 0)) {
		return allocate_new(pool, size, home);
	}
	if (__builtin_expect(wait, 0) && !pool_wait_for(pool, block, stream)) {
		__atomic_store_n(&block->used, false, __ATOMIC_RELAXED);
		pool_keep(pool, block);
		return allocate_new(pool, size, home);
	}
	return block->memory;
}

static bool can_serve(uint64_t size, uint64_t alignment)
{
	return size != 0 && size <= (uint64_t)1 << 62 && (alignment & (alignment - 1)) == 0 &&
	       alignment <= 256;
}

static void *allocate_async(void *state, uint64_t size, uint64_t alignment, uint32_t flags,
			    void *stream)
{
	struct pool *pool = state;
	const struct cuweir_event *event = pool->host->current_event(pool->host);
	struct pool_stream key;
	struct pool_home *home;

	(void)flags;
	if (!can_serve(size, alignment) || event == NULL) {
		return NULL;
	}
	home = pool_home_of(pool, event->context, event->device);
	if (home == NULL) {
		return NULL;
	}
	key = pool_stream_of(stream, event);
	pool_note_stream(home, &key);
	return allocate_for(pool, size, home, &key);
}

static void *allocate(void *state, uint64_t size, uint64_t alignment, uint32_t flags)
{
	struct pool *pool = state;
	const struct cuweir_event *event = pool->host->current_event(pool->host);
	struct pool_home *home;

	(void)flags;
	if (!can_serve(size, alignment) || event == NULL) {
		return NULL;
	}
	home = pool_home_of(pool, event->context, event->device);
	return home != NULL ? allocate_for(pool, size, home, NULL) : NULL;
}

/* Back to what is behind; the block is in no bin, and no longer known by its address. */
static bool give_removed_back(struct pool *pool, struct pool_block *block)
{
	const struct cuweir_host *host = pool->host;

	if (!host->next->deallocate(host->next_state, block->memory)) {
		return false;
	}
	if (block->event != NULL) {
		pool->driver.event_destroy(block->event);
	}
	pool_block_spare(pool, block);
	return true;
}

/* The same of one that is known: before, since the address may come again as a new block's. */
static bool give_back(struct pool *pool, struct pool_block *block)
{
	pool_remove(pool, block);
	if (!give_removed_back(pool, block)) {
		pool_enter(pool, block);
		return false;
	}
	return true;
}

/* The block that is handed out at this address, which is no longer handed out. */
static struct pool_block *take_back(struct pool *pool, void *memory)
{
	struct pool_block *block = pool_find(pool, memory);

	if (block == NULL || !__atomic_exchange_n(&block->used, false, __ATOMIC_ACQ_REL)) {
		return NULL;
	}
	return block;
}

static void keep(struct pool *pool, struct pool_block *block, bool capturing)
{
	bool full = pool->max != UINT64_MAX && !capturing &&
		    __atomic_load_n(&pool->kept, __ATOMIC_RELAXED) + block->size > pool->max;

	if (!full || !give_back(pool, block)) {
		pool_keep(pool, block);
	}
}

static bool deallocate_async(void *state, void *memory, void *stream)
{
	struct pool *pool = state;
	const struct cuweir_event *event = pool->host->current_event(pool->host);
	struct pool_block *block;
	struct pool_stream key;

	if (memory == NULL) {
		return true;
	}
	block = event != NULL ? take_back(pool, memory) : NULL;
	if (block == NULL) {
		return false;
	}
	key = pool_stream_of(stream, event);
	pool_note_stream(block->home, &key);
	pool_freed_in_stream(pool, block, &key, is_capturing(event));
	keep(pool, block, is_capturing(event));
	return true;
}

static bool deallocate(void *state, void *memory)
{
	struct pool *pool = state;
	const struct cuweir_event *event = pool->host->current_event(pool->host);
	struct pool_block *block;

	if (memory == NULL) {
		return true;
	}
	block = take_back(pool, memory);
	if (block == NULL) {
		return false;
	}
	pool_freed(pool, block, is_capturing(event));
	keep(pool, block, is_capturing(event));
	return true;
}

/*
 * The context that asks is in use, and so are its blocks. Another one may be ended at any time by
 * its own threads, which is told only when its addresses may be others' already: its blocks are
 * left alone. NULL: memory that is of no context; then only where there is just one.
 */
static const struct pool_home *home_to_empty(struct pool *pool, const void *context)
{
	const struct pool_home *found = NULL;

	for (unsigned int i = 0; i < POOL_HOMES; i++) {
		const void *there = __atomic_load_n(&pool->homes[i].context, __ATOMIC_ACQUIRE);

		if (there == NULL || (context != NULL && there != context)) {
			continue;
		}
		if (found != NULL) {
			return NULL;
		}
		found = &pool->homes[i];
	}
	return found;
}

static bool is_at_home(struct pool_block *block, const void *argument)
{
	return block->home == argument;
}

static bool on_alloc_failure(void *state, uint64_t size, int retry_count,
			     const struct cuweir_event *event)
{
	struct pool *pool = state;
	const struct pool_home *home = home_to_empty(pool, event->context);
	struct pool_block *blocks;
	bool any = false;

	(void)size, (void)retry_count;
	if (event->kind == CUWEIR_KIND_HOST || event->kind == CUWEIR_KIND_REGISTERED ||
	    home == NULL || (event->device >= 0 && event->device != home->device)) {
		return false;
	}
	blocks = pool_take_all(pool, is_at_home, home);
	while (blocks != NULL) {
		struct pool_block *block = blocks;

		blocks = block->next;
		if (!pool_claim(pool, block)) {
			continue;
		}
		if (give_removed_back(pool, block)) {
			any = true;
		} else if (pool_enter(pool, block)) {
			pool_keep(pool, block);
		} else {
			pool_block_spare(pool, block); /* no room to know it by: it stays the driver's */
		}
	}
	return any;
}

static void on_context_ended(void *state, void *context, int device)
{
	struct pool *pool = state;

	(void)device;
	for (unsigned int i = 0; i < POOL_HOMES; i++) {
		if (pool->homes[i].context == context && context != NULL) {
			pool_forget_home(pool, &pool->homes[i]);
		}
	}
}

static void on_stream_ended(void *state, void *context, void *stream)
{
	struct pool *pool = state;

	pool_stream_ended(pool, context, stream,
			  is_capturing(pool->host->current_event(pool->host)));
}

static int open_pool(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	uint64_t max = UINT64_MAX;
	struct pool *pool;

	while (args_next(&rest, &pair)) {
		if (!args_is(pair.key, "max") || !args_size(pair.value, &max)) {
			return args_refuse(host, &pair, "max=SIZE");
		}
	}
	pool = calloc(1, sizeof(*pool));
	if (pool == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	pool->host = host;
	pool->max = max;
	if (!pool_order_ready(pool)) {
		pool->driver = (struct pool_driver){ 0 };
	}
	*ret_state = pool;
	return CUWEIR_SUCCESS;
}

static const struct cuweir_allocator allocator = {
	.struct_size = sizeof(struct cuweir_allocator),
	.allocate_async = allocate_async,
	.deallocate_async = deallocate_async,
	.allocate = allocate,
	.deallocate = deallocate,
};

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "pool",
	.summary = "keeps freed device memory and hands it out again without a driver call",
	.arguments = "max=SIZE of what is kept (all of it, until memory runs short)",
	.open = open_pool,
	.on_alloc_failure = on_alloc_failure,
	.on_context_ended = on_context_ended,
	.on_stream_ended = on_stream_ended,
	.allocator = &allocator,
};
