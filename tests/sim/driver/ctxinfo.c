/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked and set about a context: flags, limits, identity, cache preferences. */
#include "internal.h"

static CUresult flags_get(unsigned int *flags)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS && flags == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*flags = c->flags;
	}
	return r;
}

static CUresult flags_set(unsigned int flags)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS) {
		c->flags = flags;
	}
	return r;
}

static CUresult api_version(CUcontext handle, unsigned int *version)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_arg(handle, &c);

	if (r == CUDA_SUCCESS && version == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*version = c->version;
	}
	return r;
}

static CUresult id_get(CUcontext handle, unsigned long long *id)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_arg(handle, &c);

	if (r == CUDA_SUCCESS && id == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*id = c->obj.id;
	}
	return r;
}

static CUresult limit_get(size_t *value, CUlimit limit)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (value == NULL || (unsigned int)limit >= CU_LIMIT_MAX) {
		return value == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_UNSUPPORTED_LIMIT;
	}
	*value = c->limit[limit];
	return CUDA_SUCCESS;
}

static CUresult limit_set(CUlimit limit, size_t value)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if ((unsigned int)limit >= CU_LIMIT_MAX) {
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	}
	c->limit[limit] = value;
	return CUDA_SUCCESS;
}

static CUresult priority_range(int *least, int *greatest)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS && least != NULL) {
		*least = 0;
	}
	if (r == CUDA_SUCCESS && greatest != NULL) {
		*greatest = -5;
	}
	return r;
}

static CUresult cache_get(CUfunc_cache *cache)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS && cache == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*cache = c->cache;
	}
	return r;
}

static CUresult cache_set(CUfunc_cache cache)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS) {
		c->cache = cache;
	}
	return r;
}

static CUresult nothing(void)
{
	struct sim_ctx *c;

	return sim_ctx_current(&c);
}

SIM_API(cuCtxGetFlags, (unsigned int *flags), (0), (*flags), flags_get(flags))
SIM_API(cuCtxSetFlags, (unsigned int flags), (flags), (0), flags_set(flags))
SIM_API(cuCtxGetApiVersion, (CUcontext ctx, unsigned int *version), (ctx), (*version),
	api_version(ctx, version))
SIM_API(cuCtxGetId, (CUcontext ctx, unsigned long long *id), (ctx), (*id), id_get(ctx, id))
SIM_API(cuCtxGetLimit, (size_t *value, CUlimit limit), (limit), (*value), limit_get(value, limit))
SIM_API(cuCtxSetLimit, (CUlimit limit, size_t value), (limit, value), (0), limit_set(limit, value))
SIM_API(cuCtxGetStreamPriorityRange, (int *least, int *greatest), (0), (0),
	priority_range(least, greatest))
SIM_API(cuCtxGetCacheConfig, (CUfunc_cache *cache), (0), (*cache), cache_get(cache))
SIM_API(cuCtxSetCacheConfig, (CUfunc_cache cache), (cache), (0), cache_set(cache))
SIM_API(cuCtxResetPersistingL2Cache, (void), (0), (0), nothing())
