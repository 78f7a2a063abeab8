/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast objects: handles like those of cuMemCreate, with a file of their own and no bytes in
 * the books. What is written through one reaches nobody else. */
#include "internal.h"
#include "space.h"

static CUresult check_prop(const CUmulticastObjectProp *p)
{
	return p == NULL || p->numDevices == 0 || p->size == 0 || p->flags != 0
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *ret, const CUmulticastObjectProp *p)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	struct sim_handle *h = NULL;
	struct sim_memory *m;
	CUresult r = check_prop(p);

	if (r != CUDA_SUCCESS || ret == NULL || p->size % SIM_MIN_MAP != 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	prop.requestedHandleTypes = (CUmemAllocationHandleType)p->handleTypes;
	pthread_mutex_lock(&sim_space_lock);
	m = sim_memory_shared(p->size, &prop, true);
	if (m != NULL) {
		m->team_size = p->numDevices;
		h = sim_handle_new(m);
	}
	pthread_mutex_unlock(&sim_space_lock);
	if (h == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (uintptr_t)h;
	return CUDA_SUCCESS;
}

/* sim_space_lock is held. */
static struct sim_memory *multicast(CUmemGenericAllocationHandle value)
{
	struct sim_handle *h = sim_handle_get(value);

	return h != NULL && h->mem->multicast ? h->mem : NULL;
}

static CUresult add_device(CUmemGenericAllocationHandle mc, CUdevice dev)
{
	struct sim_memory *m;
	struct sim_device *d;
	CUresult r = sim_device_get(dev, &d);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&sim_space_lock);
	m = multicast(mc);
	if (m == NULL || (m->team >> dev & 1U) != 0 ||
	    (unsigned int)__builtin_popcount(m->team) == m->team_size) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		m->team |= 1U << dev;
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}

static bool fits(const struct sim_memory *m, uint64_t offset, uint64_t size)
{
	return (offset | size) % SIM_MIN_MAP == 0 && size > 0 && offset <= m->size &&
	       size <= m->size - offset;
}

/* All devices must be in the team before memory is bound. GPU?: the code otherwise, and whether a
 * binding keeps the memory alive; it does not here. */
static CUresult bind(struct sim_memory *m, uint64_t offset, uint64_t size, int dev)
{
	if (m == NULL || !fits(m, offset, size) ||
	    (unsigned int)__builtin_popcount(m->team) != m->team_size) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if ((m->team >> dev & 1U) == 0) {
		return CUDA_ERROR_INVALID_DEVICE;
	}
	m->binds++;
	return CUDA_SUCCESS;
}

static CUresult bind_mem(CUmemGenericAllocationHandle mc, size_t mc_offset,
			 CUmemGenericAllocationHandle mem, size_t offset, size_t size,
			 unsigned long long flags)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sim_handle *h;

	pthread_mutex_lock(&sim_space_lock);
	h = sim_handle_get(mem);
	if (flags == 0 && h != NULL && !h->mem->multicast && fits(h->mem, offset, size)) {
		r = h->mem->dev == &sim_nowhere
			    ? CUDA_ERROR_INVALID_DEVICE
			    : bind(multicast(mc), mc_offset, size, h->mem->dev->ordinal);
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}

static CUresult bind_addr(CUmemGenericAllocationHandle mc, size_t mc_offset, CUdeviceptr p,
			  size_t size, unsigned long long flags)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sim_space *s;

	pthread_mutex_lock(&sim_space_lock);
	s = sim_space_find(p);
	if (flags == 0 && s != NULL && s->type == SIM_SPACE_VMM &&
	    size <= s->size - (p - s->addr)) {
		r = bind(multicast(mc), mc_offset, size, s->dev);
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}

static CUresult unbind(CUmemGenericAllocationHandle mc, CUdevice dev, size_t offset, size_t size)
{
	struct sim_memory *m;
	struct sim_device *d;
	CUresult r = sim_device_get(dev, &d);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&sim_space_lock);
	m = multicast(mc);
	if (m == NULL || !fits(m, offset, size) || m->binds == 0) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		m->binds--;
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}

static CUresult granularity(size_t *ret, const CUmulticastObjectProp *p,
			    CUmulticastGranularity_flags option)
{
	CUresult r = check_prop(p);

	if (ret == NULL || (unsigned int)option > CU_MULTICAST_GRANULARITY_RECOMMENDED) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*ret = SIM_MIN_MAP;
	}
	return r;
}

SIM_API(cuMulticastCreate,
	(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop), (prop != NULL),
	(*handle), create(handle, prop))
SIM_API(cuMulticastAddDevice, (CUmemGenericAllocationHandle mc, CUdevice dev), (mc, dev), (0),
	add_device(mc, dev))
SIM_API(cuMulticastBindMem,
	(CUmemGenericAllocationHandle mc, size_t mc_offset, CUmemGenericAllocationHandle mem,
	 size_t offset, size_t size, unsigned long long flags),
	(mc, mc_offset, mem, offset, size, flags), (0),
	bind_mem(mc, mc_offset, mem, offset, size, flags))
SIM_API(cuMulticastBindAddr,
	(CUmemGenericAllocationHandle mc, size_t mc_offset, CUdeviceptr ptr, size_t size,
	 unsigned long long flags),
	(mc, mc_offset, ptr, size, flags), (0), bind_addr(mc, mc_offset, ptr, size, flags))
SIM_API(cuMulticastUnbind,
	(CUmemGenericAllocationHandle mc, CUdevice dev, size_t offset, size_t size),
	(mc, dev, offset, size), (0), unbind(mc, dev, offset, size))
SIM_API(cuMulticastGetGranularity,
	(size_t *bytes, const CUmulticastObjectProp *prop, CUmulticastGranularity_flags option),
	(prop != NULL, option), (*bytes), granularity(bytes, prop, option))
