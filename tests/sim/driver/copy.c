/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills, done at once since device addresses are real. An address in a device's arena
 * must lie in live memory; any other address is taken for the program's own.
 */
#include <string.h>

#include "internal.h"
#include "space.h"

/* Does [p, p+n) lie in one live block, in mapped memory, or in none of the driver's? */
bool sim_range_ok(CUdeviceptr p, uint64_t n)
{
	struct sim_arena *a = sim_arena_of(p);
	bool ok;
	uint32_t i;

	if (a == NULL) {
		return (p != 0 && sim_space_usable(p, n) != 0) || n == 0;
	}
	pthread_mutex_lock(&a->lock);
	i = sim_arena_find(a, p);
	ok = i != 0 && n <= a->blocks[i].size - (p - sim_block_addr(a, i));
	pthread_mutex_unlock(&a->lock);
	return ok || n == 0;
}

static CUresult copy_now(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	if (!sim_range_ok(dst, n) || !sim_range_ok(src, n)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (n > 0) {
		memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, n);
	}
	return CUDA_SUCCESS;
}

/* A synchronous copy is work on the default stream and an unsafe call during capture. */
static CUresult copy(CUdeviceptr dst, CUdeviceptr src, size_t n, bool per_thread)
{
	struct sim_stream *s;
	CUresult r = sim_stream_use(NULL, per_thread, &s);

	if (r == CUDA_SUCCESS) {
		r = sim_unsafe();
	}
	return r == CUDA_SUCCESS ? copy_now(dst, src, n) : r;
}

static CUresult copy_async(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream hs,
			   bool per_thread)
{
	struct sim_stream *s;
	struct sim_node *k;
	CUresult r = sim_stream_use(hs, per_thread, &s);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (sim_capture_of(s, &r) != NULL) {
		k = sim_capture_node(s, CU_GRAPH_NODE_TYPE_MEMCPY);
		if (k == NULL) {
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		k->box = (struct sim_box){.dst = {.addr = dst}, .src = {.addr = src}, .w = n,
					  .h = 1, .d = 1};
		return CUDA_SUCCESS;
	}
	return r == CUDA_SUCCESS ? copy_now(dst, src, n) : r;
}

static void fill(void *p, const void *value, size_t width, size_t n)
{
	if (width == 1) {
		memset(p, *(const unsigned char *)value, n);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		memcpy((char *)p + i * width, value, width);
	}
}

void sim_fill(CUdeviceptr dst, size_t width, uint32_t value, size_t n)
{
	if (n > 0) {
		fill((void *)(uintptr_t)dst, &value, width, n);
	}
}

static CUresult set_now(CUdeviceptr dst, size_t width, uint32_t value, size_t n)
{
	if (n > UINT64_MAX / 4 || !sim_range_ok(dst, n * width)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	sim_fill(dst, width, value, n);
	return CUDA_SUCCESS;
}

static CUresult set(CUdeviceptr dst, size_t width, uint32_t value, size_t n, bool per_thread)
{
	struct sim_stream *s;
	CUresult r = sim_stream_use(NULL, per_thread, &s);

	if (r == CUDA_SUCCESS) {
		r = sim_unsafe();
	}
	return r == CUDA_SUCCESS ? set_now(dst, width, value, n) : r;
}

static CUresult set_async(CUdeviceptr dst, size_t width, uint32_t value, size_t n, CUstream hs,
			  bool per_thread)
{
	struct sim_stream *s;
	struct sim_node *k;
	CUresult r = sim_stream_use(hs, per_thread, &s);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (sim_capture_of(s, &r) != NULL) {
		k = sim_capture_node(s, CU_GRAPH_NODE_TYPE_MEMSET);
		if (k == NULL) {
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		k->dptr = dst;
		k->value = value;
		k->width = (uint32_t)width;
		k->size = n;
		k->box.h = 1;
		return CUDA_SUCCESS;
	}
	return r == CUDA_SUCCESS ? set_now(dst, width, value, n) : r;
}

static CUresult set_2d(CUdeviceptr dst, size_t pitch, size_t width, uint32_t value, size_t w,
		       size_t h, bool per_thread)
{
	CUresult r = CUDA_SUCCESS;

	for (size_t y = 0; y < h && r == CUDA_SUCCESS; y++) {
		r = set(dst + y * pitch, width, value, w, per_thread);
	}
	return r;
}

/* Captured, it is one node per row. */
static CUresult set_2d_async(CUdeviceptr dst, size_t pitch, size_t width, uint32_t value, size_t w,
			     size_t h, CUstream hs, bool per_thread)
{
	CUresult r = CUDA_SUCCESS;

	for (size_t y = 0; y < h && r == CUDA_SUCCESS; y++) {
		r = set_async(dst + y * pitch, width, value, w, hs, per_thread);
	}
	return r;
}

#define P(p) ((CUdeviceptr)(uintptr_t)(p))

#define COPY(name, dst_t, src_t)                                                                   \
	SIM_API_PTDS(name##_v2, (dst_t dst, src_t src, size_t n), (dst, src, n), (0),              \
		     copy(P(dst), P(src), n, sim_pt))                                              \
	SIM_API_PTSZ(name##Async_v2, (dst_t dst, src_t src, size_t n, CUstream s),                 \
		     (dst, src, n, s), (0), copy_async(P(dst), P(src), n, ST(s)))

COPY(cuMemcpyHtoD, CUdeviceptr, const void *)
COPY(cuMemcpyDtoH, void *, CUdeviceptr)
COPY(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr)

#define COPY_V1(name, dst_t, src_t)                                                                \
	SIM_API(name, (dst_t dst, src_t src, unsigned int n), (dst, src, n), (0),                  \
		copy(P(dst), P(src), n, false))                                                    \
	SIM_API(name##Async, (dst_t dst, src_t src, unsigned int n, CUstream s), (dst, src, n, s), \
		(0), copy_async(P(dst), P(src), n, ST(s)))

COPY_V1(cuMemcpyHtoD, CUdeviceptr_v1, const void *)
COPY_V1(cuMemcpyDtoH, void *, CUdeviceptr_v1)
COPY_V1(cuMemcpyDtoD, CUdeviceptr_v1, CUdeviceptr_v1)

SIM_API_PTDS(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t n), (dst, src, n), (0),
	     copy(dst, src, n, sim_pt))
SIM_API_PTSZ(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s),
	     (dst, src, n, s), (0), copy_async(dst, src, n, ST(s)))
SIM_API_PTDS(cuMemcpyPeer,
	     (CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc, size_t n),
	     (dst, dc, src, sc, n), (0), copy(dst, src, n, sim_pt))
SIM_API_PTSZ(cuMemcpyPeerAsync,
	     (CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc, size_t n, CUstream s),
	     (dst, dc, src, sc, n, s), (0), copy_async(dst, src, n, ST(s)))
#define SET(bits, type)                                                                            \
	SIM_API_PTDS(cuMemsetD##bits##_v2, (CUdeviceptr dst, type v, size_t n), (dst, v, n), (0),  \
		     set(dst, bits / 8, v, n, sim_pt))                                             \
	SIM_API_PTSZ(cuMemsetD##bits##Async, (CUdeviceptr dst, type v, size_t n, CUstream s),      \
		     (dst, v, n, s), (0), set_async(dst, bits / 8, v, n, ST(s)))                   \
	SIM_API(cuMemsetD##bits, (CUdeviceptr_v1 dst, type v, unsigned int n), (dst, v, n), (0),   \
		set(dst, bits / 8, v, n, false))                                                   \
	SIM_API_PTDS(cuMemsetD2D##bits##_v2,                                                       \
		     (CUdeviceptr dst, size_t pitch, type v, size_t w, size_t h),                  \
		     (dst, pitch, v, w, h), (0), set_2d(dst, pitch, bits / 8, v, w, h, sim_pt))    \
	SIM_API(cuMemsetD2D##bits,                                                                 \
		(CUdeviceptr_v1 dst, unsigned int pitch, type v, unsigned int w, unsigned int h),  \
		(dst, pitch, v, w, h), (0), set_2d(dst, pitch, bits / 8, v, w, h, false))          \
	SIM_API_PTSZ(cuMemsetD2D##bits##Async,                                                     \
		     (CUdeviceptr dst, size_t pitch, type v, size_t w, size_t h, CUstream s),      \
		     (dst, pitch, v, w, h, s), (0),                                                \
		     set_2d_async(dst, pitch, bits / 8, v, w, h, ST(s)))

SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned int)
