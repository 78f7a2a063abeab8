/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: they count as device memory, by the size rule of coverage.md 1d; rows lie one after the
 * other in the device's arena, so that copies can be checked. */
#include <sys/mman.h>

#include "internal.h"
#include "array.h"
#include "space.h"

#define ALL_FLAGS 0x1ffU

static bool holds_memory(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return (d->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0;
}

/* What a level looks like: extents halved and never 0, layers kept. */
static CUDA_ARRAY3D_DESCRIPTOR level_desc(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int level)
{
	CUDA_ARRAY3D_DESCRIPTOR l = *d;
	bool layers = (d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;

	l.Width = d->Width >> level > 0 ? d->Width >> level : 1;
	l.Height = d->Height >> level > 0 || d->Height == 0 ? d->Height >> level : 1;
	if (!layers) {
		l.Depth = d->Depth >> level > 0 || d->Depth == 0 ? d->Depth >> level : 1;
	}
	return l;
}

static unsigned int clamp_levels(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int wanted)
{
	bool layers = (d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
	uint64_t most = d->Width > d->Height ? d->Width : d->Height;
	unsigned int n;

	most = !layers && d->Depth > most ? d->Depth : most;
	n = 64U - (unsigned int)__builtin_clzll(most | 1);
	return wanted < n ? wanted : n;
}

static bool desc_ok(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	if (d == NULL || d->Width == 0 || (d->Flags & ~ALL_FLAGS) != 0 || d->NumChannels == 0 ||
	    d->NumChannels > 4 || sim_format_element(d->Format, d->NumChannels) == 0) {
		return false;
	}
	if ((d->Flags & CUDA_ARRAY3D_CUBEMAP) != 0) {
		bool layered = (d->Flags & CUDA_ARRAY3D_LAYERED) != 0;

		return d->Width == d->Height &&
		       (layered ? d->Depth > 0 && d->Depth % 6 == 0 : d->Depth == 6);
	}
	return (d->Flags & CUDA_ARRAY3D_LAYERED) != 0 ? d->Depth > 0
						      : d->Depth == 0 || d->Height > 0;
}

static bool total_size(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int levels, uint64_t *ret)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < levels; i++) {
		CUDA_ARRAY3D_DESCRIPTOR l = level_desc(d, i);
		struct sim_layout y;

		if (!sim_format_layout(&l, &y) || __builtin_add_overflow(sum, y.bytes, &sum)) {
			return false;
		}
	}
	*ret = sum;
	return true;
}

static bool take_block(struct sim_array *m, uint64_t bytes)
{
	struct sim_arena *a = &m->dev->arena;
	struct sim_block *b;

	pthread_mutex_lock(&a->lock);
	if (bytes <= sim_device_free(m->dev)) {
		m->block = sim_arena_take(a, bytes);
	}
	if (m->block != 0) {
		b = &a->blocks[m->block];
		b->origin = SIM_ARRAYED;
		b->kind = CUWEIR_SIM_DEVICE;
		b->owner = m;
		sim_block_live(a, m->block, bytes, m->dev);
		m->dev->linear += bytes;
		m->size = bytes;
		m->data = (char *)(uintptr_t)sim_block_addr(a, m->block);
	}
	pthread_mutex_unlock(&a->lock);
	return m->block != 0;
}

CUresult sim_array_new(struct sim_array **ret, const CUDA_ARRAY3D_DESCRIPTOR *d,
		       unsigned int levels, enum sim_type type, char *foreign)
{
	struct sim_array *m;
	struct sim_ctx *c;
	uint64_t bytes;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS && (ret == NULL || levels == 0 || !desc_ok(d))) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		r = sim_unsafe();
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	levels = clamp_levels(d, levels);
	m = total_size(d, levels, &bytes) ? sim_obj_new(type) : NULL;
	if (m == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	c = sim_owner(c);
	m->ctx = c;
	m->dev = c->dev;
	m->desc = *d;
	m->n_levels = levels;
	m->data = foreign;
	if (foreign == NULL && holds_memory(d) && !take_block(m, bytes)) {
		sim_obj_free(&m->obj);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&sim_lock);
	m->next = c->arrays;
	if (m->next != NULL) {
		m->next->prev = m;
	}
	c->arrays = m;
	pthread_mutex_unlock(&sim_lock);
	*ret = m;
	return CUDA_SUCCESS;
}

/* sim_lock is held. */
static void gone(struct sim_array *m)
{
	if (m->next != NULL) {
		m->next->prev = m->prev;
	}
	if (m->prev != NULL) {
		m->prev->next = m->next;
	} else {
		m->ctx->arrays = m->next;
	}
	for (int i = 0; i < SIM_MAX_LEVELS; i++) {
		if (m->part[i] != NULL) {
			sim_obj_free(&m->part[i]->obj);
		}
	}
	if (m->block != 0) {
		pthread_mutex_lock(&m->dev->arena.lock);
		m->dev->linear -= m->size;
		sim_uncharge(m->dev, CUWEIR_SIM_DEVICE, m->size);
		sim_arena_give(&m->dev->arena, m->block);
		pthread_mutex_unlock(&m->dev->arena.lock);
	}
	if (m->map_base != NULL) {
		munmap(m->map_base, m->map_size);
	}
	if (m->bound != NULL) {
		pthread_mutex_lock(&sim_space_lock);
		sim_handle_unmapped(m->bound);
		pthread_mutex_unlock(&sim_space_lock);
	}
	sim_obj_free(&m->obj);
}

bool sim_array_fits(const struct sim_array *m, uint64_t bytes)
{
	uint64_t need = 0;

	return total_size(&m->desc, m->n_levels, &need) && need <= bytes;
}

CUresult sim_array_end(struct sim_array *m)
{
	CUresult r;

	if (m == NULL || m->owner != NULL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	r = sim_unsafe();
	if (r == CUDA_SUCCESS) {
		pthread_mutex_lock(&sim_lock);
		gone(m);
		pthread_mutex_unlock(&sim_lock);
	}
	return r;
}

/* The context ends: its arrays go with it. sim_lock is held. */
void sim_arrays_wipe(struct sim_ctx *c)
{
	while (c->arrays != NULL) {
		gone(c->arrays);
	}
}

static struct sim_array *part(struct sim_array *m, unsigned int i,
			      const CUDA_ARRAY3D_DESCRIPTOR *d, uint64_t offset)
{
	struct sim_array *p;

	pthread_mutex_lock(&sim_lock);
	p = m->part[i];
	if (p == NULL) {
		p = sim_obj_new(SIM_ARRAY);
		if (p != NULL) {
			p->owner = m;
			p->ctx = m->ctx;
			p->dev = m->dev;
			p->desc = *d;
			p->n_levels = 1;
			p->data = m->data != NULL ? m->data + offset : NULL;
			m->part[i] = p;
		}
	}
	pthread_mutex_unlock(&sim_lock);
	return p;
}

/* The same array each time it is asked for. */
struct sim_array *sim_array_level(struct sim_array *m, unsigned int level)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	uint64_t offset = 0;

	if (level >= m->n_levels || level >= SIM_MAX_LEVELS ||
	    !total_size(&m->desc, level, &offset)) {
		return NULL;
	}
	d = level_desc(&m->desc, level);
	return part(m, level, &d, offset);
}

static CUresult get_level(CUarray *ret, CUmipmappedArray h, unsigned int level)
{
	struct sim_array *m = sim_obj_get(h, SIM_MIPMAP);
	struct sim_array *l;

	if (m == NULL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	l = ret != NULL ? sim_array_level(m, level) : NULL;
	if (l == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ret = (CUarray)l;
	return CUDA_SUCCESS;
}

static CUresult get_plane(CUarray *ret, CUarray h, unsigned int plane)
{
	struct sim_array *m = sim_obj_get(h, SIM_ARRAY);
	struct sim_array *p;
	CUDA_ARRAY3D_DESCRIPTOR d;
	uint64_t offset;

	if (m == NULL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	if (ret == NULL || !sim_format_plane(&m->desc, plane, &d, &offset)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	p = part(m, plane, &d, offset);
	if (p == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUarray)p;
	return CUDA_SUCCESS;
}

SIM_API(cuMipmappedArrayGetLevel, (CUarray *array, CUmipmappedArray mip, unsigned int level),
	(mip, level), (*array), get_level(array, mip, level))
SIM_API(cuArrayGetPlane, (CUarray *plane, CUarray array, unsigned int index), (array, index),
	(*plane), get_plane(plane, array, index))
