/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: the primary context with some of the device's multiprocessors, which makes no
 * difference here. Memory taken in one is the primary context's, which it retains; streams and
 * events are its own.
 */
#include <string.h>

#include "internal.h"

#define ALL_SMS 132U
#define SM_STEP 8U /* groups are multiples of it on compute capability 9.0 */

struct green {
	struct sim_obj obj;
	struct sim_ctx *ctx;
	unsigned int sms;
};

struct descriptor {
	struct sim_obj obj;
	unsigned int sms;
};

static void fill(CUdevResource *r, unsigned int sms)
{
	memset(r, 0, sizeof(*r));
	r->type = CU_DEV_RESOURCE_TYPE_SM;
	r->sm.smCount = sms;
	r->sm.minSmPartitionSize = SM_STEP;
	r->sm.smCoscheduledAlignment = SM_STEP;
}

static CUresult resource(CUdevResource *ret, CUdevResourceType type, unsigned int sms)
{
	if (ret == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (type != CU_DEV_RESOURCE_TYPE_SM) {
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	}
	fill(ret, sms);
	return CUDA_SUCCESS;
}

static CUresult device_resource(CUdevice dev, CUdevResource *ret, CUdevResourceType type)
{
	struct sim_device *d;
	CUresult r = sim_device_get(dev, &d);

	return r == CUDA_SUCCESS ? resource(ret, type, ALL_SMS) : r;
}

static CUresult ctx_resource(CUcontext h, CUdevResource *ret, CUdevResourceType type)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_arg(h, &c);

	return r == CUDA_SUCCESS ? resource(ret, type, ALL_SMS) : r;
}

static CUresult green_resource(CUgreenCtx h, CUdevResource *ret, CUdevResourceType type)
{
	const struct green *g = sim_obj_get(h, SIM_GREEN);

	return g == NULL ? CUDA_ERROR_INVALID_VALUE : resource(ret, type, g->sms);
}

static CUresult split(CUdevResource *ret, unsigned int *n, const CUdevResource *in,
		      CUdevResource *rest, unsigned int least)
{
	unsigned int each = least < SM_STEP ? SM_STEP : (least + SM_STEP - 1) / SM_STEP * SM_STEP;
	unsigned int groups;

	if (n == NULL || in == NULL || in->type != CU_DEV_RESOURCE_TYPE_SM) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	groups = in->sm.smCount / each;
	if (groups == 0) {
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	}
	if (ret != NULL) {
		groups = *n < groups ? *n : groups;
		for (unsigned int i = 0; i < groups; i++) {
			fill(&ret[i], each);
		}
	}
	*n = groups;
	if (rest != NULL) {
		fill(rest, in->sm.smCount - groups * each);
	}
	return CUDA_SUCCESS;
}

/* A descriptor has no destructor: its slot stays taken. */
static CUresult describe(CUdevResourceDesc *ret, const CUdevResource *list, unsigned int n)
{
	struct descriptor *d;

	if (ret == NULL || list == NULL || n == 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	d = sim_obj_new(SIM_DESCRIPTOR);
	if (d == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (unsigned int i = 0; i < n; i++) {
		d->sms += list[i].sm.smCount;
	}
	*ret = (CUdevResourceDesc)d;
	return CUDA_SUCCESS;
}

static CUresult create(CUgreenCtx *ret, CUdevResourceDesc hd, CUdevice dev, unsigned int flags)
{
	const struct descriptor *desc = sim_obj_get(hd, SIM_DESCRIPTOR);
	struct sim_device *d;
	CUcontext primary;
	struct green *g;
	CUresult r = sim_device_get(dev, &d);

	if (r == CUDA_SUCCESS &&
	    (ret == NULL || desc == NULL || flags != CU_GREEN_CTX_DEFAULT_STREAM)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	r = sim_primary_retain(&primary, dev);
	if (r != CUDA_SUCCESS) {
		return r;
	}
	g = sim_obj_new(SIM_GREEN);
	if (g != NULL) {
		g->ctx = sim_ctx_new(d, 0, 3020);
	}
	if (g == NULL || g->ctx == NULL) {
		sim_primary_end(dev, true);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	g->sms = desc->sms;
	g->ctx->home = (struct sim_ctx *)primary;
	atomic_store(&g->ctx->alive, true);
	*ret = (CUgreenCtx)g;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUgreenCtx h)
{
	struct green *g = sim_obj_get(h, SIM_GREEN);
	CUdevice dev;

	if (g == NULL) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	dev = g->ctx->dev->ordinal;
	pthread_mutex_lock(&sim_lock);
	sim_ctx_wipe(g->ctx);
	pthread_mutex_unlock(&sim_lock);
	sim_obj_free(&g->obj);
	return sim_primary_end(dev, true);
}

static CUresult to_ctx(CUcontext *ret, CUgreenCtx h)
{
	const struct green *g = sim_obj_get(h, SIM_GREEN);

	if (g == NULL || ret == NULL) {
		return g == NULL ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
	}
	*ret = (CUcontext)g->ctx;
	return CUDA_SUCCESS;
}

static CUresult stream(CUstream *ret, CUgreenCtx h, unsigned int flags, int priority)
{
	const struct green *g = sim_obj_get(h, SIM_GREEN);

	if (g == NULL) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	return flags != CU_STREAM_NON_BLOCKING ? CUDA_ERROR_INVALID_VALUE
					       : sim_stream_new(g->ctx, ret, flags, priority);
}

static CUresult green_id(CUgreenCtx h, unsigned long long *ret)
{
	const struct green *g = sim_obj_get(h, SIM_GREEN);

	if (g == NULL || ret == NULL) {
		return g == NULL ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
	}
	*ret = g->ctx->obj.id;
	return CUDA_SUCCESS;
}

static CUresult order(CUgreenCtx h, CUevent e)
{
	return sim_obj_get(h, SIM_GREEN) != NULL && sim_obj_get(e, SIM_EVENT) != NULL
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API(cuDeviceGetDevResource, (CUdevice dev, CUdevResource *out, CUdevResourceType type),
	(dev, type), (0), device_resource(dev, out, type))
SIM_API(cuCtxGetDevResource, (CUcontext ctx, CUdevResource *out, CUdevResourceType type),
	(ctx, type), (0), ctx_resource(ctx, out, type))
SIM_API(cuGreenCtxGetDevResource, (CUgreenCtx green, CUdevResource *out, CUdevResourceType type),
	(green, type), (0), green_resource(green, out, type))
SIM_API(cuDevSmResourceSplitByCount,
	(CUdevResource *out, unsigned int *n, const CUdevResource *in, CUdevResource *rest,
	 unsigned int flags, unsigned int least),
	(in != NULL, flags, least), (*n), split(out, n, in, rest, least))
SIM_API(cuDevResourceGenerateDesc, (CUdevResourceDesc *desc, CUdevResource *list, unsigned int n),
	(n), (*desc), describe(desc, list, n))
SIM_API(cuGreenCtxCreate,
	(CUgreenCtx *green, CUdevResourceDesc desc, CUdevice dev, unsigned int flags),
	(desc, dev, flags), (*green), create(green, desc, dev, flags))
SIM_API(cuGreenCtxDestroy, (CUgreenCtx green), (green), (0), destroy(green))
SIM_API(cuCtxFromGreenCtx, (CUcontext *ctx, CUgreenCtx green), (green), (*ctx), to_ctx(ctx, green))
SIM_API(cuGreenCtxStreamCreate,
	(CUstream *s, CUgreenCtx green, unsigned int flags, int priority),
	(green, flags, priority), (*s), stream(s, green, flags, priority))
SIM_API(cuGreenCtxGetId, (CUgreenCtx green, unsigned long long *id), (green), (*id),
	green_id(green, id))
SIM_API(cuGreenCtxRecordEvent, (CUgreenCtx green, CUevent e), (green, e), (0), order(green, e))
SIM_API(cuGreenCtxWaitEvent, (CUgreenCtx green, CUevent e), (green, e), (0), order(green, e))
