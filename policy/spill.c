/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy `spill`: where device memory runs out, the request is served from managed memory,
 * which the driver may keep on the host. For the program nothing but speed changes, and what
 * managed memory cannot do: see docs/policies/spill.md.
 *
 * Only an out-of-memory spills: the failure of what stands behind is offered to this policy's
 * on_alloc_failure, which asks for one more attempt, and that one is served otherwise.
 */
#include "args.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define ATTACH_GLOBAL 1u
#define STREAM_LEGACY ((void *)1)
#define STREAM_PER_THREAD ((void *)2)
#define BUCKETS 1024 /* a power of two */

typedef int (*managed_fn)(uint64_t *pointer, size_t bytes, unsigned int flags);
typedef int (*free_fn)(uint64_t pointer);
typedef int (*synchronize_fn)(void);
typedef int (*stream_synchronize_fn)(void *stream);

/* One spilled block, in use or waiting for the end of a capture. */
struct block {
	struct block *next;
	void *memory;
	void *context;
	uint64_t size;
	bool given_back;
};

struct spill {
	const struct cuweir_host *host;
	uint64_t max;
	uint64_t min;
	bool tell;
	bool told;            /* by the lock, as all below */
	pthread_mutex_t lock; /* leaf: nothing is called under it */
	uint64_t bytes;
	size_t given_back;
	struct block *blocks[BUCKETS];
};

/* The attempt of this thread that is to be served from managed memory. */
static _Thread_local const struct spill *spilling __attribute__((tls_model("initial-exec")));
static _Thread_local uint64_t spilling_size __attribute__((tls_model("initial-exec")));

static struct block **bucket_of(struct spill *spill, const void *memory)
{
	uint64_t mixed = (uint64_t)(uintptr_t)memory * 0x9e3779b97f4a7c15ull;
	return &spill->blocks[mixed >> 54];
}

/* ---- taking ------------------------------------------------------------------------------- */

static bool reserve(struct spill *spill, uint64_t size)
{
	pthread_mutex_lock(&spill->lock);
	bool room = spill->bytes <= spill->max && size <= spill->max - spill->bytes;
	spill->bytes += room ? size : 0;
	pthread_mutex_unlock(&spill->lock);
	return room;
}

/* Enters the block, or only gives its bytes back where there is none; whether it is the first. */
static bool settle(struct spill *spill, struct block *block, uint64_t size)
{
	bool first = false;
	pthread_mutex_lock(&spill->lock);
	if (block == NULL) {
		spill->bytes -= size;
	} else {
		struct block **bucket = bucket_of(spill, block->memory);
		block->next = *bucket;
		*bucket = block;
		first = !spill->told;
		spill->told = true;
	}
	pthread_mutex_unlock(&spill->lock);
	return first;
}

static void *take_managed(struct spill *spill, uint64_t size)
{
	const struct cuweir_event *event = spill->host->current_event(spill->host);
	void *managed = NULL;
	uint64_t pointer = 0;
	struct block *block = malloc(sizeof(*block));
	if (block == NULL) {
		return NULL;
	}
	if (spill->host->driver_function(spill->host, "cuMemAllocManaged", &managed) != 0 ||
	    !reserve(spill, size)) {
		free(block);
		return NULL;
	}
	if (((managed_fn)managed)(&pointer, (size_t)size, ATTACH_GLOBAL) != CUWEIR_SUCCESS) {
		settle(spill, NULL, size);
		free(block);
		return NULL;
	}
	*block = (struct block){
		.memory = (void *)(uintptr_t)pointer,
		.context = event != NULL ? event->context : NULL,
		.size = size,
	};
	void *memory = block->memory;
	if (settle(spill, block, size) && spill->tell) {
		char line[200];
		snprintf(line, sizeof(line),
			 "cuweir[%d]: spill: device memory ran out; %llu bytes of %s, and what "
			 "follows, are managed memory",
			 (int)getpid(), (unsigned long long)size,
			 event != NULL ? event->call : "an allocation");
		spill->host->log(spill->host, line);
	}
	return memory;
}

/* ---- giving back -------------------------------------------------------------------------- */

static bool is_capturing(const struct spill *spill)
{
	const struct cuweir_event *event = spill->host->current_event(spill->host);
	return event != NULL && (event->flags & CUWEIR_EVENT_CAPTURING) != 0;
}

/* Unlinks the blocks that waited, all or those of one context; called with the lock. */
static struct block *cut(struct spill *spill, const void *context, bool all)
{
	struct block *gone = NULL;
	for (size_t i = 0; i < BUCKETS; i++) {
		struct block **link = &spill->blocks[i];
		while (*link != NULL) {
			struct block *block = *link;
			if (block->context != context || !(all || block->given_back)) {
				link = &block->next;
				continue;
			}
			*link = block->next;
			block->next = gone;
			gone = block;
			spill->bytes -= block->size;
			spill->given_back -= block->given_back;
		}
	}
	return gone;
}

static bool free_managed(const struct spill *spill, const void *memory)
{
	void *function = NULL;
	return spill->host->driver_function(spill->host, "cuMemFree_v2", &function) == 0 &&
	       ((free_fn)function)((uint64_t)(uintptr_t)memory) == CUWEIR_SUCCESS;
}

/* What came back during a capture, once that is over; their context is the current one. */
static void free_waiting(struct spill *spill)
{
	const struct cuweir_event *event = spill->host->current_event(spill->host);
	void *synchronize = NULL;
	if (event == NULL || (event->flags & CUWEIR_EVENT_CAPTURING) != 0) {
		return;
	}
	pthread_mutex_lock(&spill->lock);
	struct block *gone =
		spill->given_back != 0 ? cut(spill, event->context, false) : NULL;
	pthread_mutex_unlock(&spill->lock);
	if (gone != NULL &&
	    spill->host->driver_function(spill->host, "cuCtxSynchronize", &synchronize) == 0) {
		((synchronize_fn)synchronize)();
	}
	while (gone != NULL) {
		struct block *block = gone;
		gone = block->next;
		free_managed(spill, block->memory);
		free(block);
	}
}

/*
 * Takes the block out, for the address may be another's as soon as it is free; during a capture
 * it stays, marked. False where the memory is not spilled.
 */
static bool detach(struct spill *spill, const void *memory, bool keep, struct block **ret_block)
{
	pthread_mutex_lock(&spill->lock);
	struct block **link = bucket_of(spill, memory);
	while (*link != NULL && ((*link)->memory != memory || (*link)->given_back)) {
		link = &(*link)->next;
	}
	struct block *block = *link;
	*ret_block = NULL;
	if (block != NULL && keep) {
		block->given_back = true;
		spill->given_back++;
	} else if (block != NULL) {
		*link = block->next;
		*ret_block = block;
	}
	pthread_mutex_unlock(&spill->lock);
	return block != NULL;
}

/* True, with *ret_done, where the memory was spilled. `stream` as NULL: nobody uses it. */
static bool give_back(struct spill *spill, void *memory, void *stream, bool *ret_done)
{
	struct block *block;
	void *synchronize = NULL;
	*ret_done = true;
	if (!detach(spill, memory, is_capturing(spill), &block)) {
		return false;
	}
	if (block == NULL) {
		return true;
	}
	if (stream != NULL &&
	    spill->host->driver_function(spill->host, "cuStreamSynchronize", &synchronize) == 0) {
		((stream_synchronize_fn)synchronize)(stream);
	}
	*ret_done = free_managed(spill, memory);
	if (!*ret_done) {
		settle(spill, block, block->size); /* it is there still */
		return true;
	}
	settle(spill, NULL, block->size);
	free(block);
	return true;
}

/* ---- the allocator ------------------------------------------------------------------------ */

static bool is_spilling(struct spill *spill, uint64_t size)
{
	bool now = spilling == spill && spilling_size == size;
	spilling = NULL;
	return now;
}

static void *allocate_async(void *state, uint64_t size, uint64_t alignment, uint32_t flags,
			    void *stream)
{
	struct spill *spill = state;
	const struct cuweir_host *host = spill->host;
	free_waiting(spill);
	if (is_spilling(spill, size)) {
		return take_managed(spill, size);
	}
	return host->next->allocate_async(host->next_state, size, alignment, flags, stream);
}

static void *allocate(void *state, uint64_t size, uint64_t alignment, uint32_t flags)
{
	struct spill *spill = state;
	const struct cuweir_host *host = spill->host;
	free_waiting(spill);
	if (is_spilling(spill, size)) {
		return take_managed(spill, size);
	}
	return host->next->allocate(host->next_state, size, alignment, flags);
}

static bool deallocate_async(void *state, void *memory, void *stream)
{
	struct spill *spill = state;
	const struct cuweir_host *host = spill->host;
	const struct cuweir_event *event = host->current_event(host);
	bool per_thread = event != NULL && (event->flags & CUWEIR_EVENT_PER_THREAD) != 0;
	void *real_stream = stream != NULL ? stream :
			    per_thread     ? STREAM_PER_THREAD :
					     STREAM_LEGACY;
	bool done;
	free_waiting(spill);
	if (memory == NULL || give_back(spill, memory, real_stream, &done)) {
		return memory == NULL || done;
	}
	return host->next->deallocate_async(host->next_state, memory, stream);
}

static bool deallocate(void *state, void *memory)
{
	struct spill *spill = state;
	const struct cuweir_host *host = spill->host;
	bool done;
	free_waiting(spill);
	if (memory == NULL || give_back(spill, memory, NULL, &done)) {
		return memory == NULL || done;
	}
	return host->next->deallocate(host->next_state, memory);
}

/* ---- the handler -------------------------------------------------------------------------- */

/* A new attempt begins: what was meant for an older one, which never came, is forgotten. */
static int admit(void *state, const struct cuweir_event *event)
{
	if (spilling == state && (event->flags & CUWEIR_EVENT_NESTED) == 0) {
		spilling = NULL;
	}
	return CUWEIR_SUCCESS;
}

static bool on_alloc_failure(void *state, uint64_t size, int retry_count,
			     const struct cuweir_event *event)
{
	struct spill *spill = state;
	if (retry_count != 0 || event->kind != CUWEIR_KIND_DEVICE || size < spill->min ||
	    (event->flags & (CUWEIR_EVENT_CAPTURING | CUWEIR_EVENT_HELD)) != 0) {
		return false;
	}
	spilling = spill;
	spilling_size = size;
	return true;
}

/* Managed memory goes with its context. */
static void on_context_ended(void *state, void *context, int device)
{
	struct spill *spill = state;
	pthread_mutex_lock(&spill->lock);
	struct block *gone = cut(spill, context, true);
	pthread_mutex_unlock(&spill->lock);
	while (gone != NULL) {
		struct block *block = gone;
		gone = block->next;
		free(block);
	}
}

static int open_spill(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct spill *spill = calloc(1, sizeof(*spill));
	if (spill == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	spill->host = host;
	spill->max = UINT64_MAX;
	spill->tell = true;
	pthread_mutex_init(&spill->lock, NULL);
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	while (args_next(&rest, &pair)) {
		if (!(args_is(pair.key, "max") && args_size(pair.value, &spill->max)) &&
		    !(args_is(pair.key, "min") && args_size(pair.value, &spill->min)) &&
		    !(args_is(pair.key, "tell") && args_flag(pair.value, &spill->tell))) {
			free(spill);
			return args_refuse(host, &pair, "max=SIZE, min=SIZE, or tell=0 or tell=1");
		}
	}
	*ret_state = spill;
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
	.name = "spill",
	.summary = "serves from managed memory where device memory runs out",
	.arguments = "max=SIZE (no limit): so much managed memory at most at a time\n"
		     "min=SIZE (0): smaller requests fail as they would\n"
		     "tell=0|1 (1): a line when it happens first",
	.open = open_spill,
	.on_alloc_failure = on_alloc_failure,
	.admit = admit,
	.on_context_ended = on_context_ended,
	.allocator = &allocator,
};
