/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: freed blocks are kept and handed out again (D-20, D-21). A block is a whole
 * allocation of what stands behind, valid in every stream of its context at once; only the
 * order of its uses has to be kept:
 *
 *   pool.c         the policy: allocate, free, trim, what ends
 *   pool_blocks.c  which blocks there are: by address, and the free ones by size
 *   pool_order.c   who may use a free block, and after what
 *
 * Any thread. Locks are leaves: nothing behind and no driver function is called under one.
 */
#ifndef CUWEIR_POOL_H
#define CUWEIR_POOL_H

#include <cuweir/policy.h>

#include "pool_lock.h"

enum {
	POOL_SMALLEST_BITS = 9, /* 512 bytes */
	POOL_STEP_BITS = 3,     /* eight sizes from each power of two to the next */
	POOL_CLASSES = (64 - POOL_SMALLEST_BITS) << POOL_STEP_BITS,
	POOL_SHARDS = 64,
	POOL_HOMES = 64,
};

/* What has to be waited for before a free block is used again. */
enum pool_order {
	POOL_NOTHING,
	POOL_STREAM,  /* what was in its stream when it was freed */
	POOL_CONTEXT, /* all of its context: freed where no more could be said */
};

/* Where an operation takes place. Equal streams keep their order by themselves. */
struct pool_stream {
	void *handle;    /* as a driver function takes it, whichever default stream it means */
	uint64_t thread; /* of a per-thread default stream, a number of the pool's; else 0 */
};

/* A context. Slots are used again, never freed. */
struct pool_home {
	void *context; /* NULL: nobody's */
	int32_t device;
	/* Synchronizations of the context that have begun and that are complete. */
	uint64_t begun;
	uint64_t complete;
	void *first_stream; /* the only one so far, where `several` is not set; NULL: none */
	bool several;
};

struct pool_block {
	struct pool_block *next;      /* in its bin, or among the spare */
	struct pool_block *hash_next;
	void *memory;
	uint64_t size;
	struct pool_home *home;
	struct pool_stream stream;    /* POOL_STREAM */
	uint64_t begun;               /* home->begun when it was freed */
	void *event;                  /* a CUevent, once there was need of one */
	bool recorded;                /* event is of the last free */
	bool used;                    /* handed out */
	bool held;                    /* in a list of pool_take_all's, and in no bin; shard's lock */
	bool gone;                    /* its context ended meanwhile: its holder's to spare */
	uint8_t order;                /* enum pool_order */
	uint16_t class;
};

struct pool_bin {
	struct pool_lock lock;
	struct pool_block *first;
};

struct pool_shard {
	struct pool_lock lock;
	struct pool_block **buckets;
	uint32_t bucket_count;
	uint32_t count;
};

struct pool_driver {
	int (*event_create)(void **event, unsigned int flags);
	int (*event_destroy)(void *event);
	int (*event_record)(void *event, void *stream);
	int (*event_query)(void *event);
	int (*stream_wait_event)(void *stream, void *event, unsigned int flags);
	int (*stream_synchronize)(void *stream);
	int (*context_synchronize)(void);
};

struct pool {
	const struct cuweir_host *host;
	struct pool_driver driver;
	uint64_t max;  /* bytes to keep; UINT64_MAX: all */
	uint64_t kept; /* counted only where there is a max */
	struct pool_lock homes_lock; /* for a new one */
	struct pool_home homes[POOL_HOMES];
	struct pool_lock spare_lock;
	struct pool_block *spare;
	struct pool_bin bins[POOL_CLASSES];
	struct pool_shard shards[POOL_SHARDS];
};

/* ---- pool_blocks.c ---- */

/* The class whose blocks hold `size` bytes, and how large they are. */
static inline unsigned int pool_class_of(uint64_t size)
{
	uint64_t last = size - 1;
	unsigned int bits;

	if (size <= 1u << POOL_SMALLEST_BITS) {
		return 0;
	}
	/* The power of two below, and how many eighths of it beyond. */
	bits = 63u - (unsigned int)__builtin_clzll(last);
	return ((bits - POOL_SMALLEST_BITS) << POOL_STEP_BITS) + 1 +
	       (unsigned int)(last >> (bits - POOL_STEP_BITS) & ((1u << POOL_STEP_BITS) - 1));
}

uint64_t pool_class_size(unsigned int class);

/* Made where there is none; NULL where there are too many. */
struct pool_home *pool_home_make(struct pool *pool, void *context, int32_t device);

static inline struct pool_home *pool_home_of(struct pool *pool, void *context, int32_t device)
{
	struct pool_home *first = &pool->homes[0];

	if (__builtin_expect(context != NULL && __atomic_load_n(&first->context,
								__ATOMIC_ACQUIRE) == context,
			     1)) {
		return first;
	}
	return pool_home_make(pool, context, device);
}

/* A block by its address: known from pool_enter to pool_remove. NULL: not ours. */
struct pool_block *pool_find(struct pool *pool, const void *memory);
bool pool_enter(struct pool *pool, struct pool_block *block);
void pool_remove(struct pool *pool, struct pool_block *block);

/* The structs; memory is taken for new ones alone. Never given back to libc. */
struct pool_block *pool_block_new(struct pool *pool);
void pool_block_spare(struct pool *pool, struct pool_block *block);

void pool_keep(struct pool *pool, struct pool_block *block);

/*
 * A free block of the class for use in `stream` (NULL: in all of them), marked as used. One for
 * which nothing has to be waited for where there is one; else *ret_wait.
 */
struct pool_block *pool_take(struct pool *pool, unsigned int class, struct pool_home *home,
			     const struct pool_stream *stream, bool *ret_wait);

/*
 * Takes all free blocks out of which `match` is true; linked by next, and held until each has come
 * to pool_claim or pool_keep_held: another thread may end their context meanwhile.
 */
struct pool_block *pool_take_all(struct pool *pool,
				 bool (*match)(struct pool_block *block, const void *argument),
				 const void *argument);

/* A held block becomes the caller's alone, unknown by its address; false: it is gone, and spared. */
bool pool_claim(struct pool *pool, struct pool_block *block);
/* Or it goes back into its bin, unless it is gone. */
void pool_keep_held(struct pool *pool, struct pool_block *block);

/* Forgets all blocks of the home, used ones too. */
void pool_forget_home(struct pool *pool, struct pool_home *home);

/* ---- pool_order.c ---- */

/* False where the driver lacks what is needed; then blocks keep to their streams. */
bool pool_order_ready(struct pool *pool);

struct pool_stream pool_stream_of(void *stream, const struct cuweir_event *event);

/* A block is freed in a stream; or when nobody uses it any more, as far as the program knows. */
void pool_freed_in_stream(struct pool *pool, struct pool_block *block,
			  const struct pool_stream *stream, bool capturing);
void pool_freed(struct pool *pool, struct pool_block *block, bool capturing);

/* Whether it may be used in `stream` (NULL: in all) and nothing has to be waited for. */
static inline bool pool_is_free_for(const struct pool_block *block,
				    const struct pool_stream *stream)
{
	if (block->order == POOL_NOTHING) {
		return true;
	}
	if (block->order == POOL_STREAM && stream != NULL &&
	    block->stream.handle == stream->handle && block->stream.thread == stream->thread) {
		return true;
	}
	return __atomic_load_n(&block->home->complete, __ATOMIC_SEQ_CST) > block->begun;
}

/* Makes it so, by ordering `stream` after the free; false where that cannot be. */
bool pool_wait_for(struct pool *pool, struct pool_block *block, const struct pool_stream *stream);

/* Notes that the stream is in use in its context. */
void pool_note_another(struct pool_home *home, void *stream);

static inline void pool_note_stream(struct pool_home *home, const struct pool_stream *stream)
{
	if (__builtin_expect(__atomic_load_n(&home->first_stream, __ATOMIC_RELAXED) !=
				     stream->handle, 0)) {
		pool_note_another(home, stream->handle);
	}
}

void pool_stream_ended(struct pool *pool, void *context, void *stream, bool capturing);

#endif
