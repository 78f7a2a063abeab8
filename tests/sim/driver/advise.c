/* SPDX-License-Identifier: Apache-2.0 */
/* Advice, prefetches and attributes: checked, and without effect, since all memory is one. */
#include <string.h>

#include "internal.h"

/* Managed memory throughout; pageable memory is the device's business nowhere here. */
static CUresult managed(CUdeviceptr p, size_t n)
{
	struct sim_arena *a = sim_arena_of(p);
	bool ok = false;
	uint32_t i;

	if (a != NULL && n > 0) {
		pthread_mutex_lock(&a->lock);
		i = sim_arena_find(a, p);
		ok = i != 0 && a->blocks[i].kind == CUWEIR_SIM_MANAGED &&
		     n <= a->blocks[i].size - (p - sim_block_addr(a, i));
		pthread_mutex_unlock(&a->lock);
	}
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult place(const CUmemLocation *l)
{
	struct sim_device *d;

	return l->type == CU_MEM_LOCATION_TYPE_DEVICE ? sim_device_get(l->id, &d) : CUDA_SUCCESS;
}

static CUmemLocation device_or_cpu(CUdevice dev)
{
	return dev == CU_DEVICE_CPU ? (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST}
				    : (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE,
						      .id = dev};
}

static CUresult on_stream(CUresult r, CUstream hs, bool per_thread)
{
	struct sim_stream *s;

	return r == CUDA_SUCCESS ? sim_stream_use(hs, per_thread, &s) : r;
}

static CUresult prefetch(CUdeviceptr p, size_t n, CUmemLocation l, CUstream hs, bool per_thread)
{
	CUresult r = place(&l);

	return on_stream(r == CUDA_SUCCESS ? managed(p, n) : r, hs, per_thread);
}

static CUresult advise(CUdeviceptr p, size_t n, CUmem_advise advice, CUmemLocation l)
{
	CUresult r = CUDA_SUCCESS;

	if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (advice > CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
	    advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION) {
		r = place(&l);
	}
	return r == CUDA_SUCCESS ? managed(p, n) : r;
}

static CUresult batch(CUdeviceptr *list, size_t *sizes, size_t n, CUstream hs, bool per_thread)
{
	CUresult r = list == NULL || sizes == NULL || n == 0 ? CUDA_ERROR_INVALID_VALUE
							      : CUDA_SUCCESS;

	for (size_t i = 0; r == CUDA_SUCCESS && i < n; i++) {
		r = managed(list[i], sizes[i]);
	}
	return on_stream(r, hs, per_thread);
}

/* No advice is kept: "no device" for places, 0 for the rest. */
static CUresult range_attribute(void *out, size_t size, CUmem_range_attribute attr, CUdeviceptr p,
				size_t n)
{
	int *words = out;
	CUresult r = out == NULL || size < sizeof(int) ? CUDA_ERROR_INVALID_VALUE : managed(p, n);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	for (size_t i = 0; i < size / sizeof(int); i++) {
		words[i] = attr == CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY ? 0 : CU_DEVICE_INVALID;
	}
	return r;
}

static CUresult range_attributes(void **outs, size_t *sizes, CUmem_range_attribute *attrs,
				 size_t n_attrs, CUdeviceptr p, size_t n)
{
	CUresult r = outs == NULL || sizes == NULL || attrs == NULL ? CUDA_ERROR_INVALID_VALUE
								     : CUDA_SUCCESS;

	for (size_t i = 0; r == CUDA_SUCCESS && i < n_attrs; i++) {
		r = range_attribute(outs[i], sizes[i], attrs[i], p, n);
	}
	return r;
}

static CUresult stream_attribute(CUstreamAttrValue *out, CUstream hs, bool per_thread)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(hs, per_thread, &s);

	if (r == CUDA_SUCCESS && out == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		memset(out, 0, sizeof(*out));
	}
	return r;
}

static CUresult stream_only(CUstream hs, bool per_thread)
{
	struct sim_stream *s;

	return sim_stream_get(hs, per_thread, &s);
}

/* Everything before a wait is done, so a wait is over at once. */
static CUresult write_value(CUdeviceptr p, uint64_t value, size_t width, CUstream hs,
			    bool per_thread)
{
	struct sim_stream *s;
	CUresult r = sim_stream_use(hs, per_thread, &s);

	if (r == CUDA_SUCCESS && !sim_range_ok(p, width)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS && sim_capture_of(s, &r) == NULL && r == CUDA_SUCCESS) {
		memcpy((void *)(uintptr_t)p, &value, width);
	}
	return r;
}

static CUresult pointer_set(const void *value, CUdeviceptr p)
{
	return value != NULL && sim_arena_of(p) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult in_ctx(void)
{
	struct sim_ctx *c;

	return sim_ctx_current(&c);
}

/* Texture and surface objects: numbers. */
static CUresult object_new(CUtexObject *ret, const CUDA_RESOURCE_DESC *d)
{
	struct sim_obj *o;
	CUresult r = in_ctx();

	if (r == CUDA_SUCCESS && (ret == NULL || d == NULL)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	o = sim_obj_new(SIM_RESOURCE);
	if (o == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (uintptr_t)o;
	return CUDA_SUCCESS;
}

static CUresult object_end(CUtexObject h)
{
	struct sim_obj *o = sim_obj_get((const void *)(uintptr_t)h, SIM_RESOURCE);

	if (o == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	sim_obj_free(o);
	return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuMemPrefetchAsync, (CUdeviceptr p, size_t n, CUdevice dev, CUstream s),
	     (p, n, dev, s), (0), prefetch(p, n, device_or_cpu(dev), ST(s)))
SIM_API_PTSZ(cuMemPrefetchAsync_v2,
	     (CUdeviceptr p, size_t n, CUmemLocation l, unsigned int flags, CUstream s),
	     (p, n, l.type, l.id, flags, s), (0), prefetch(p, n, l, ST(s)))
SIM_API(cuMemAdvise, (CUdeviceptr p, size_t n, CUmem_advise advice, CUdevice dev),
	(p, n, advice, dev), (0), advise(p, n, advice, device_or_cpu(dev)))
SIM_API(cuMemAdvise_v2, (CUdeviceptr p, size_t n, CUmem_advise advice, CUmemLocation l),
	(p, n, advice, l.type, l.id), (0), advise(p, n, advice, l))
SIM_API_PTSZ(cuMemPrefetchBatchAsync,
	     (CUdeviceptr *list, size_t *sizes, size_t n, CUmemLocation *l, size_t *ids,
	      size_t n_l, unsigned long long flags, CUstream s),
	     (n, l != NULL, ids != NULL, n_l, flags, s), (0), batch(list, sizes, n, ST(s)))
SIM_API_PTSZ(cuMemDiscardBatchAsync,
	     (CUdeviceptr *list, size_t *sizes, size_t n, unsigned long long flags, CUstream s),
	     (n, flags, s), (0), batch(list, sizes, n, ST(s)))
SIM_API_PTSZ(cuMemDiscardAndPrefetchBatchAsync,
	     (CUdeviceptr *list, size_t *sizes, size_t n, CUmemLocation *l, size_t *ids,
	      size_t n_l, unsigned long long flags, CUstream s),
	     (n, l != NULL, ids != NULL, n_l, flags, s), (0), batch(list, sizes, n, ST(s)))
SIM_API(cuMemRangeGetAttribute,
	(void *out, size_t size, CUmem_range_attribute attr, CUdeviceptr p, size_t n),
	(size, attr, p, n), (0), range_attribute(out, size, attr, p, n))
SIM_API(cuMemRangeGetAttributes,
	(void **outs, size_t *sizes, CUmem_range_attribute *attrs, size_t n_attrs, CUdeviceptr p,
	 size_t n),
	(n_attrs, p, n), (0), range_attributes(outs, sizes, attrs, n_attrs, p, n))
SIM_API_PTSZ(cuStreamAttachMemAsync,
	     (CUstream s, CUdeviceptr p, size_t n, unsigned int flags), (s, p, n, flags), (0),
	     on_stream(managed(p, n > 0 ? n : 1), ST(s)))
SIM_API_PTSZ(cuStreamGetAttribute, (CUstream s, CUstreamAttrID attr, CUstreamAttrValue *out),
	     (s, attr), (0), stream_attribute(out, ST(s)))
SIM_API_PTSZ(cuStreamSetAttribute,
	     (CUstream s, CUstreamAttrID attr, const CUstreamAttrValue *value),
	     (s, attr, value != NULL), (0), stream_only(ST(s)))
SIM_API_PTSZ(cuStreamCopyAttributes, (CUstream dst, CUstream s), (dst, s), (0),
	     stream_only(ST(s)))
#define VALUES(bits, suffix)                                                                       \
	SIM_API_PTSZ(cuStreamWriteValue##bits##suffix,                                             \
		     (CUstream s, CUdeviceptr p, cuuint##bits##_t value, unsigned int flags),      \
		     (s, p, value, flags), (0), write_value(p, value, bits / 8, ST(s)))            \
	SIM_API_PTSZ(cuStreamWaitValue##bits##suffix,                                              \
		     (CUstream s, CUdeviceptr p, cuuint##bits##_t value, unsigned int flags),      \
		     (s, p, value, flags), (0), stream_only(ST(s)))
VALUES(32, )
VALUES(64, )
VALUES(32, _v2)
VALUES(64, _v2)
SIM_API(cuPointerSetAttribute, (const void *value, CUpointer_attribute attr, CUdeviceptr p),
	(attr, p), (0), pointer_set(value, p))
SIM_API(cuProfilerStart, (void), (0), (0), in_ctx())
SIM_API(cuProfilerStop, (void), (0), (0), in_ctx())
SIM_API(cuCtxGetSharedMemConfig, (CUsharedconfig *config), (0), (*config),
	config == NULL ? CUDA_ERROR_INVALID_VALUE
		       : (*config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE, in_ctx()))
SIM_API(cuCtxSetSharedMemConfig, (CUsharedconfig config), (config), (0), in_ctx())
SIM_API(cuTexObjectCreate,
	(CUtexObject *obj, const CUDA_RESOURCE_DESC *desc, const CUDA_TEXTURE_DESC *tex,
	 const CUDA_RESOURCE_VIEW_DESC *view),
	(desc != NULL, tex != NULL, view != NULL), (*obj), object_new(obj, desc))
SIM_API(cuTexObjectDestroy, (CUtexObject obj), (obj), (0), object_end(obj))
SIM_API(cuSurfObjectCreate, (CUsurfObject *obj, const CUDA_RESOURCE_DESC *desc), (desc != NULL),
	(*obj), object_new(obj, desc))
SIM_API(cuSurfObjectDestroy, (CUsurfObject obj), (obj), (0), object_end(obj))
