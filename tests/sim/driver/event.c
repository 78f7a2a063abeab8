/* SPDX-License-Identifier: Apache-2.0 */
/* Events. They are complete at once; in a captured stream they carry the capture on. */
#include <time.h>

#include "internal.h"

void sim_event_gone(struct sim_event *e)
{
	if (e->next != NULL) {
		e->next->prev = e->prev;
	}
	if (e->prev != NULL) {
		e->prev->next = e->next;
	} else {
		e->ctx->events = e->next;
	}
	sim_obj_free(&e->obj);
}

static CUresult find(CUevent h, struct sim_event **ret)
{
	*ret = sim_obj_get(h, SIM_EVENT);
	return *ret != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_event_new(CUevent *ret, unsigned int flags)
{
	struct sim_ctx *c;
	struct sim_event *e;
	CUresult r = sim_ctx_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (ret == NULL || flags > 7) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	e = sim_obj_new(SIM_EVENT);
	if (e == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	e->ctx = c;
	e->flags = flags;
	pthread_mutex_lock(&sim_lock);
	e->next = c->events;
	if (e->next != NULL) {
		e->next->prev = e;
	}
	c->events = e;
	pthread_mutex_unlock(&sim_lock);
	*ret = (CUevent)e;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUevent h)
{
	struct sim_event *e;
	CUresult r = find(h, &e);

	if (r == CUDA_SUCCESS) {
		pthread_mutex_lock(&sim_lock);
		sim_event_gone(e);
		pthread_mutex_unlock(&sim_lock);
	}
	return r;
}

static CUresult record(CUevent h, CUstream hs, bool per_thread)
{
	struct sim_event *e;
	struct sim_stream *s;
	struct timespec ts;
	CUresult r = find(h, &e);

	if (r == CUDA_SUCCESS) {
		r = sim_stream_use(hs, per_thread, &s);
	}
	if (r == CUDA_SUCCESS && s->ctx != e->ctx) {
		r = CUDA_ERROR_INVALID_HANDLE;
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (sim_capture_of(s, &r) != NULL) {
		sim_capture_record(s, e);
	} else if (r == CUDA_SUCCESS) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		pthread_mutex_lock(&sim_lock);
		e->recorded = true;
		e->capture_id = 0;
		e->time = (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
		pthread_mutex_unlock(&sim_lock);
	}
	return r;
}

static CUresult wait_event(CUstream hs, bool per_thread, CUevent h)
{
	struct sim_event *e;
	struct sim_stream *s;
	CUresult r = sim_stream_get(hs, per_thread, &s);

	if (r == CUDA_SUCCESS) {
		r = find(h, &e);
	}
	return r == CUDA_SUCCESS ? sim_capture_wait(s, e) : r;
}

static CUresult done(CUevent h, bool wait)
{
	struct sim_event *e;
	CUresult r = find(h, &e);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&sim_lock);
	if (e->capture_id != 0) {
		r = CUDA_ERROR_CAPTURED_EVENT;
	}
	pthread_mutex_unlock(&sim_lock);
	if (r == CUDA_SUCCESS && wait) {
		sim_synced();
	}
	return r;
}

static CUresult elapsed(float *ms, CUevent h1, CUevent h2)
{
	struct sim_event *a, *b;
	CUresult r = find(h1, &a);

	if (r == CUDA_SUCCESS) {
		r = find(h2, &b);
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (ms == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!a->recorded || !b->recorded ||
	    ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING) != 0) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	*ms = (float)((double)(int64_t)(b->time - a->time) / 1e6);
	return CUDA_SUCCESS;
}

SIM_API(cuEventCreate, (CUevent *e, unsigned int flags), (flags), (*e), sim_event_new(e, flags))
SIM_API(cuEventDestroy, (CUevent e), (e), (0), destroy(e))
SIM_API(cuEventDestroy_v2, (CUevent e), (e), (0), destroy(e))
SIM_API_PTSZ(cuEventRecord, (CUevent e, CUstream s), (e, s), (0), record(e, ST(s)))
SIM_API_PTSZ(cuEventRecordWithFlags, (CUevent e, CUstream s, unsigned int flags), (e, s, flags),
	     (0), record(e, ST(s)))
SIM_API_PTSZ(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned int flags), (s, e, flags), (0),
	     wait_event(ST(s), e))
SIM_API(cuEventQuery, (CUevent e), (e), (0), done(e, false))
SIM_API(cuEventSynchronize, (CUevent e), (e), (0), done(e, true))
SIM_API(cuEventElapsedTime, (float *ms, CUevent a, CUevent b), (a, b), (0), elapsed(ms, a, b))
SIM_API(cuEventElapsedTime_v2, (float *ms, CUevent a, CUevent b), (a, b), (0), elapsed(ms, a, b))
