/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: the current one of each thread, created ones, and a device's primary one. */
#include <string.h>

#include "internal.h"
#include "space.h"

static _Thread_local struct sim_thread self;
static _Atomic unsigned int next_thread = 1;

struct sim_thread *sim_thread_self(void)
{
	if (self.id == 0) {
		self.id = atomic_fetch_add(&next_thread, 1);
		self.mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	}
	return &self;
}

static CUresult usable(const struct sim_ctx *c)
{
	return atomic_load_explicit(&c->alive, memory_order_acquire)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult sim_ctx_current(struct sim_ctx **ret)
{
	struct sim_thread *t = sim_thread_self();

	if (t->depth == 0) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	*ret = t->stack[t->depth - 1];
	return usable(*ret);
}

CUresult sim_ctx_arg(CUcontext handle, struct sim_ctx **ret)
{
	if (handle == NULL) {
		return sim_ctx_current(ret);
	}
	*ret = sim_obj_get(handle, SIM_CTX);
	return *ret == NULL ? CUDA_ERROR_INVALID_CONTEXT : usable(*ret);
}

/* Not yet alive. */
struct sim_ctx *sim_ctx_new(struct sim_device *d, unsigned int flags, unsigned int version)
{
	struct sim_ctx *c = sim_device_map(d) ? sim_obj_new(SIM_CTX) : NULL;

	if (c == NULL) {
		return NULL;
	}
	c->dev = d;
	c->flags = flags;
	c->version = version;
	c->limit[CU_LIMIT_STACK_SIZE] = 1024;
	c->limit[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
	c->limit[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
	c->limit[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
	c->limit[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
	c->limit[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
	return c;
}

/* What goes with a context (C-97): its linear, managed, pinned memory and arrays; not pool memory
 * and not virtual memory. sim_lock is held. */
void sim_ctx_wipe(struct sim_ctx *c)
{
	atomic_store_explicit(&c->alive, false, memory_order_release);
	while (c->streams != NULL) {
		sim_stream_gone(c->streams);
	}
	while (c->events != NULL) {
		sim_event_gone(c->events);
	}
	atomic_store(&c->legacy, NULL);
	sim_arrays_wipe(c);
	sim_ipc_wipe(c);
	sim_host_wipe(c);
	sim_external_wipe(c);
	sim_free_owned(c);
}

static void push(struct sim_ctx *c)
{
	struct sim_thread *t = sim_thread_self();

	if (t->depth < (int)(sizeof(t->stack) / sizeof(t->stack[0]))) {
		t->stack[t->depth++] = c;
	}
}

static CUresult create(CUcontext *ret, unsigned int flags, CUdevice dev, unsigned int version)
{
	struct sim_device *d;
	struct sim_ctx *c;
	CUresult r = sim_device_get(dev, &d);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (ret == NULL || (flags & ~(unsigned int)CU_CTX_FLAGS_MASK) != 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = sim_unsafe();
	if (r != CUDA_SUCCESS) {
		return r;
	}
	c = sim_ctx_new(d, flags, version);
	if (c == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	atomic_store(&c->alive, true);
	c->retained = 1;
	push(c);
	*ret = (CUcontext)c;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUcontext handle)
{
	struct sim_ctx *c = sim_obj_get(handle, SIM_CTX);
	struct sim_thread *t = sim_thread_self();

	if (c == NULL || c->primary || c->home != NULL) {
		return CUDA_ERROR_INVALID_CONTEXT; /* GPU?: a green context's */
	}
	pthread_mutex_lock(&sim_lock);
	sim_ctx_wipe(c);
	pthread_mutex_unlock(&sim_lock);
	if (t->depth > 0 && t->stack[t->depth - 1] == c) {
		t->depth--; /* "as though cuCtxPopCurrent() were called" */
	}
	/* The object stays, not alive: other threads may still have it current. */
	return CUDA_SUCCESS;
}

static CUresult push_current(CUcontext handle)
{
	struct sim_ctx *c;
	CUresult r = handle == NULL ? CUDA_ERROR_INVALID_CONTEXT : sim_ctx_arg(handle, &c);

	if (r == CUDA_SUCCESS) {
		push(c);
	}
	return r;
}

static CUresult pop_current(CUcontext *ret)
{
	struct sim_thread *t = sim_thread_self();

	if (t->depth == 0) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	t->depth--;
	if (ret != NULL) {
		*ret = (CUcontext)t->stack[t->depth];
	}
	return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext handle)
{
	struct sim_thread *t = sim_thread_self();
	struct sim_ctx *c;
	CUresult r;

	if (handle == NULL) {
		t->depth -= t->depth > 0;
		return CUDA_SUCCESS;
	}
	r = sim_ctx_arg(handle, &c);
	if (r == CUDA_SUCCESS) {
		t->depth -= t->depth > 0;
		push(c);
	}
	return r;
}

static CUresult get_current(CUcontext *ret)
{
	struct sim_thread *t = sim_thread_self();

	if (ret == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ret = t->depth > 0 ? (CUcontext)t->stack[t->depth - 1] : NULL;
	return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *ret, CUcontext handle)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_arg(handle, &c);

	if (r == CUDA_SUCCESS && ret == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*ret = c->dev->ordinal;
	}
	return r;
}

static CUresult synchronize(CUcontext handle)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_arg(handle, &c);

	if (r == CUDA_SUCCESS) {
		r = sim_capture_sync(c);
	}
	if (r == CUDA_SUCCESS) {
		sim_synced();
	}
	return r;
}

static CUresult attach(CUcontext *ret, unsigned int flags)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS && (ret == NULL || flags != 0)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		c->retained++;
		*ret = (CUcontext)c;
	}
	return r;
}

static CUresult detach(CUcontext handle)
{
	struct sim_ctx *c = sim_obj_get(handle, SIM_CTX);

	if (c == NULL || c->primary) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	return --c->retained > 0 ? CUDA_SUCCESS : destroy(handle);
}

CUresult sim_primary_retain(CUcontext *ret, CUdevice dev)
{
	struct sim_device *d;
	CUresult r = sim_device_get(dev, &d);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (ret == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_lock);
	if (d->primary == NULL) {
		d->primary = sim_ctx_new(d, 0, 3020);
	}
	if (d->primary == NULL) {
		pthread_mutex_unlock(&sim_lock);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	d->primary->primary = true;
	d->primary->retained++;
	atomic_store_explicit(&d->primary->alive, true, memory_order_release);
	*ret = (CUcontext)d->primary;
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

/* Reset destroys what the context holds and leaves the references; the next retain makes the
 * context active again. GPU?: what a thread that has it current sees until then. */
CUresult sim_primary_end(CUdevice dev, bool release)
{
	struct sim_device *d;
	CUresult r = sim_device_get(dev, &d);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&sim_lock);
	if (release && (d->primary == NULL || d->primary->retained == 0)) {
		r = CUDA_ERROR_INVALID_CONTEXT;
	} else if (d->primary != NULL) {
		d->primary->retained -= release;
		if ((!release || d->primary->retained == 0) && atomic_load(&d->primary->alive)) {
			sim_ctx_wipe(d->primary);
		}
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

static CUresult primary_flags(CUdevice dev, unsigned int flags)
{
	struct sim_device *d;
	CUresult r = sim_device_get(dev, &d);

	if (r == CUDA_SUCCESS && (flags & ~(unsigned int)CU_CTX_FLAGS_MASK) != 0) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		pthread_mutex_lock(&sim_lock);
		if (d->primary == NULL) {
			d->primary = sim_ctx_new(d, flags, 3020);
		}
		if (d->primary != NULL) {
			d->primary->primary = true;
			d->primary->flags = flags;
		}
		pthread_mutex_unlock(&sim_lock);
	}
	return r;
}

static CUresult primary_state(CUdevice dev, unsigned int *flags, int *active)
{
	struct sim_device *d;
	CUresult r = sim_device_get(dev, &d);

	if (r == CUDA_SUCCESS && (flags == NULL || active == NULL)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		pthread_mutex_lock(&sim_lock);
		*flags = d->primary != NULL ? d->primary->flags : 0;
		*active = d->primary != NULL && atomic_load(&d->primary->alive);
		pthread_mutex_unlock(&sim_lock);
	}
	return r;
}

SIM_API(cuCtxCreate, (CUcontext *pctx, unsigned int flags, CUdevice dev), (flags, dev), (*pctx),
	create(pctx, flags, dev, 3010))
SIM_API(cuCtxCreate_v2, (CUcontext *pctx, unsigned int flags, CUdevice dev), (flags, dev), (*pctx),
	create(pctx, flags, dev, 3020))
SIM_API(cuCtxCreate_v3,
	(CUcontext *pctx, CUexecAffinityParam *params, int n, unsigned int flags, CUdevice dev),
	(params != NULL, n, flags, dev), (*pctx), create(pctx, flags, dev, 3020))
SIM_API(cuCtxCreate_v4,
	(CUcontext *pctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev),
	(params != NULL, flags, dev), (*pctx), create(pctx, flags, dev, 3020))
SIM_API(cuCtxDestroy, (CUcontext ctx), (ctx), (0), destroy(ctx))
SIM_API(cuCtxDestroy_v2, (CUcontext ctx), (ctx), (0), destroy(ctx))
SIM_API(cuCtxPushCurrent, (CUcontext ctx), (ctx), (0), push_current(ctx))
SIM_API(cuCtxPushCurrent_v2, (CUcontext ctx), (ctx), (0), push_current(ctx))
SIM_API(cuCtxPopCurrent, (CUcontext *pctx), (0), (SIM_OUT(pctx)), pop_current(pctx))
SIM_API(cuCtxPopCurrent_v2, (CUcontext *pctx), (0), (SIM_OUT(pctx)), pop_current(pctx))
SIM_API(cuCtxSetCurrent, (CUcontext ctx), (ctx), (0), set_current(ctx))
SIM_API(cuCtxGetCurrent, (CUcontext *pctx), (0), (*pctx), get_current(pctx))
SIM_API(cuCtxGetDevice, (CUdevice *dev), (0), (*dev), get_device(dev, NULL))
SIM_API(cuCtxGetDevice_v2, (CUdevice *dev, CUcontext ctx), (ctx), (*dev), get_device(dev, ctx))
SIM_API(cuCtxSynchronize, (void), (0), (0), synchronize(NULL))
SIM_API(cuCtxSynchronize_v2, (CUcontext ctx), (ctx), (0), synchronize(ctx))
SIM_API(cuCtxAttach, (CUcontext *pctx, unsigned int flags), (flags), (*pctx), attach(pctx, flags))
SIM_API(cuCtxDetach, (CUcontext ctx), (ctx), (0), detach(ctx))
SIM_API(cuDevicePrimaryCtxRetain, (CUcontext *pctx, CUdevice dev), (dev), (*pctx),
	sim_primary_retain(pctx, dev))
SIM_API(cuDevicePrimaryCtxRelease, (CUdevice dev), (dev), (0), sim_primary_end(dev, true))
SIM_API(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), (dev), (0), sim_primary_end(dev, true))
SIM_API(cuDevicePrimaryCtxReset, (CUdevice dev), (dev), (0), sim_primary_end(dev, false))
SIM_API(cuDevicePrimaryCtxReset_v2, (CUdevice dev), (dev), (0), sim_primary_end(dev, false))
SIM_API(cuDevicePrimaryCtxSetFlags, (CUdevice dev, unsigned int flags), (dev, flags), (0),
	primary_flags(dev, flags))
SIM_API(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned int flags), (dev, flags), (0),
	primary_flags(dev, flags))
SIM_API(cuDevicePrimaryCtxGetState, (CUdevice dev, unsigned int *flags, int *active), (dev),
	(*active), primary_state(dev, flags, active))
