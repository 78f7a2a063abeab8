/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory. A free gives the block to its pool's cache, whose bytes stay reserved; the
 * next synchronize of any kind gives back what exceeds the release threshold (C-64). Work is done
 * at once here, so after a synchronize no cached block is in use.
 */
#include "internal.h"
#include "pool.h"

static _Atomic uint64_t cached_blocks; /* in all pools: a synchronize with none is done */
static struct sim_pool *pools; /* under sim_lock */

static unsigned int bin_of(uint64_t span)
{
	uint64_t g = span / SIM_GRANULE;
	unsigned int log2 = 63U - (unsigned int)__builtin_clzll(g | 1);

	return log2 * 2 + (log2 > 0 ? (unsigned int)(g >> (log2 - 1)) & 1U : 0);
}

/* Whose figures a pool's memory is in: pinned host memory is no device's. */
static struct sim_device *home(const struct sim_pool *p)
{
	return p->kind == CUWEIR_SIM_HOST ? &sim_nowhere : p->dev;
}

/* The functions from here to sim_pool_alloc want the lock of the pool's arena. */
static void set_reserved(struct sim_pool *p, uint64_t now)
{
	if (p->arena != &sim_system) {
		p->dev->reserved += now - p->reserved;
	}
	atomic_fetch_add(&home(p)->used[CUWEIR_SIM_POOL], now - p->reserved);
	p->reserved = now;
	if (now > p->reserved_high) {
		p->reserved_high = now;
	}
}

static void cache(struct sim_pool *p, uint32_t i)
{
	p->arena->blocks[i].state = SIM_CACHED;
	sim_list_add(p->arena, &p->bin[bin_of(p->arena->blocks[i].span)], i);
	atomic_fetch_add(&cached_blocks, 1);
}

static void uncache(struct sim_pool *p, uint32_t i)
{
	sim_list_del(p->arena, &p->bin[bin_of(p->arena->blocks[i].span)], i);
	atomic_fetch_sub(&cached_blocks, 1);
}

static void trim(struct sim_pool *p, uint64_t keep)
{
	for (unsigned int k = SIM_BINS; k-- > 0 && p->reserved > keep;) {
		while (p->bin[k] != 0 && p->reserved > keep) {
			uint32_t i = p->bin[k];

			uncache(p, i);
			set_reserved(p, p->reserved - p->arena->blocks[i].size);
			sim_arena_give(p->arena, i);
		}
	}
}

/* Cached in the same stream's order, large enough; looked at: a few of the right size. */
static uint32_t find_cached(struct sim_pool *p, uint64_t size, uint64_t stream_id)
{
	for (unsigned int k = bin_of(size + SIM_GRANULE - 1); k < SIM_BINS; k++) {
		uint32_t i = p->bin[k];

		for (int tries = 0; i != 0 && tries < 16; tries++) {
			const struct sim_block *b = &p->arena->blocks[i];

			if (b->size >= size && b->stream_id == stream_id) {
				return i;
			}
			i = b->link_next;
		}
	}
	return 0;
}

/* Take a cached block; what is left over of it stays in the cache, if it is worth a granule. */
static void reuse(struct sim_pool *p, uint32_t i, uint64_t size)
{
	struct sim_block *b = &p->arena->blocks[i];
	uint64_t span = (size + SIM_GRANULE - 1) / SIM_GRANULE * SIM_GRANULE;
	uint64_t left = b->size - size;
	uint64_t kept = 0;
	uint32_t rest;

	uncache(p, i);
	if (left >= SIM_GRANULE && b->span > span && sim_arena_split(p->arena, i, span, &rest)) {
		struct sim_block *n = &p->arena->blocks[rest];

		kept = left < n->span ? left : n->span;
		n->size = kept;
		cache(p, rest);
	}
	set_reserved(p, p->reserved - left + kept);
}

static uint32_t fresh(struct sim_pool *p, uint64_t size)
{
	bool device = p->arena != &sim_system;
	uint32_t i;

	if (size > UINT64_MAX / 2) {
		return 0;
	}
	if ((p->max_size != 0 && p->reserved + size > p->max_size) ||
	    (device && size > sim_device_free(p->dev))) {
		trim(p, 0);
	}
	if (p->max_size != 0 && p->reserved + size > p->max_size) {
		return 0;
	}
	if (device && size > sim_device_free(p->dev)) {
		return 0;
	}
	i = sim_arena_take(p->arena, size);
	if (i != 0) {
		set_reserved(p, p->reserved + size);
	}
	return i;
}

CUresult sim_pool_alloc(CUdeviceptr *dptr, size_t size, struct sim_pool *p, struct sim_stream *s)
{
	struct sim_arena *a = p->arena;
	struct sim_block *b;
	uint32_t i;

	pthread_mutex_lock(&a->lock);
	i = find_cached(p, size, s->obj.id);
	if (i != 0) {
		reuse(p, i, size);
	} else {
		i = fresh(p, size);
	}
	if (i != 0) {
		b = &a->blocks[i];
		b->origin = SIM_ASYNC;
		b->kind = p->kind;
		b->owner = p;
		sim_block_begin(a, i, size, p->dev);
		sim_charge(home(p), p->kind, size);
		p->live++;
		p->used += size;
		if (p->used > p->used_high) {
			p->used_high = p->used;
		}
		*dptr = sim_block_addr(a, i);
	}
	pthread_mutex_unlock(&a->lock);
	return i != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The arena's lock is held. A block freed without a stream is cached as of no stream. */
void sim_pool_free(struct sim_arena *a, uint32_t i, struct sim_stream *s)
{
	struct sim_block *b = &a->blocks[i];
	struct sim_pool *p = b->owner;

	sim_uncharge(home(p), b->kind, b->size);
	p->live--;
	p->used -= b->size;
	b->stream_id = s != NULL ? s->obj.id : 0;
	cache(p, i);
	if (p->destroyed) {
		trim(p, 0);
		if (p->live == 0) {
			sim_obj_free(&p->obj);
		}
	}
}

void sim_pool_sync(void)
{
	if (atomic_load_explicit(&cached_blocks, memory_order_relaxed) == 0) {
		return;
	}
	pthread_mutex_lock(&sim_lock);
	for (struct sim_pool *p = pools; p != NULL; p = p->next) {
		pthread_mutex_lock(&p->arena->lock);
		trim(p, p->threshold);
		pthread_mutex_unlock(&p->arena->lock);
	}
	pthread_mutex_unlock(&sim_lock);
}

void sim_pool_trim(struct sim_pool *p, uint64_t keep)
{
	pthread_mutex_lock(&p->arena->lock);
	trim(p, keep);
	pthread_mutex_unlock(&p->arena->lock);
}

/* sim_lock is held. */
struct sim_pool *sim_pool_new(struct sim_device *d, const CUmemPoolProps *props)
{
	struct sim_pool *p = sim_device_map(d) ? sim_obj_new(SIM_POOL) : NULL;

	if (p == NULL) {
		return NULL;
	}
	p->dev = d;
	p->location = props->location.type;
	p->alloc_type = props->allocType;
	p->handle_types = props->handleTypes;
	p->max_size = props->maxSize;
	p->kind = CUWEIR_SIM_HOST;
	p->arena = &sim_system;
	if (p->alloc_type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
		p->kind = CUWEIR_SIM_MANAGED;
	} else if (p->location == CU_MEM_LOCATION_TYPE_DEVICE) {
		p->kind = CUWEIR_SIM_DEVICE;
		p->arena = &d->arena;
	}
	p->peers = 1U << d->ordinal;
	p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
	p->next = pools;
	if (p->next != NULL) {
		p->next->prev = p;
	}
	pools = p;
	return p;
}

struct sim_pool *sim_pool_default(struct sim_device *d)
{
	struct sim_pool *p = atomic_load_explicit(&d->default_pool, memory_order_acquire);
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

	if (p != NULL) {
		return p;
	}
	pthread_mutex_lock(&sim_lock);
	p = atomic_load(&d->default_pool);
	if (p == NULL) {
		p = sim_pool_new(d, &props);
		if (p != NULL) {
			p->is_default = true;
		}
		atomic_store_explicit(&d->default_pool, p, memory_order_release);
	}
	pthread_mutex_unlock(&sim_lock);
	return p;
}

/* The handle is dead at once; memory of live blocks goes with their frees (C-68). */
CUresult sim_pool_destroy(struct sim_pool *p)
{
	struct sim_pool *self = p;
	bool empty;

	if (p->is_default) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_lock);
	atomic_compare_exchange_strong(&p->dev->pool, &self, NULL);
	sim_pool_forget(p);
	if (p->next != NULL) {
		p->next->prev = p->prev;
	}
	if (p->prev != NULL) {
		p->prev->next = p->next;
	} else {
		pools = p->next;
	}
	pthread_mutex_lock(&p->arena->lock);
	p->destroyed = true;
	atomic_store(&p->obj.type, 0);
	trim(p, 0);
	empty = p->live == 0;
	pthread_mutex_unlock(&p->arena->lock);
	pthread_mutex_unlock(&sim_lock);
	if (empty) {
		sim_obj_free(&p->obj);
	}
	return CUDA_SUCCESS;
}
