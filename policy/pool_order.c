/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order. In the stream it was freed in, a block may be used again at once. Another stream waits
 * for an event that was recorded at the free; while there has been one stream only, none is
 * recorded, and where a second one comes later, the event stands for more than it must. A
 * per-thread default stream can only be recorded in by its thread, so that is done at the free.
 * While a capture is open no driver function is called, and the block waits for its context.
 */
#include "pool.h"

#define LEGACY ((void *)(uintptr_t)1)     /* CU_STREAM_LEGACY */
#define PER_THREAD ((void *)(uintptr_t)2) /* CU_STREAM_PER_THREAD */
#define ENDED ((void *)(uintptr_t)3)      /* no stream's handle */

enum { EVENT_DISABLE_TIMING = 2 };

static bool load(struct pool *pool, const char *symbol, void *ret_function)
{
	return pool->host->driver_function(pool->host, symbol, (void **)ret_function) ==
	       CUWEIR_SUCCESS;
}

bool pool_order_ready(struct pool *pool)
{
	struct pool_driver *driver = &pool->driver;

	return load(pool, "cuEventCreate", &driver->event_create) &&
	       load(pool, "cuEventDestroy_v2", &driver->event_destroy) &&
	       load(pool, "cuEventRecord", &driver->event_record) &&
	       load(pool, "cuEventQuery", &driver->event_query) &&
	       load(pool, "cuStreamWaitEvent", &driver->stream_wait_event) &&
	       load(pool, "cuStreamSynchronize", &driver->stream_synchronize) &&
	       load(pool, "cuCtxSynchronize", &driver->context_synchronize);
}

/* The kernel's thread ids come again; these do not. */
static uint64_t this_thread(void)
{
	static uint64_t last;
	static _Thread_local uint64_t own;

	if (own == 0) {
		own = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	}
	return own;
}

struct pool_stream pool_stream_of(void *stream, const struct cuweir_event *event)
{
	struct pool_stream key = { stream, 0 };

	if (stream == PER_THREAD ||
	    (stream == NULL && (event->flags & CUWEIR_EVENT_PER_THREAD) != 0)) {
		key.handle = PER_THREAD;
		key.thread = this_thread();
	} else if (stream == NULL) {
		key.handle = LEGACY;
	}
	return key;
}

/* Handles are never NULL here: the default stream is one of CUDA's two names for it. */
void pool_note_another(struct pool_home *home, void *stream)
{
	void *none = NULL;

	if (!__atomic_compare_exchange_n(&home->first_stream, &none, stream, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		__atomic_store_n(&home->several, true, __ATOMIC_RELAXED);
	}
}

static bool record(struct pool *pool, struct pool_block *block)
{
	const struct pool_driver *driver = &pool->driver;

	if (driver->context_synchronize == NULL) {
		return false;
	}
	if (block->event == NULL &&
	    driver->event_create(&block->event, EVENT_DISABLE_TIMING) != CUWEIR_SUCCESS) {
		block->event = NULL;
		return false;
	}
	block->recorded = driver->event_record(block->event, block->stream.handle) ==
			  CUWEIR_SUCCESS;
	return block->recorded;
}

void pool_freed_in_stream(struct pool *pool, struct pool_block *block,
			  const struct pool_stream *stream, bool capturing)
{
	block->begun = __atomic_load_n(&block->home->begun, __ATOMIC_SEQ_CST);
	block->stream = *stream;
	block->recorded = false;
	block->order = capturing ? POOL_CONTEXT : POOL_STREAM;
	if (capturing) {
		return;
	}
	if ((stream->thread != 0 || __atomic_load_n(&block->home->several, __ATOMIC_RELAXED)) &&
	    !record(pool, block) && stream->thread != 0) {
		block->order = POOL_CONTEXT;
	}
}

void pool_freed(struct pool *pool, struct pool_block *block, bool capturing)
{
	struct pool_home *home = block->home;
	uint64_t begun;
	uint64_t complete;

	block->recorded = false;
	block->order = POOL_CONTEXT;
	block->begun = __atomic_load_n(&home->begun, __ATOMIC_SEQ_CST);
	if (capturing || pool->driver.context_synchronize == NULL) {
		return;
	}
	begun = __atomic_add_fetch(&home->begun, 1, __ATOMIC_SEQ_CST);
	if (pool->driver.context_synchronize() != CUWEIR_SUCCESS) {
		return;
	}
	block->order = POOL_NOTHING;
	/* All that was freed before it began is free for everybody now. */
	complete = __atomic_load_n(&home->complete, __ATOMIC_RELAXED);
	while (begun > complete &&
	       !__atomic_compare_exchange_n(&home->complete, &complete, begun, true,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
	}
}

bool pool_wait_for(struct pool *pool, struct pool_block *block, const struct pool_stream *stream)
{
	if (block->order != POOL_STREAM || (!block->recorded && !record(pool, block))) {
		return false;
	}
	/* For use in all streams the host would have to wait; rather another block is taken. */
	if (stream == NULL) {
		return pool->driver.event_query(block->event) == CUWEIR_SUCCESS;
	}
	return pool->driver.stream_wait_event(stream->handle, block->event, 0) == CUWEIR_SUCCESS;
}

struct ended {
	const void *context;
	const void *stream;
};

static bool is_of_stream(struct pool_block *block, const void *argument)
{
	const struct ended *ended = argument;

	return block->order == POOL_STREAM && block->stream.handle == ended->stream &&
	       block->home->context == ended->context;
}

/*
 * The handle may come back as another stream's, and this one's work may go on: so its blocks
 * are no longer in its order.
 */
void pool_stream_ended(struct pool *pool, void *context, void *stream, bool capturing)
{
	struct ended ended = { context, stream };
	struct pool_block *blocks = pool_take_all(pool, is_of_stream, &ended);
	bool waited = false;

	while (blocks != NULL) {
		struct pool_block *block = blocks;

		blocks = block->next;
		block->stream.handle = ENDED;
		if (!block->recorded) {
			waited = waited || (!capturing &&
					    pool->driver.context_synchronize != NULL &&
					    pool->driver.stream_synchronize(stream) ==
						    CUWEIR_SUCCESS);
			block->order = waited ? POOL_NOTHING : POOL_CONTEXT;
		}
		pool_keep_held(pool, block);
	}
}
