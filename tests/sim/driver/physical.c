/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory of cuMemCreate. Bytes live until the last reference of a handle is released and
 * the last mapping is gone (C-90). They are a file's pages: an exportable allocation has a memfd of
 * its own, which is its shareable handle; all others lie in one file, so as to spare descriptors.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"
#include "space.h"

static struct sim_memory *memories; /* under sim_space_lock, as all here */
static struct sim_arena pages; /* of the one file: only its offsets are used */
static int pages_fd = -1;

static bool at_host(const CUmemAllocationProp *p)
{
	return p->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
}

static CUresult check_prop(const CUmemAllocationProp *p)
{
	if (p == NULL || p->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    p->location.type < CU_MEM_LOCATION_TYPE_DEVICE ||
	    p->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!at_host(p) && (p->location.id < 0 || p->location.id >= sim_n_devices)) {
		return CUDA_ERROR_INVALID_DEVICE;
	}
	return p->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE ||
			       p->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_SUPPORTED;
}

struct sim_memory *sim_memory_by_file(uint64_t ino)
{
	struct sim_memory *m = memories;

	while (m != NULL && !(m->own_fd && m->ino == ino)) {
		m = m->next;
	}
	return m;
}

void sim_memory_link(struct sim_memory *m)
{
	m->next = memories;
	if (m->next != NULL) {
		m->next->prev = m;
	}
	memories = m;
}

static bool take_pages(struct sim_memory *m)
{
	if (pages_fd < 0) {
		uint64_t bytes = 2 * sim_set.capacity * (uint64_t)sim_n_devices + (4ULL << 30);
		int fd = memfd_create("cuweir-sim-pages", MFD_CLOEXEC);

		if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0 || !sim_arena_init(&pages, bytes)) {
			close(fd);
			return false;
		}
		pages_fd = fd;
	}
	m->block = sim_arena_take(&pages, m->size);
	if (m->block != 0) {
		m->off = pages.blocks[m->block].off;
		m->fd = pages_fd;
	}
	return m->block != 0;
}

static bool own_file(struct sim_memory *m)
{
	struct sim_trailer t = {.magic = SIM_TRAILER_MAGIC, .multicast = m->multicast,
				.size = m->size};
	struct stat st;

	t.prop = m->prop;
	m->fd = memfd_create("cuweir-sim-memory", MFD_CLOEXEC);
	if (m->fd < 0) {
		return false;
	}
	if (ftruncate(m->fd, (off_t)(m->size + SIM_PAGE)) != 0 ||
	    pwrite(m->fd, &t, sizeof(t), (off_t)m->size) != (ssize_t)sizeof(t) ||
	    fstat(m->fd, &st) != 0) {
		close(m->fd);
		return false;
	}
	m->own_fd = true;
	m->ino = st.st_ino;
	return true;
}

static void drop_pages(struct sim_memory *m)
{
	if (m->own_fd) {
		close(m->fd);
	} else {
		fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)m->off,
			  (off_t)m->size);
		sim_arena_give(&pages, m->block);
	}
}

static bool charge(struct sim_memory *m)
{
	struct sim_device *d = m->dev;
	bool ok = true;

	if (m->kind < 0) {
		return true;
	}
	pthread_mutex_lock(&d->arena.lock);
	if (m->kind == CUWEIR_SIM_DEVICE) {
		ok = m->size <= sim_device_free(d);
		d->linear += ok ? m->size : 0;
	}
	if (ok) {
		sim_charge(d, m->kind, m->size);
	}
	pthread_mutex_unlock(&d->arena.lock);
	return ok;
}

static void uncharge(struct sim_memory *m)
{
	struct sim_device *d = m->dev;

	if (m->kind < 0) {
		return;
	}
	pthread_mutex_lock(&d->arena.lock);
	d->linear -= m->kind == CUWEIR_SIM_DEVICE ? m->size : 0;
	sim_uncharge(d, m->kind, m->size);
	pthread_mutex_unlock(&d->arena.lock);
}

struct sim_memory *sim_memory_of_kind(uint64_t size, const CUmemAllocationProp *prop, int kind)
{
	struct sim_memory *m = sim_obj_new(SIM_MEMORY);

	if (m != NULL) {
		m->size = size;
		m->prop = *prop;
		m->kind = kind;
		m->dev = at_host(prop) ? &sim_nowhere
				       : &sim_devices[prop->location.id < sim_n_devices
							      ? prop->location.id
							      : 0];
		m->fd = -1;
	}
	return m;
}

/* Memory with a file of its own, counted nowhere. */
struct sim_memory *sim_memory_shared(uint64_t size, const CUmemAllocationProp *prop,
				     bool multicast)
{
	struct sim_memory *m = sim_memory_of_kind(size, prop, -1);

	if (m == NULL) {
		return NULL;
	}
	m->multicast = multicast;
	if (!own_file(m)) {
		sim_obj_free(&m->obj);
		return NULL;
	}
	sim_memory_link(m);
	return m;
}

static CUresult memory_create(uint64_t size, const CUmemAllocationProp *prop,
			      struct sim_memory **ret)
{
	struct sim_memory *m = sim_memory_of_kind(size, prop,
					  at_host(prop) ? CUWEIR_SIM_HOST : CUWEIR_SIM_DEVICE);

	if (m == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!charge(m)) {
		sim_obj_free(&m->obj);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (prop->requestedHandleTypes != 0 ? !own_file(m) : !take_pages(m)) {
		uncharge(m);
		sim_obj_free(&m->obj);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_memory_link(m);
	*ret = m;
	return CUDA_SUCCESS;
}

static void memory_gone(struct sim_memory *m)
{
	if (m->next != NULL) {
		m->next->prev = m->prev;
	}
	if (m->prev != NULL) {
		m->prev->next = m->next;
	} else {
		memories = m->next;
	}
	uncharge(m);
	drop_pages(m);
	sim_obj_free(&m->obj);
}

struct sim_handle *sim_handle_new(struct sim_memory *m)
{
	struct sim_handle *h = sim_obj_new(SIM_PHYSICAL);

	if (h != NULL) {
		h->mem = m;
		h->refs = 1;
		m->handles++;
	}
	return h;
}

struct sim_handle *sim_handle_get(CUmemGenericAllocationHandle value)
{
	struct sim_handle *h = sim_obj_get((const void *)(uintptr_t)value, SIM_PHYSICAL);

	return h != NULL && h->refs > 0 ? h : NULL;
}

static void check_gone(struct sim_handle *h)
{
	struct sim_memory *m = h->mem;

	if (h->refs + h->maps > 0) {
		return;
	}
	sim_obj_free(&h->obj);
	if (--m->handles == 0) {
		memory_gone(m);
	}
}

void sim_handle_unmapped(struct sim_handle *h)
{
	h->maps--;
	check_gone(h);
}

static CUresult create(CUmemGenericAllocationHandle *ret, size_t size,
		       const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct sim_memory *m = NULL;
	struct sim_handle *h = NULL;
	CUresult r = check_prop(prop);

	if (ret == NULL || flags != 0 || size == 0 || size % SIM_MIN_MAP != 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* GPU?: during capture. Allowed, since PyTorch's expandable segments grow in captures of
	 * mode global without asking for another. */
	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&sim_space_lock);
	r = memory_create(size, prop, &m);
	if (r == CUDA_SUCCESS) {
		h = sim_handle_new(m);
		if (h == NULL) {
			memory_gone(m);
			r = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	pthread_mutex_unlock(&sim_space_lock);
	if (r == CUDA_SUCCESS) {
		*ret = (uintptr_t)h;
	}
	return r;
}

static CUresult release(CUmemGenericAllocationHandle value)
{
	struct sim_handle *h;

	pthread_mutex_lock(&sim_space_lock);
	h = sim_handle_get(value);
	if (h != NULL) {
		h->refs--;
		check_gone(h);
	}
	pthread_mutex_unlock(&sim_space_lock);
	return h != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult properties(CUmemAllocationProp *prop, CUmemGenericAllocationHandle value)
{
	struct sim_handle *h;

	pthread_mutex_lock(&sim_space_lock);
	h = sim_handle_get(value);
	if (h != NULL && prop != NULL) {
		*prop = h->mem->prop;
	}
	pthread_mutex_unlock(&sim_space_lock);
	return h != NULL && prop != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult granularity(size_t *ret, const CUmemAllocationProp *prop,
			    CUmemAllocationGranularity_flags option)
{
	CUresult r = check_prop(prop);

	if (ret == NULL || (unsigned int)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*ret = SIM_MIN_MAP;
	}
	return r;
}

SIM_ALLOC(cuMemCreate, handle,
	  (CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
	   unsigned long long flags),
	  (size, prop != NULL, flags), (*handle), create(handle, size, prop, flags))
SIM_API(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle), (0), release(handle))
SIM_API(cuMemGetAllocationPropertiesFromHandle,
	(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle), (handle), (0),
	properties(prop, handle))
SIM_API(cuMemGetAllocationGranularity,
	(size_t *bytes, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option),
	(prop != NULL, option), (*bytes), granularity(bytes, prop, option))
