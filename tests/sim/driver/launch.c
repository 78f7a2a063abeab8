/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels are launched and do nothing; what is asked about them has one answer for all. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* What the JIT linker makes; it is gone with the link. */
struct program {
	struct sim_obj obj;
	char *text;
	size_t size;
};

static bool is_kernel(const void *f)
{
	return sim_obj_get(f, SIM_FUNCTION) != NULL;
}

static CUresult launch(const void *f, bool sizes_ok, CUstream hs, bool per_thread)
{
	struct sim_stream *s;
	CUresult r = sim_stream_use(hs, per_thread, &s);

	if (r == CUDA_SUCCESS && !is_kernel(f)) {
		r = CUDA_ERROR_INVALID_HANDLE;
	}
	if (r == CUDA_SUCCESS && !sizes_ok) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS && sim_capture_of(s, &r) != NULL) {
		r = sim_capture_node(s, CU_GRAPH_NODE_TYPE_KERNEL) != NULL
			    ? CUDA_SUCCESS
			    : CUDA_ERROR_OUT_OF_MEMORY;
	}
	return r;
}

static CUresult launch_ex(const CUlaunchConfig *c, const void *f, bool per_thread)
{
	return c == NULL ? CUDA_ERROR_INVALID_VALUE
			 : launch(f,
				  c->gridDimX * c->gridDimY * c->gridDimZ > 0 &&
					  c->blockDimX * c->blockDimY * c->blockDimZ > 0,
				  c->hStream, per_thread);
}

static CUresult attribute(int *ret, CUfunction_attribute attr, const void *f)
{
	if (ret == NULL || (int)attr < 0 || attr >= CU_FUNC_ATTRIBUTE_MAX) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!is_kernel(f)) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	switch (attr) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*ret = 1024;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*ret = 32;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*ret = 90;
		break;
	default:
		*ret = 0;
	}
	return CUDA_SUCCESS;
}

static CUresult known(const void *f)
{
	return is_kernel(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult loaded(CUfunctionLoadingState *ret, const void *f)
{
	if (ret == NULL || !is_kernel(f)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ret = CU_FUNCTION_LOADING_STATE_LOADED;
	return CUDA_SUCCESS;
}

/* GPU?: nothing of a kernel's parameters is known; "no such parameter" for all. */
static CUresult no_param(void)
{
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult active_blocks(int *ret, const void *f, int block)
{
	if (ret == NULL || block <= 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!is_kernel(f)) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	*ret = block > 1024 ? 0 : 2048 / block > 32 ? 32 : 2048 / block;
	return CUDA_SUCCESS;
}

static CUresult best_block(int *grid, int *block, const void *f, int limit)
{
	if (grid == NULL || block == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!is_kernel(f)) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	*block = limit > 0 && limit < 1024 ? limit : 1024;
	*grid = 132 * (2048 / *block > 32 ? 32 : 2048 / *block);
	return CUDA_SUCCESS;
}

static CUresult free_shared(size_t *ret, const void *f)
{
	if (ret == NULL || !is_kernel(f)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ret = 49152;
	return CUDA_SUCCESS;
}

static CUresult clusters(int *ret, const void *f, int n)
{
	if (ret == NULL || !is_kernel(f)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ret = n;
	return CUDA_SUCCESS;
}

/* The linker takes anything and makes an empty program of it. */
static CUresult link_create(CUlinkState *ret)
{
	struct program *p = ret != NULL ? sim_obj_new(SIM_RESOURCE) : NULL;

	if (p == NULL) {
		return ret == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUlinkState)p;
	return CUDA_SUCCESS;
}

static CUresult link_known(CUlinkState h)
{
	return sim_obj_get(h, SIM_RESOURCE) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* PTX is put behind what is there, so that the globals it declares are found; other kinds of input
 * have none that could be. */
static CUresult link_add(CUlinkState h, CUjitInputType type, const char *data, size_t size)
{
	struct program *p = sim_obj_get(h, SIM_RESOURCE);
	char *text;

	if (p == NULL || data == NULL) {
		return p == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
	}
	if (type != CU_JIT_INPUT_PTX) {
		return CUDA_SUCCESS;
	}
	size = strnlen(data, size);
	text = realloc(p->text, p->size + size + 2);
	if (text == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(text + p->size, data, size);
	memcpy(text + p->size + size, "\n", 2);
	p->text = text;
	p->size += size + 1;
	return CUDA_SUCCESS;
}

static CUresult link_complete(CUlinkState h, void **image, size_t *size)
{
	static char empty[] = "// an empty program\n.version 8.0\n.target sm_90\n"
			      ".address_size 64\n";
	struct program *p = sim_obj_get(h, SIM_RESOURCE);

	if (p == NULL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	if (image != NULL) {
		*image = p->text != NULL ? p->text : empty;
	}
	if (size != NULL) {
		*size = p->text != NULL ? p->size + 1 : sizeof(empty);
	}
	return CUDA_SUCCESS;
}

static CUresult link_destroy(CUlinkState h)
{
	struct program *p = sim_obj_get(h, SIM_RESOURCE);

	if (p == NULL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	free(p->text);
	sim_obj_free(&p->obj);
	return CUDA_SUCCESS;
}

#define DIMS                                                                                       \
	unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,       \
		unsigned int bz, unsigned int shared
#define DIMS_OK (gx * gy * gz > 0 && bx * by * bz > 0)

SIM_API_PTSZ(cuLaunchKernel, (CUfunction f, DIMS, CUstream s, void **params, void **extra),
	     (f, gx, bx, shared, s, params != NULL, extra != NULL), (0),
	     launch(f, DIMS_OK, ST(s)))
SIM_API_PTSZ(cuLaunchKernelEx,
	     (const CUlaunchConfig *config, CUfunction f, void **params, void **extra),
	     (f, params != NULL, extra != NULL), (0), launch_ex(config, f, sim_pt))
SIM_API_PTSZ(cuLaunchCooperativeKernel, (CUfunction f, DIMS, CUstream s, void **params),
	     (f, gx, bx, shared, s, params != NULL), (0), launch(f, DIMS_OK, ST(s)))
SIM_API(cuFuncGetAttribute, (int *value, CUfunction_attribute attr, CUfunction f), (attr, f),
	(*value), attribute(value, attr, f))
SIM_API(cuFuncSetAttribute, (CUfunction f, CUfunction_attribute attr, int value), (f, attr, value),
	(0), known(f))
SIM_API(cuFuncSetCacheConfig, (CUfunction f, CUfunc_cache config), (f, config), (0), known(f))
SIM_API(cuFuncSetSharedMemConfig, (CUfunction f, CUsharedconfig config), (f, config), (0),
	known(f))
SIM_API(cuFuncLoad, (CUfunction f), (f), (0), known(f))
SIM_API(cuFuncIsLoaded, (CUfunctionLoadingState *state, CUfunction f), (f), (*state),
	loaded(state, f))
SIM_API(cuFuncGetParamInfo, (CUfunction f, size_t i, size_t *offset, size_t *size), (f, i), (0),
	no_param())
SIM_API(cuKernelGetAttribute,
	(int *value, CUfunction_attribute attr, CUkernel k, CUdevice dev), (attr, k, dev),
	(*value), attribute(value, attr, k))
SIM_API(cuKernelSetAttribute, (CUfunction_attribute attr, int value, CUkernel k, CUdevice dev),
	(attr, value, k, dev), (0), known(k))
SIM_API(cuKernelSetCacheConfig, (CUkernel k, CUfunc_cache config, CUdevice dev), (k, config, dev),
	(0), known(k))
SIM_API(cuKernelGetParamInfo, (CUkernel k, size_t i, size_t *offset, size_t *size), (k, i), (0),
	no_param())
SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessor,
	(int *n, CUfunction f, int block, size_t shared), (f, block, shared), (*n),
	active_blocks(n, f, block))
SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	(int *n, CUfunction f, int block, size_t shared, unsigned int flags),
	(f, block, shared, flags), (*n), active_blocks(n, f, block))
SIM_API(cuOccupancyMaxPotentialBlockSize,
	(int *grid, int *block, CUfunction f, CUoccupancyB2DSize size, size_t shared, int limit),
	(f, shared, limit), (*grid, *block), best_block(grid, block, f, limit))
SIM_API(cuOccupancyMaxPotentialBlockSizeWithFlags,
	(int *grid, int *block, CUfunction f, CUoccupancyB2DSize size, size_t shared, int limit,
	 unsigned int flags),
	(f, shared, limit, flags), (*grid, *block), best_block(grid, block, f, limit))
SIM_API(cuOccupancyAvailableDynamicSMemPerBlock, (size_t *bytes, CUfunction f, int n, int block),
	(f, n, block), (*bytes), free_shared(bytes, f))
SIM_API(cuOccupancyMaxPotentialClusterSize, (int *n, CUfunction f, const CUlaunchConfig *config),
	(f), (*n), clusters(n, f, 8))
SIM_API(cuOccupancyMaxActiveClusters, (int *n, CUfunction f, const CUlaunchConfig *config), (f),
	(*n), clusters(n, f, 66))
SIM_API(cuLinkCreate_v2, (unsigned int n, CUjit_option *options, void **values, CUlinkState *link),
	(n), (*link), link_create(link))
SIM_API(cuLinkCreate, (unsigned int n, CUjit_option *options, void **values, CUlinkState *link),
	(n), (*link), link_create(link))
SIM_API(cuLinkAddData_v2,
	(CUlinkState link, CUjitInputType type, void *data, size_t size, const char *name,
	 unsigned int n, CUjit_option *options, void **values),
	(link, type, size, n), (0), link_add(link, type, data, size))
SIM_API(cuLinkAddData,
	(CUlinkState link, CUjitInputType type, void *data, size_t size, const char *name,
	 unsigned int n, CUjit_option *options, void **values),
	(link, type, size, n), (0), link_add(link, type, data, size))
SIM_API(cuLinkAddFile_v2,
	(CUlinkState link, CUjitInputType type, const char *path, unsigned int n,
	 CUjit_option *options, void **values),
	(link, type, n), (0), link_known(link))
SIM_API(cuLinkComplete, (CUlinkState link, void **image, size_t *size), (link), (0),
	link_complete(link, image, size))
SIM_API(cuLinkDestroy, (CUlinkState link), (link), (0), link_destroy(link))
