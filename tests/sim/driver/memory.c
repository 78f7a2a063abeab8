/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear, pitched and managed memory, and the free that serves all families.
 *
 * A device's capacity is charged with the requested bytes exactly; only address space is rounded.
 */
#include "internal.h"
#include "space.h"

/* The caller holds the arena's lock. */
void sim_block_begin(struct sim_arena *a, uint32_t i, uint64_t size, struct sim_device *d)
{
	static _Atomic uint64_t ids = 1;
	struct sim_block *b = &a->blocks[i];

	b->size = size;
	b->state = SIM_LIVE;
	b->dev = (uint8_t)d->ordinal;
	b->id = atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed);
}

/* And it counts from now, in its kind. */
void sim_block_live(struct sim_arena *a, uint32_t i, uint64_t size, struct sim_device *d)
{
	sim_block_begin(a, i, size, d);
	sim_charge(d, a->blocks[i].kind, size);
}

static uint32_t *owned_list(struct sim_ctx *c, const struct sim_arena *a)
{
	return a == &sim_system ? &c->system_blocks : &c->device_blocks;
}

static CUresult take(CUdeviceptr *ret, struct sim_ctx *c, uint64_t size, enum sim_origin origin,
		     uint64_t pitch)
{
	struct sim_device *d = c->dev;
	bool linear = origin == SIM_LINEAR || origin == SIM_PITCHED;
	struct sim_arena *a = linear ? &d->arena : &sim_system;
	struct sim_block *b;
	uint32_t i = 0;

	c = sim_owner(c);
	pthread_mutex_lock(&a->lock);
	if (!linear || size <= sim_device_free(d)) {
		i = sim_arena_take(a, size);
	}
	if (i != 0) {
		b = &a->blocks[i];
		b->origin = (uint8_t)origin;
		b->kind = linear ? CUWEIR_SIM_DEVICE : CUWEIR_SIM_MANAGED;
		b->owner = c;
		b->pitch = pitch;
		b->flags = 0;
		sim_list_add(a, owned_list(c, a), i);
		sim_block_live(a, i, size, d);
		if (linear) {
			d->linear += size;
		}
		*ret = sim_block_addr(a, i);
	}
	pthread_mutex_unlock(&a->lock);
	return i != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult alloc(CUdeviceptr *ret, size_t size, enum sim_origin origin)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (ret == NULL || size == 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = sim_unsafe();
	return r == CUDA_SUCCESS ? take(ret, c, size, origin, 0) : r;
}

static CUresult alloc_v1(CUdeviceptr_v1 *ret, unsigned int size)
{
	CUdeviceptr p = 0;
	CUresult r = alloc(ret != NULL ? &p : NULL, size, SIM_LINEAR);

	if (r == CUDA_SUCCESS) {
		*ret = sim_v1(p);
	}
	return r;
}

/* GPU?: zero extents; refused here as the size 0 of cuMemAlloc is (C-06). */
static CUresult alloc_pitch(CUdeviceptr *ret, size_t *ret_pitch, size_t width, size_t height,
			    unsigned int element)
{
	size_t pitch = (width + 511) / 512 * 512;
	size_t bytes;
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (ret == NULL || ret_pitch == NULL || width == 0 || height == 0 ||
	    (element != 4 && element != 8 && element != 16)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = sim_unsafe();
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (pitch < width || __builtin_mul_overflow(pitch, height, &bytes)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = take(ret, c, bytes, SIM_PITCHED, pitch);
	if (r == CUDA_SUCCESS) {
		*ret_pitch = pitch;
	}
	return r;
}

static CUresult alloc_pitch_v1(CUdeviceptr_v1 *ret, unsigned int *ret_pitch, unsigned int width,
			       unsigned int height, unsigned int element)
{
	CUdeviceptr p = 0;
	size_t pitch = 0;
	CUresult r = alloc_pitch(ret != NULL ? &p : NULL, ret_pitch != NULL ? &pitch : NULL, width,
				 height, element);

	if (r == CUDA_SUCCESS) {
		*ret = sim_v1(p);
		*ret_pitch = (unsigned int)pitch;
	}
	return r;
}

static CUresult alloc_managed(CUdeviceptr *ret, size_t size, unsigned int flags)
{
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
	    flags != CU_MEM_ATTACH_SINGLE) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	return alloc(ret, size, SIM_MANAGED);
}

/* A linear, pitched, managed or pinned block goes; the arena's lock is held. */
static void give_owned(struct sim_arena *a, uint32_t i)
{
	struct sim_block *b = &a->blocks[i];
	struct sim_device *d = &sim_devices[b->dev];

	sim_list_del(a, owned_list(b->owner, a), i);
	sim_uncharge(d, b->kind, b->size);
	if (a != &sim_system) {
		d->linear -= b->size;
	}
	sim_arena_give(a, i);
}

void sim_free_owned(struct sim_ctx *c)
{
	struct sim_arena *const arenas[] = {&c->dev->arena, &sim_system};

	for (int k = 0; k < 2; k++) {
		uint32_t *head = owned_list(c, arenas[k]);

		pthread_mutex_lock(&arenas[k]->lock);
		while (*head != 0) {
			give_owned(arenas[k], *head);
		}
		pthread_mutex_unlock(&arenas[k]->lock);
	}
}

/* The block may be of any family that cuMemFree and cuMemFreeAsync take; s says in which stream's
 * order, NULL for none. An address inside a block, or of no block, is refused (C-13). */
CUresult sim_free_block(CUdeviceptr p, bool async, struct sim_stream *s)
{
	struct sim_arena *a = sim_arena_of(p);
	CUresult r = CUDA_SUCCESS;
	uint32_t i;

	if (a == NULL) {
		return sim_import_free(p);
	}
	(void)async;
	pthread_mutex_lock(&a->lock);
	i = sim_arena_at(a, p);
	if (i == 0 || a->blocks[i].state != SIM_LIVE) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		switch ((enum sim_origin)a->blocks[i].origin) {
		case SIM_LINEAR:
		case SIM_PITCHED:
		case SIM_MANAGED:
			give_owned(a, i);
			break;
		case SIM_ASYNC:
			sim_pool_free(a, i, s);
			break;
		case SIM_GRAPHED:
			r = sim_graph_free_block(a, i);
			break;
		case SIM_PINNED:
		default:
			r = CUDA_ERROR_INVALID_VALUE;
		}
	}
	pthread_mutex_unlock(&a->lock);
	return r;
}

/* GPU?: cuMemFree(0); success is what people observe (C-11). */
static CUresult mem_free(CUdeviceptr p)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS && p != 0) {
		r = sim_unsafe();
	}
	if (r != CUDA_SUCCESS || p == 0) {
		return r;
	}
	return sim_free_block(p, false, NULL);
}

/* GPU?: either pointer NULL; success, as programs rely on (C-105). Capture forbids nothing here
 * (C-85 is open). */
static CUresult info(size_t *free_bytes, size_t *total)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&c->dev->arena.lock);
	if (free_bytes != NULL) {
		*free_bytes = sim_device_free(c->dev);
	}
	pthread_mutex_unlock(&c->dev->arena.lock);
	if (total != NULL) {
		*total = c->dev->capacity;
	}
	return CUDA_SUCCESS;
}

static CUresult info_v1(unsigned int *free_bytes, unsigned int *total)
{
	size_t f = 0, t = 0;
	CUresult r = info(&f, &t);

	if (r == CUDA_SUCCESS && free_bytes != NULL) {
		*free_bytes = (unsigned int)f;
	}
	if (r == CUDA_SUCCESS && total != NULL) {
		*total = (unsigned int)t;
	}
	return r;
}

SIM_ALLOC(cuMemAlloc_v2, dptr, (CUdeviceptr *dptr, size_t size), (size), (*dptr),
	  alloc(dptr, size, SIM_LINEAR))
SIM_ALLOC(cuMemAlloc, dptr, (CUdeviceptr_v1 *dptr, unsigned int size), (size), (*dptr),
	  alloc_v1(dptr, size))
SIM_ALLOC(cuMemAllocPitch_v2, dptr,
	  (CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height, unsigned int element),
	  (width, height, element), (*dptr, *pitch),
	  alloc_pitch(dptr, pitch, width, height, element))
SIM_ALLOC(cuMemAllocPitch, dptr,
	  (CUdeviceptr_v1 *dptr, unsigned int *pitch, unsigned int width, unsigned int height,
	   unsigned int element),
	  (width, height, element), (*dptr, *pitch),
	  alloc_pitch_v1(dptr, pitch, width, height, element))
SIM_ALLOC(cuMemAllocManaged, dptr, (CUdeviceptr *dptr, size_t size, unsigned int flags),
	  (size, flags), (*dptr), alloc_managed(dptr, size, flags))
SIM_API(cuMemFree_v2, (CUdeviceptr dptr), (dptr), (0), mem_free(dptr))
SIM_API(cuMemFree, (CUdeviceptr_v1 dptr), (dptr), (0), mem_free(dptr))
SIM_API(cuMemGetInfo_v2, (size_t *free_bytes, size_t *total), (0),
	(SIM_OUT(free_bytes), SIM_OUT(total)), info(free_bytes, total))
SIM_API(cuMemGetInfo, (unsigned int *free_bytes, unsigned int *total), (0),
	(SIM_OUT(free_bytes), SIM_OUT(total)), info_v1(free_bytes, total))
