/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of boxes between linear memory and arrays: 2D, 3D, peer and batch forms. */
#include <string.h>

#include "internal.h"
#include "array.h"

struct side {
	CUmemorytype type;
	CUdeviceptr addr;
	CUarray array;
	uint64_t x, y, z, pitch, height;
};

/* An array without memory of its own (sparse, deferred) takes no part: addr is 0. */
static CUresult resolve(const struct side *s, const struct sim_box *b, struct sim_box_side *ret)
{
	struct sim_array *a;
	struct sim_layout y;

	if (s->type != CU_MEMORYTYPE_ARRAY) {
		ret->pitch = s->pitch;
		ret->slice = s->pitch * s->height;
		ret->addr = s->addr + s->z * ret->slice + s->y * s->pitch + s->x;
		return s->addr == 0 && b->w * b->h * b->d > 0 ? CUDA_ERROR_INVALID_VALUE
							       : CUDA_SUCCESS;
	}
	a = sim_obj_get(s->array, SIM_ARRAY);
	if (a == NULL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	if (!sim_format_layout(&a->desc, &y) || s->x + b->w > y.row || s->y + b->h > y.rows ||
	    s->z + b->d > y.slices) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	ret->pitch = y.row;
	ret->slice = y.row * y.rows;
	ret->addr = a->data == NULL ? 0
				    : (uintptr_t)a->data + s->z * ret->slice + s->y * y.row + s->x;
	return CUDA_SUCCESS;
}

/* The parameters' structures differ in the width of their fields only. */
#define SIDE(c, p, zz, height_)                                                                    \
	((struct side){.type = (c)->p##MemoryType,                                                 \
		       .addr = (c)->p##MemoryType == CU_MEMORYTYPE_HOST                            \
				       ? (CUdeviceptr)(uintptr_t)(c)->p##Host                      \
				       : (CUdeviceptr)(c)->p##Device,                              \
		       .array = (c)->p##Array,                                                     \
		       .x = (c)->p##XInBytes,                                                      \
		       .y = (c)->p##Y,                                                             \
		       .z = zz,                                                                    \
		       .pitch = (c)->p##Pitch,                                                     \
		       .height = height_})

static CUresult both(const struct side *dst, const struct side *src, struct sim_box *b)
{
	CUresult r = resolve(dst, b, &b->dst);

	return r == CUDA_SUCCESS ? resolve(src, b, &b->src) : r;
}

#define BOX_2D(c, ret)                                                                             \
	(*(ret) = (struct sim_box){.w = (c)->WidthInBytes, .h = (c)->Height, .d = 1},              \
	 both(&SIDE(c, dst, 0, 0), &SIDE(c, src, 0, 0), ret))
#define BOX_3D(c, ret)                                                                             \
	(*(ret) = (struct sim_box){.w = (c)->WidthInBytes, .h = (c)->Height, .d = (c)->Depth},     \
	 both(&SIDE(c, dst, (c)->dstZ, (c)->dstHeight),                                            \
	      &SIDE(c, src, (c)->srcZ, (c)->srcHeight), ret))

CUresult sim_box_2d(const CUDA_MEMCPY2D *c, struct sim_box *ret)
{
	return c == NULL ? CUDA_ERROR_INVALID_VALUE : BOX_2D(c, ret);
}

CUresult sim_box_3d(const CUDA_MEMCPY3D *c, struct sim_box *ret)
{
	return c == NULL ? CUDA_ERROR_INVALID_VALUE : BOX_3D(c, ret);
}

static CUresult box_2d_v1(const CUDA_MEMCPY2D_v1 *c, struct sim_box *ret)
{
	return c == NULL ? CUDA_ERROR_INVALID_VALUE : BOX_2D(c, ret);
}

static CUresult box_3d_v1(const CUDA_MEMCPY3D_v1 *c, struct sim_box *ret)
{
	return c == NULL ? CUDA_ERROR_INVALID_VALUE : BOX_3D(c, ret);
}

static CUresult box_3d_peer(const CUDA_MEMCPY3D_PEER *c, struct sim_box *ret)
{
	return c == NULL ? CUDA_ERROR_INVALID_VALUE : BOX_3D(c, ret);
}

/* A run of bytes of which one end may be an array, by its offset (the old 1D array copies). */
static CUresult box_1d(CUarray da, CUdeviceptr dst, size_t dx, CUarray sa, CUdeviceptr src,
		       size_t sx, size_t n, struct sim_box *ret)
{
	const CUmemorytype array = CU_MEMORYTYPE_ARRAY, linear = CU_MEMORYTYPE_DEVICE;
	struct side d = {.type = da != NULL ? array : linear, .addr = dst, .array = da, .x = dx};
	struct side s = {.type = sa != NULL ? array : linear, .addr = src, .array = sa, .x = sx};

	*ret = (struct sim_box){.w = n, .h = 1, .d = 1};
	return both(&d, &s, ret);
}

CUresult sim_box_now(const struct sim_box *b)
{
	for (int pass = 0; pass < 2; pass++) { /* refuse before anything is copied */
		for (uint64_t i = 0; i < b->h * b->d; i++) {
			uint64_t z = i / b->h, y = i % b->h;
			CUdeviceptr d = b->dst.addr + z * b->dst.slice + y * b->dst.pitch;
			CUdeviceptr s = b->src.addr + z * b->src.slice + y * b->src.pitch;

			if (b->dst.addr == 0 || b->src.addr == 0 || b->w == 0) {
				return CUDA_SUCCESS;
			}
			if (pass == 1) {
				memmove((void *)(uintptr_t)d, (const void *)(uintptr_t)s, b->w);
			} else if (!sim_range_ok(d, b->w) || !sim_range_ok(s, b->w)) {
				return CUDA_ERROR_INVALID_VALUE;
			}
		}
	}
	return CUDA_SUCCESS;
}

static CUresult run(CUresult r, const struct sim_box *b, CUstream hs, bool per_thread, bool async)
{
	struct sim_stream *s;
	struct sim_node *n;

	if (r == CUDA_SUCCESS) {
		r = sim_stream_use(hs, per_thread, &s);
	}
	if (r == CUDA_SUCCESS && !async) {
		r = sim_unsafe();
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (sim_capture_of(s, &r) != NULL) {
		n = sim_capture_node(s, CU_GRAPH_NODE_TYPE_MEMCPY);
		if (n == NULL) {
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		n->box = *b;
		return CUDA_SUCCESS;
	}
	return r == CUDA_SUCCESS ? sim_box_now(b) : r;
}

static CUresult batch(CUdeviceptr *dst, CUdeviceptr *src, size_t *sizes, size_t n, CUstream hs,
		      bool per_thread)
{
	struct sim_box b;
	CUresult r = dst == NULL || src == NULL || sizes == NULL || n == 0
			     ? CUDA_ERROR_INVALID_VALUE
			     : CUDA_SUCCESS;

	for (size_t i = 0; r == CUDA_SUCCESS && i < n; i++) {
		r = box_1d(NULL, dst[i], 0, NULL, src[i], 0, sizes[i], &b);
		r = run(r, &b, hs, per_thread, true);
	}
	return r;
}

#define BOX_SYNC(name, type, fn)                                                                   \
	static CUresult name(const type *c, bool per_thread)                                       \
	{                                                                                          \
		struct sim_box b = {.w = 0};                                                       \
		CUresult r = fn(c, &b);                                                            \
                                                                                                   \
		return run(r, &b, NULL, per_thread, false);                                        \
	}                                                                                          \
	static CUresult name##_async(const type *c, CUstream s, bool per_thread)                   \
	{                                                                                          \
		struct sim_box b = {.w = 0};                                                       \
		CUresult r = fn(c, &b);                                                            \
                                                                                                   \
		return run(r, &b, s, per_thread, true);                                            \
	}

BOX_SYNC(copy_2d, CUDA_MEMCPY2D, sim_box_2d)
BOX_SYNC(copy_3d, CUDA_MEMCPY3D, sim_box_3d)
BOX_SYNC(copy_2d_v1, CUDA_MEMCPY2D_v1, box_2d_v1)
BOX_SYNC(copy_3d_v1, CUDA_MEMCPY3D_v1, box_3d_v1)
BOX_SYNC(copy_peer, CUDA_MEMCPY3D_PEER, box_3d_peer)

static CUresult copy_1d(CUarray da, CUdeviceptr dst, size_t dx, CUarray sa, CUdeviceptr src,
			size_t sx, size_t n, CUstream s, bool per_thread, bool async)
{
	struct sim_box b = {.w = 0};
	CUresult r = box_1d(da, dst, dx, sa, src, sx, n, &b);

	return run(r, &b, s, per_thread, async);
}

#define P(p) ((CUdeviceptr)(uintptr_t)(p))

SIM_API_PTDS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *c), (c != NULL), (0), copy_2d(c, sim_pt))
SIM_API_PTDS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *c), (c != NULL), (0),
	     copy_2d(c, sim_pt))
SIM_API_PTSZ(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *c, CUstream s), (c != NULL, s), (0),
	     copy_2d_async(c, ST(s)))
SIM_API(cuMemcpy2D, (const CUDA_MEMCPY2D_v1 *c), (c != NULL), (0), copy_2d_v1(c, sim_pt))
SIM_API(cuMemcpy2DUnaligned, (const CUDA_MEMCPY2D_v1 *c), (c != NULL), (0), copy_2d_v1(c, sim_pt))
SIM_API(cuMemcpy2DAsync, (const CUDA_MEMCPY2D_v1 *c, CUstream s), (c != NULL, s), (0),
	copy_2d_v1_async(c, ST(s)))
SIM_API_PTDS(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *c), (c != NULL), (0), copy_3d(c, sim_pt))
SIM_API_PTSZ(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *c, CUstream s), (c != NULL, s), (0),
	     copy_3d_async(c, ST(s)))
SIM_API(cuMemcpy3D, (const CUDA_MEMCPY3D_v1 *c), (c != NULL), (0), copy_3d_v1(c, sim_pt))
SIM_API(cuMemcpy3DAsync, (const CUDA_MEMCPY3D_v1 *c, CUstream s), (c != NULL, s), (0),
	copy_3d_v1_async(c, ST(s)))
SIM_API_PTDS(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *c), (c != NULL), (0), copy_peer(c, sim_pt))
SIM_API_PTSZ(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *c, CUstream s), (c != NULL, s), (0),
	     copy_peer_async(c, ST(s)))
SIM_API_PTDS(cuMemcpyDtoA_v2, (CUarray a, size_t x, CUdeviceptr p, size_t n), (a, x, p, n), (0),
	     copy_1d(a, 0, x, NULL, p, 0, n, NULL, sim_pt, false))
SIM_API_PTDS(cuMemcpyAtoD_v2, (CUdeviceptr p, CUarray a, size_t x, size_t n), (p, a, x, n), (0),
	     copy_1d(NULL, p, 0, a, 0, x, n, NULL, sim_pt, false))
SIM_API_PTDS(cuMemcpyHtoA_v2, (CUarray a, size_t x, const void *p, size_t n), (a, x, p, n), (0),
	     copy_1d(a, 0, x, NULL, P(p), 0, n, NULL, sim_pt, false))
SIM_API_PTDS(cuMemcpyAtoH_v2, (void *p, CUarray a, size_t x, size_t n), (p, a, x, n), (0),
	     copy_1d(NULL, P(p), 0, a, 0, x, n, NULL, sim_pt, false))
SIM_API_PTDS(cuMemcpyAtoA_v2, (CUarray d, size_t dx, CUarray a, size_t x, size_t n),
	     (d, dx, a, x, n), (0), copy_1d(d, 0, dx, a, 0, x, n, NULL, sim_pt, false))
SIM_API_PTSZ(cuMemcpyHtoAAsync_v2, (CUarray a, size_t x, const void *p, size_t n, CUstream s),
	     (a, x, p, n, s), (0), copy_1d(a, 0, x, NULL, P(p), 0, n, ST(s), true))
SIM_API_PTSZ(cuMemcpyAtoHAsync_v2, (void *p, CUarray a, size_t x, size_t n, CUstream s),
	     (p, a, x, n, s), (0), copy_1d(NULL, P(p), 0, a, 0, x, n, ST(s), true))
SIM_API_PTSZ(cuMemcpyBatchAsync_v2,
	     (CUdeviceptr *dst, CUdeviceptr *src, size_t *sizes, size_t n, CUmemcpyAttributes *at,
	      size_t *ids, size_t n_at, CUstream s),
	     (n, at != NULL, ids != NULL, n_at, s), (0), batch(dst, src, sizes, n, ST(s)))
SIM_API_PTSZ(cuMemcpyBatchAsync,
	     (CUdeviceptr *dst, CUdeviceptr *src, size_t *sizes, size_t n, CUmemcpyAttributes *at,
	      size_t *ids, size_t n_at, size_t *failed, CUstream s),
	     (n, at != NULL, ids != NULL, n_at, failed != NULL, s), (0),
	     batch(dst, src, sizes, n, ST(s)))

#define OLD_1D(name, params, args, da, dst, dx, sa, src, sx)                                       \
	SIM_API(name, params, args, (0),                                                           \
		copy_1d(da, dst, dx, sa, src, sx, n, NULL, false, false))

OLD_1D(cuMemcpyDtoA, (CUarray a, unsigned int x, CUdeviceptr_v1 p, unsigned int n), (a, x, p, n),
       a, 0, x, NULL, p, 0)
OLD_1D(cuMemcpyAtoD, (CUdeviceptr_v1 p, CUarray a, unsigned int x, unsigned int n), (p, a, x, n),
       NULL, p, 0, a, 0, x)
OLD_1D(cuMemcpyHtoA, (CUarray a, unsigned int x, const void *p, unsigned int n), (a, x, p, n), a, 0,
       x, NULL, P(p), 0)
OLD_1D(cuMemcpyAtoH, (void *p, CUarray a, unsigned int x, unsigned int n), (p, a, x, n), NULL, P(p),
       0, a, 0, x)
OLD_1D(cuMemcpyAtoA, (CUarray d, unsigned int dx, CUarray a, unsigned int x, unsigned int n),
       (d, dx, a, x, n), d, 0, dx, a, 0, x)
SIM_API(cuMemcpyHtoAAsync, (CUarray a, unsigned int x, const void *p, unsigned int n, CUstream s),
	(a, x, p, n, s), (0), copy_1d(a, 0, x, NULL, P(p), 0, n, ST(s), true))
SIM_API(cuMemcpyAtoHAsync, (void *p, CUarray a, unsigned int x, unsigned int n, CUstream s),
	(p, a, x, n, s), (0), copy_1d(NULL, P(p), 0, a, 0, x, n, ST(s), true))
