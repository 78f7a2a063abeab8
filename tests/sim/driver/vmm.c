/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory: ranges of addresses, what is mapped there, and who may touch it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/mman.h>

#include "internal.h"
#include "space.h"

static char *find_room(uint64_t size, uint64_t align, CUdeviceptr hint)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	char *p;
	uint64_t skip;

	if (hint != 0) {
		p = mmap((void *)(uintptr_t)hint, size, PROT_NONE, flags, -1, 0);
		if (p != MAP_FAILED && (uintptr_t)p % align == 0) {
			return p;
		}
		if (p != MAP_FAILED) {
			munmap(p, size);
		}
	}
	p = mmap(NULL, size + align, PROT_NONE, flags, -1, 0);
	if (p == MAP_FAILED) {
		return NULL;
	}
	skip = -(uintptr_t)p & (align - 1);
	if (skip > 0) {
		munmap(p, skip);
	}
	munmap(p + skip + size, align - skip);
	return p + skip;
}

static CUresult reserve(CUdeviceptr *ret, size_t size, size_t align, CUdeviceptr hint,
			unsigned long long flags)
{
	char *p;
	bool ok;

	if (ret == NULL || size == 0 || size % SIM_PAGE != 0 || flags != 0 ||
	    (align & (align - 1)) != 0 || hint % SIM_PAGE != 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	align = align < SIM_MIN_MAP ? SIM_MIN_MAP : align;
	if (size > UINT64_MAX / 2 || align > UINT64_MAX / 4) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	p = find_room(size, align, hint);
	if (p == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&sim_space_lock);
	ok = sim_reserve((uintptr_t)p, size);
	if (ok) {
		sim_charge(&sim_nowhere, CUWEIR_SIM_VA, size);
	}
	pthread_mutex_unlock(&sim_space_lock);
	if (!ok) {
		munmap(p, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (uintptr_t)p;
	return CUDA_SUCCESS;
}

/* Is anything mapped in a range? */
static bool occupied(CUdeviceptr p, uint64_t size)
{
	const struct sim_space *s = sim_space_from(p);

	return s != NULL && s->addr < p + size;
}

static CUresult address_free(CUdeviceptr p, size_t size)
{
	struct sim_reservation *v;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&sim_space_lock);
	v = sim_reserved(p);
	/* GPU?: with mappings in it; refused. */
	if (v != NULL && v->addr == p && v->size == size && !occupied(p, size)) {
		sim_uncharge(&sim_nowhere, CUWEIR_SIM_VA, size);
		munmap((void *)(uintptr_t)p, size);
		sim_unreserve(v);
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}

/* sim_space_lock is held. Accessible to nobody before cuMemSetAccess. */
static CUresult map_handle(CUdeviceptr p, size_t size, struct sim_handle *h)
{
	struct sim_memory *m = h->mem;
	struct sim_space s = {.addr = p, .size = size, .type = SIM_SPACE_VMM, .owner = h,
			      .dev = m->dev == &sim_nowhere ? 0 : m->dev->ordinal,
			      .host = m->prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE};

	if (size > m->size) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (mmap((void *)(uintptr_t)p, size, PROT_NONE, MAP_SHARED | MAP_FIXED, m->fd,
		 (off_t)m->off) == MAP_FAILED ||
	    sim_space_add(&s) == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	h->maps++;
	return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr p, size_t size, size_t offset, CUmemGenericAllocationHandle value,
		    unsigned long long flags)
{
	struct sim_reservation *v;
	struct sim_handle *h;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (flags != 0 || size == 0 || size % SIM_MIN_MAP != 0 || p % SIM_MIN_MAP != 0 ||
	    offset != 0) {
		return r;
	}
	pthread_mutex_lock(&sim_space_lock);
	v = sim_reserved(p);
	h = sim_handle_get(value);
	if (v != NULL && h != NULL && size <= v->size - (p - v->addr) &&
	    !occupied(p, size)) {
		r = map_handle(p, size, h);
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}

/* Whole mappings only, one after the other, from p for size bytes. */
static bool covers_whole(CUdeviceptr p, uint64_t size)
{
	while (size > 0) {
		const struct sim_space *s = sim_space_find(p);

		if (s == NULL || s->type != SIM_SPACE_VMM || s->addr != p || s->size > size) {
			return false;
		}
		p += s->size;
		size -= s->size;
	}
	return true;
}

static CUresult unmap(CUdeviceptr p, size_t size)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	CUdeviceptr end = p + size;

	pthread_mutex_lock(&sim_space_lock);
	if (size > 0 && covers_whole(p, size)) {
		mmap((void *)(uintptr_t)p, size, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		while (p < end) {
			struct sim_space *s = sim_space_find(p);
			struct sim_handle *h = s->owner;

			p += s->size;
			sim_space_del(s);
			sim_handle_unmapped(h);
		}
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}

static CUresult retain(CUmemGenericAllocationHandle *ret, void *addr)
{
	struct sim_space *s;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&sim_space_lock);
	s = sim_space_find((uintptr_t)addr);
	if (ret != NULL && s != NULL && s->type == SIM_SPACE_VMM) {
		((struct sim_handle *)s->owner)->refs++;
		*ret = (uintptr_t)s->owner;
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}

static CUresult place_of(const CUmemLocation *l, int *ret)
{
	if (l->type == CU_MEM_LOCATION_TYPE_DEVICE) {
		*ret = l->id;
		return l->id >= 0 && l->id < sim_n_devices ? CUDA_SUCCESS
							   : CUDA_ERROR_INVALID_DEVICE;
	}
	*ret = SIM_MAX_DEVICES;
	return l->type == CU_MEM_LOCATION_TYPE_HOST || l->type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
			       l->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

/* All places share one page table here: the widest access counts. */
static void protect(const struct sim_space *s)
{
	int prot = PROT_NONE;

	for (int i = 0; i <= SIM_MAX_DEVICES; i++) {
		prot |= (s->access[i] & 1) != 0 ? PROT_READ : 0;
		prot |= (s->access[i] & 2) != 0 ? PROT_WRITE : 0;
	}
	mprotect((void *)(uintptr_t)s->addr, s->size, prot);
}

static bool mapped_throughout(CUdeviceptr p, uint64_t size)
{
	while (size > 0) {
		const struct sim_space *s = sim_space_find(p);
		uint64_t left = s != NULL ? s->size - (p - s->addr) : 0;

		if (s == NULL || s->type != SIM_SPACE_VMM) {
			return false;
		}
		left = left < size ? left : size;
		p += left;
		size -= left;
	}
	return true;
}

/* GPU?: a range that cuts a mapping; the whole mapping is changed here. */
static CUresult set_access(CUdeviceptr p, size_t size, const CUmemAccessDesc *desc, size_t n)
{
	CUresult r = desc != NULL && n > 0 && size > 0 && size % SIM_PAGE == 0
			     ? CUDA_SUCCESS
			     : CUDA_ERROR_INVALID_VALUE;
	int place;

	for (size_t i = 0; r == CUDA_SUCCESS && i < n; i++) {
		r = place_of(&desc[i].location, &place);
		if (r == CUDA_SUCCESS && (unsigned int)desc[i].flags > 3) {
			r = CUDA_ERROR_INVALID_VALUE;
		}
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&sim_space_lock);
	if (!mapped_throughout(p, size)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	for (struct sim_space *s = r == CUDA_SUCCESS ? sim_space_find(p) : NULL;
	     s != NULL && s->addr < p + size; s = sim_space_next(s)) {
		for (size_t i = 0; i < n; i++) {
			place_of(&desc[i].location, &place);
			s->access[place] = (uint8_t)desc[i].flags;
		}
		protect(s);
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}

static CUresult get_access(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr p)
{
	struct sim_space s;
	CUresult r;
	int place;

	if (flags == NULL || location == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = place_of(location, &place);
	if (r == CUDA_SUCCESS && (!sim_space_copy(p, &s) || s.type != SIM_SPACE_VMM)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*flags = s.access[place];
	}
	return r;
}

SIM_API(cuMemAddressReserve,
	(CUdeviceptr *ptr, size_t size, size_t align, CUdeviceptr hint, unsigned long long flags),
	(size, align, hint != 0, flags), (*ptr), reserve(ptr, size, align, hint, flags))
SIM_API(cuMemAddressFree, (CUdeviceptr ptr, size_t size), (ptr, size), (0),
	address_free(ptr, size))
SIM_API(cuMemMap,
	(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
	 unsigned long long flags),
	(ptr, size, offset, handle, flags), (0), map(ptr, size, offset, handle, flags))
SIM_API(cuMemUnmap, (CUdeviceptr ptr, size_t size), (ptr, size), (0), unmap(ptr, size))
SIM_API(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle *handle, void *addr), (addr),
	(*handle), retain(handle, addr))
SIM_API(cuMemSetAccess,
	(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count),
	(ptr, size, count), (0), set_access(ptr, size, desc, count))
SIM_API(cuMemGetAccess,
	(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr), (ptr),
	(*flags), get_access(flags, location, ptr))
