/* SPDX-License-Identifier: Apache-2.0 */
/* Streams. All work is done at the call, so a stream is never busy; what is kept is what captures,
 * pools and queries need to know about it. */
#include "internal.h"

/* sim_lock is held. */
static struct sim_stream *new_stream(struct sim_ctx *c, unsigned int flags, int priority)
{
	struct sim_stream *s = sim_obj_new(SIM_STREAM);

	if (s != NULL) {
		s->ctx = c;
		s->flags = flags;
		s->priority = priority;
		s->next = c->streams;
		if (s->next != NULL) {
			s->next->prev = s;
		}
		c->streams = s;
	}
	return s;
}

/* sim_lock is held. A capture that the stream takes part in is broken. */
void sim_stream_gone(struct sim_stream *s)
{
	struct sim_capture *c = atomic_load(&s->capture);

	if (c != NULL) {
		sim_capture_break(c);
		sim_capture_lost(s);
	}
	if (s->next != NULL) {
		s->next->prev = s->prev;
	}
	if (s->prev != NULL) {
		s->prev->next = s->next;
	} else {
		s->ctx->streams = s->next;
	}
	sim_obj_free(&s->obj);
}

static struct sim_stream *legacy(struct sim_ctx *c)
{
	struct sim_stream *s = atomic_load_explicit(&c->legacy, memory_order_acquire);

	if (s != NULL) {
		return s;
	}
	pthread_mutex_lock(&sim_lock);
	s = atomic_load(&c->legacy);
	if (s == NULL) {
		s = new_stream(c, 0, 0);
		if (s != NULL) {
			s->is_default = true;
		}
		atomic_store_explicit(&c->legacy, s, memory_order_release);
	}
	pthread_mutex_unlock(&sim_lock);
	return s;
}

static struct sim_stream *per_thread_stream(struct sim_ctx *c)
{
	struct sim_thread *t = sim_thread_self();
	struct sim_stream *s = t->ptds;

	if (t->ptds_ctx == c && sim_obj_get(s, SIM_STREAM) == s && s->obj.id == t->ptds_id) {
		return s;
	}
	pthread_mutex_lock(&sim_lock);
	for (s = c->streams; s != NULL && s->thread != t->id; s = s->next) {
	}
	if (s == NULL) {
		s = new_stream(c, 0, 0);
		if (s != NULL) {
			s->thread = t->id;
		}
	}
	pthread_mutex_unlock(&sim_lock);
	if (s != NULL) {
		t->ptds_ctx = c;
		t->ptds = s;
		t->ptds_id = s->obj.id;
	}
	return s;
}

/* The stream a handle names: an explicit one needs no current context (C-16). */
CUresult sim_stream_get(CUstream h, bool per_thread, struct sim_stream **ret)
{
	struct sim_ctx *c;
	CUresult r;

	if ((uintptr_t)h > 2) {
		*ret = sim_obj_get(h, SIM_STREAM);
		return *ret != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	}
	r = sim_ctx_current(&c);
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (h == CU_STREAM_PER_THREAD || (h == NULL && per_thread)) {
		*ret = per_thread_stream(c);
	} else {
		*ret = legacy(c);
	}
	return *ret != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* For work to be put on: the legacy stream would wait for every blocking stream that captures. */
CUresult sim_stream_use(CUstream h, bool per_thread, struct sim_stream **ret)
{
	CUresult r = sim_stream_get(h, per_thread, ret);

	if (r == CUDA_SUCCESS && (*ret)->is_default &&
	    atomic_load_explicit(&sim_open_captures, memory_order_relaxed) != 0) {
		r = sim_capture_legacy((*ret)->ctx);
	}
	return r;
}

void sim_synced(void)
{
	sim_pool_sync();
}

CUresult sim_stream_new(struct sim_ctx *c, CUstream *ret, unsigned int flags, int priority)
{
	struct sim_stream *s;

	if (ret == NULL || flags > CU_STREAM_NON_BLOCKING) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_lock);
	s = new_stream(c, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
	pthread_mutex_unlock(&sim_lock);
	if (s == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUstream)s;
	return CUDA_SUCCESS;
}

static CUresult create(CUstream *ret, unsigned int flags, int priority)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	return r == CUDA_SUCCESS ? sim_stream_new(c, ret, flags, priority) : r;
}

static CUresult destroy(CUstream h)
{
	struct sim_stream *s;
	CUresult r = (uintptr_t)h <= 2 ? CUDA_ERROR_INVALID_HANDLE : sim_stream_get(h, false, &s);

	if (r == CUDA_SUCCESS) {
		pthread_mutex_lock(&sim_lock);
		if (s->is_default || s->thread != 0) {
			r = CUDA_ERROR_INVALID_HANDLE;
		} else {
			sim_stream_gone(s);
		}
		pthread_mutex_unlock(&sim_lock);
	}
	return r;
}

/* Waiting for, or asking about, a stream that captures is forbidden by nature (C-84). */
static CUresult idle(CUstream h, bool per_thread, bool wait)
{
	struct sim_stream *s;
	struct sim_capture *c;
	CUresult r = sim_stream_use(h, per_thread, &s);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	c = atomic_load(&s->capture);
	if (c != NULL) {
		sim_capture_break(c);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	if (wait) {
		sim_synced();
	}
	return CUDA_SUCCESS;
}

static CUresult get_ctx(CUstream h, bool per_thread, CUcontext *ret)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(h, per_thread, &s);

	if (r == CUDA_SUCCESS && ret == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*ret = (CUcontext)s->ctx;
	}
	return r;
}

static CUresult get_ctx_v2(CUstream h, bool per_thread, CUcontext *ret, CUgreenCtx *green)
{
	CUresult r = get_ctx(h, per_thread, ret);

	if (r == CUDA_SUCCESS && green != NULL) {
		*green = NULL;
	}
	return r;
}

enum what { DEVICE, FLAGS, PRIORITY };

static CUresult get_int(CUstream h, bool per_thread, void *ret, enum what what)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(h, per_thread, &s);

	if (r == CUDA_SUCCESS && ret == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS && what == FLAGS) {
		*(unsigned int *)ret = s->flags;
	} else if (r == CUDA_SUCCESS) {
		*(int *)ret = what == DEVICE ? s->ctx->dev->ordinal : s->priority;
	}
	return r;
}

static CUresult get_id(CUstream h, bool per_thread, unsigned long long *ret)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(h, per_thread, &s);

	if (r == CUDA_SUCCESS && ret == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*ret = s->obj.id;
	}
	return r;
}

/* Host functions run at once, in the caller's thread. GPU?: a driver runs them in its own. */
static CUresult host_fn(CUstream h, bool per_thread, CUhostFn fn, void *data)
{
	struct sim_stream *s;
	struct sim_node *n;
	CUresult r = sim_stream_use(h, per_thread, &s);

	if (r == CUDA_SUCCESS && fn == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (sim_capture_of(s, &r) != NULL) {
		n = sim_capture_node(s, CU_GRAPH_NODE_TYPE_HOST);
		if (n != NULL) {
			n->fn = fn;
			n->data = data;
		}
	} else if (r == CUDA_SUCCESS) {
		fn(data);
	}
	return r;
}

static CUresult callback(CUstream h, bool per_thread, CUstreamCallback fn, void *data)
{
	struct sim_stream *s;
	struct sim_capture *c;
	CUresult r = sim_stream_use(h, per_thread, &s);

	if (r == CUDA_SUCCESS && fn == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	c = atomic_load(&s->capture);
	if (c != NULL) {
		sim_capture_break(c);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	fn(h, CUDA_SUCCESS, data);
	return CUDA_SUCCESS;
}

SIM_API(cuStreamCreate, (CUstream *s, unsigned int flags), (flags), (*s), create(s, flags, 0))
SIM_API(cuStreamCreateWithPriority, (CUstream *s, unsigned int flags, int priority),
	(flags, priority), (*s), create(s, flags, priority))
SIM_API(cuStreamDestroy, (CUstream s), (s), (0), destroy(s))
SIM_API(cuStreamDestroy_v2, (CUstream s), (s), (0), destroy(s))
SIM_API_PTSZ(cuStreamSynchronize, (CUstream s), (s), (0), idle(ST(s), true))
SIM_API_PTSZ(cuStreamQuery, (CUstream s), (s), (0), idle(ST(s), false))
SIM_API_PTSZ(cuStreamGetCtx, (CUstream s, CUcontext *ctx), (s), (*ctx), get_ctx(ST(s), ctx))
SIM_API_PTSZ(cuStreamGetCtx_v2, (CUstream s, CUcontext *ctx, CUgreenCtx *green), (s), (*ctx),
	     get_ctx_v2(ST(s), ctx, green))
SIM_API_PTSZ(cuStreamGetDevice, (CUstream s, CUdevice *dev), (s), (*dev),
	     get_int(ST(s), dev, DEVICE))
SIM_API_PTSZ(cuStreamGetFlags, (CUstream s, unsigned int *flags), (s), (*flags),
	     get_int(ST(s), flags, FLAGS))
SIM_API_PTSZ(cuStreamGetPriority, (CUstream s, int *priority), (s), (*priority),
	     get_int(ST(s), priority, PRIORITY))
SIM_API_PTSZ(cuStreamGetId, (CUstream s, unsigned long long *id), (s), (*id), get_id(ST(s), id))
SIM_API_PTSZ(cuLaunchHostFunc, (CUstream s, CUhostFn fn, void *data), (s), (0),
	     host_fn(ST(s), fn, data))
SIM_API_PTSZ(cuStreamAddCallback,
	     (CUstream s, CUstreamCallback fn, void *data, unsigned int flags), (s, flags), (0),
	     callback(ST(s), fn, data))
