/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver says of an address. */
#include "internal.h"
#include "space.h"

struct found {
	CUdeviceptr base;
	struct sim_block block;
};

/* Memory outside the arenas, told as a block. Virtual memory has no context, like a pool's. */
static bool look_mapped(CUdeviceptr p, struct found *ret)
{
	struct sim_space s;

	if (!sim_space_copy(p, &s)) {
		return false;
	}
	ret->base = s.addr;
	ret->block = (struct sim_block){
		.size = s.size,
		.owner = s.type == SIM_SPACE_IPC ? s.owner : NULL,
		.id = s.id,
		.origin = s.type == SIM_SPACE_IPC ? SIM_PITCHED : SIM_GRAPHED,
		.kind = s.host ? CUWEIR_SIM_HOST : CUWEIR_SIM_IMPORTED,
		.dev = (uint8_t)s.dev,
		.state = SIM_LIVE,
	};
	return true;
}

static bool look(CUdeviceptr p, struct found *ret)
{
	struct sim_arena *a = sim_arena_of(p);
	uint32_t i = 0;

	if (a == NULL) {
		return look_mapped(p, ret);
	}
	pthread_mutex_lock(&a->lock);
	i = sim_arena_find(a, p);
	if (i != 0 && a->blocks[i].state == SIM_LIVE && a->blocks[i].origin != SIM_ARRAYED) {
		ret->base = sim_block_addr(a, i);
		ret->block = a->blocks[i];
	} else {
		i = 0;
	}
	pthread_mutex_unlock(&a->lock);
	return i != 0;
}

/* Registered memory has attributes too, as host memory. */
static bool look_any(CUdeviceptr p, struct found *ret)
{
	struct sim_ctx *c = NULL;
	uint64_t size = 0;

	if (look(p, ret)) {
		return true;
	}
	if (!sim_registered(p, &ret->base, &size, &c)) {
		return false;
	}
	ret->block = (struct sim_block){
		.size = size,
		.owner = c,
		.origin = SIM_PINNED,
		.kind = CUWEIR_SIM_HOST,
		.dev = (uint8_t)c->dev->ordinal,
		.state = SIM_LIVE,
	};
	return true;
}

static CUresult range(CUdeviceptr *base, size_t *size, CUdeviceptr p)
{
	struct sim_ctx *c;
	struct found f;
	CUresult r = sim_ctx_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!look(p, &f)) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (base != NULL) {
		*base = f.base;
	}
	if (size != NULL) {
		*size = f.block.size;
	}
	return CUDA_SUCCESS;
}

static CUresult range_v1(CUdeviceptr_v1 *base, unsigned int *size, CUdeviceptr p)
{
	CUdeviceptr b = 0;
	size_t n = 0;
	CUresult r = range(&b, &n, p);

	if (r == CUDA_SUCCESS && base != NULL) {
		*base = sim_v1(b);
	}
	if (r == CUDA_SUCCESS && size != NULL) {
		*size = (unsigned int)n;
	}
	return r;
}

static CUcontext context_of(const struct sim_block *b)
{
	return b->origin == SIM_ASYNC || b->origin == SIM_GRAPHED ? NULL : (CUcontext)b->owner;
}

static CUmemoryPool pool_of(const struct sim_block *b)
{
	return b->origin == SIM_ASYNC ? (CUmemoryPool)b->owner : NULL;
}

/* One attribute of a known address; false for an attribute that is not simulated. */
static bool answer(void *out, CUpointer_attribute attr, CUdeviceptr p, const struct found *f)
{
	const struct sim_block *b = &f->block;

	switch (attr) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)out = context_of(b);
		return true;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)out = b->origin == SIM_PINNED || b->kind == CUWEIR_SIM_HOST
					       ? CU_MEMORYTYPE_HOST
					       : CU_MEMORYTYPE_DEVICE;
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)out = p;
		return true;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (b->kind != CUWEIR_SIM_HOST && b->kind != CUWEIR_SIM_MANAGED) {
			return false;
		}
		*(void **)out = (void *)(uintptr_t)p;
		return true;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(bool *)out = attr == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE &&
			       b->origin == SIM_LINEAR;
		return true;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)out = b->id;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(bool *)out = b->kind == CUWEIR_SIM_MANAGED;
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)out = b->dev;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)out = f->base;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)out = b->size;
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(bool *)out = true;
		return true;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)out = pool_of(b);
		return true;
	default:
		return false;
	}
}

static CUresult attribute(void *out, CUpointer_attribute attr, CUdeviceptr p)
{
	struct sim_ctx *c;
	struct found f;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS && (out == NULL || !look_any(p, &f) || !answer(out, attr, p, &f))) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	return r;
}

static void zero(void *out, CUpointer_attribute attr)
{
	switch (attr) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)out = 0;
		break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(bool *)out = false;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)out = -2; /* as the header says of an unregistered host pointer. GPU? */
		break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned int *)out = 0;
		break;
	default:
		*(uint64_t *)out = 0;
	}
}

/* Unlike the singular form it succeeds, with zeros, where it knows nothing (C-108). */
static CUresult attributes(unsigned int n, const CUpointer_attribute *attrs, void **outs,
			   CUdeviceptr p)
{
	struct sim_ctx *c;
	struct found f;
	CUresult r = sim_ctx_current(&c);
	bool known;

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (attrs == NULL || outs == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	known = look_any(p, &f);
	for (unsigned int i = 0; i < n; i++) {
		if (outs[i] != NULL && (!known || !answer(outs[i], attrs[i], p, &f))) {
			zero(outs[i], attrs[i]);
		}
	}
	return CUDA_SUCCESS;
}

SIM_API(cuMemGetAddressRange_v2, (CUdeviceptr *base, size_t *size, CUdeviceptr p), (p),
	(SIM_OUT(base), SIM_OUT(size)), range(base, size, p))
SIM_API(cuMemGetAddressRange, (CUdeviceptr_v1 *base, unsigned int *size, CUdeviceptr_v1 p), (p),
	(SIM_OUT(base), SIM_OUT(size)), range_v1(base, size, p))
SIM_API(cuPointerGetAttribute, (void *out, CUpointer_attribute attr, CUdeviceptr p), (attr, p),
	(0), attribute(out, attr, p))
SIM_API(cuPointerGetAttributes,
	(unsigned int n, CUpointer_attribute *attrs, void **outs, CUdeviceptr p), (n, p), (0),
	attributes(n, attrs, outs, p))
