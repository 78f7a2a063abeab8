/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned host memory, given by the driver or registered by the program. */
#include "internal.h"

#define MAX_REGISTERED 4096

struct registered {
	uintptr_t addr;
	size_t size;
	unsigned int flags;
	struct sim_ctx *ctx;
};

static struct registered table[MAX_REGISTERED];
static size_t n_registered;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult host_alloc(void **ret, size_t size, unsigned int flags)
{
	struct sim_ctx *c;
	struct sim_block *b;
	uint32_t i;
	CUresult r = sim_ctx_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	/* GPU?: size 0; refused like cuMemAlloc's. */
	if (ret == NULL || size == 0 || flags > 7) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = sim_unsafe();
	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&sim_system.lock);
	i = sim_arena_take(&sim_system, size);
	if (i != 0) {
		b = &sim_system.blocks[i];
		b->origin = SIM_PINNED;
		b->kind = CUWEIR_SIM_HOST;
		c = sim_owner(c);
		b->owner = c;
		b->flags = flags;
		sim_list_add(&sim_system, &c->system_blocks, i);
		sim_block_live(&sim_system, i, size, c->dev);
		*ret = (void *)(uintptr_t)sim_block_addr(&sim_system, i);
	}
	pthread_mutex_unlock(&sim_system.lock);
	return i != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* GPU?: NULL; an error here, since the header has no rule for it (C-12). */
static CUresult free_host(void *p)
{
	struct sim_ctx *c;
	struct sim_block *b;
	uint32_t i;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS) {
		r = sim_unsafe();
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&sim_system.lock);
	i = sim_arena_at(&sim_system, (uintptr_t)p);
	b = &sim_system.blocks[i];
	if (i != 0 && b->state == SIM_LIVE && b->origin == SIM_PINNED) {
		sim_list_del(&sim_system, &((struct sim_ctx *)b->owner)->system_blocks, i);
		sim_uncharge(&sim_devices[b->dev], b->kind, b->size);
		sim_arena_give(&sim_system, i);
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&sim_system.lock);
	return r;
}

static struct registered *around(uintptr_t p)
{
	for (size_t i = 0; i < n_registered; i++) {
		if (p - table[i].addr < table[i].size) {
			return &table[i];
		}
	}
	return NULL;
}

/* The range that an address is registered in, and by which context. */
bool sim_registered(CUdeviceptr p, CUdeviceptr *ret_base, uint64_t *ret_size, struct sim_ctx **ret)
{
	const struct registered *t;

	pthread_mutex_lock(&lock);
	t = around((uintptr_t)p);
	if (t != NULL) {
		*ret_base = t->addr;
		*ret_size = t->size;
		*ret = t->ctx;
	}
	pthread_mutex_unlock(&lock);
	return t != NULL;
}

static CUresult host_register(void *p, size_t size, unsigned int flags)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS && (p == NULL || size == 0)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		r = sim_unsafe();
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&lock);
	if (around((uintptr_t)p) != NULL || around((uintptr_t)p + size - 1) != NULL) {
		r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	} else if (n_registered == MAX_REGISTERED) {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		c = sim_owner(c);
		table[n_registered++] = (struct registered){(uintptr_t)p, size, flags, c};
		sim_charge(c->dev, CUWEIR_SIM_REGISTERED, size);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static CUresult host_unregister(void *p)
{
	struct sim_ctx *c;
	struct registered *t;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS && p == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&lock);
	t = around((uintptr_t)p);
	if (t == NULL || t->addr != (uintptr_t)p) {
		r = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	} else {
		sim_uncharge(t->ctx->dev, CUWEIR_SIM_REGISTERED, t->size);
		*t = table[--n_registered];
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* A registration goes with its context, whose object stays. */
void sim_host_wipe(struct sim_ctx *c)
{
	pthread_mutex_lock(&lock);
	for (size_t i = n_registered; i-- > 0;) {
		if (table[i].ctx == c) {
			sim_uncharge(c->dev, CUWEIR_SIM_REGISTERED, table[i].size);
			table[i] = table[--n_registered];
		}
	}
	pthread_mutex_unlock(&lock);
}

/* Flags of the pinned block around an address, or of the registration; false for neither. */
static bool pinned(const void *p, unsigned int *ret_flags)
{
	bool found = false;
	struct registered *t;
	uint32_t i;

	pthread_mutex_lock(&sim_system.lock);
	i = sim_arena_find(&sim_system, (uintptr_t)p);
	if (i != 0 && sim_system.blocks[i].origin == SIM_PINNED) {
		*ret_flags = sim_system.blocks[i].flags;
		found = true;
	}
	pthread_mutex_unlock(&sim_system.lock);
	if (!found) {
		pthread_mutex_lock(&lock);
		t = around((uintptr_t)p);
		if (t != NULL) {
			*ret_flags = t->flags;
			found = true;
		}
		pthread_mutex_unlock(&lock);
	}
	return found;
}

static CUresult device_pointer(CUdeviceptr *ret, void *p, unsigned int flags)
{
	struct sim_ctx *c;
	unsigned int f;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS && (ret == NULL || flags != 0 || !pinned(p, &f))) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*ret = (uintptr_t)p;
	}
	return r;
}

static CUresult device_pointer_v1(CUdeviceptr_v1 *ret, void *p, unsigned int flags)
{
	CUdeviceptr d = 0;
	CUresult r = device_pointer(ret != NULL ? &d : NULL, p, flags);

	if (r == CUDA_SUCCESS) {
		*ret = sim_v1(d);
	}
	return r;
}

static CUresult host_flags(unsigned int *ret, void *p)
{
	struct sim_ctx *c;
	unsigned int f = 0;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS && (ret == NULL || !pinned(p, &f))) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*ret = f;
	}
	return r;
}

SIM_ALLOC(cuMemAllocHost_v2, pp, (void **pp, size_t size), (size), (*pp), host_alloc(pp, size, 0))
SIM_ALLOC(cuMemAllocHost, pp, (void **pp, unsigned int size), (size), (*pp),
	  host_alloc(pp, size, 0))
SIM_ALLOC(cuMemHostAlloc, pp, (void **pp, size_t size, unsigned int flags), (size, flags), (*pp),
	  host_alloc(pp, size, flags))
SIM_API(cuMemFreeHost, (void *p), (p), (0), free_host(p))
SIM_API(cuMemHostRegister_v2, (void *p, size_t size, unsigned int flags), (p, size, flags), (0),
	host_register(p, size, flags))
SIM_API(cuMemHostRegister, (void *p, size_t size, unsigned int flags), (p, size, flags), (0),
	host_register(p, size, flags))
SIM_API(cuMemHostUnregister, (void *p), (p), (0), host_unregister(p))
SIM_API(cuMemHostGetDevicePointer_v2, (CUdeviceptr *d, void *p, unsigned int flags), (p, flags),
	(*d), device_pointer(d, p, flags))
SIM_API(cuMemHostGetDevicePointer, (CUdeviceptr_v1 *d, void *p, unsigned int flags), (p, flags),
	(*d), device_pointer_v1(d, p, flags))
SIM_API(cuMemHostGetFlags, (unsigned int *flags, void *p), (p), (*flags), host_flags(flags, p))
