/* SPDX-License-Identifier: Apache-2.0 */
/* The capture functions' entry points, in their several versions. */
#include "internal.h"

static CUresult begin_graph(CUstream hs, bool per_thread, CUgraph hg, CUstreamCaptureMode mode)
{
	struct sim_graph *g = sim_obj_get(hg, SIM_GRAPH);

	return g == NULL ? CUDA_ERROR_INVALID_VALUE : sim_capture_begin(hs, per_thread, mode, g);
}

static CUstreamCaptureStatus status_of(struct sim_stream *s)
{
	struct sim_capture *c = atomic_load_explicit(&s->capture, memory_order_acquire);

	if (c == NULL) {
		return CU_STREAM_CAPTURE_STATUS_NONE;
	}
	return atomic_load(&c->invalid) ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					: CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* On the legacy stream, while a blocking stream of its context captures: 906, and that capture is
 * not broken ("it is not valid to query", header of cuStreamIsCapturing). */
static CUresult implicit(struct sim_stream *s)
{
	CUresult r = CUDA_SUCCESS;

	if (!s->is_default || atomic_load(&sim_open_captures) == 0) {
		return r;
	}
	pthread_mutex_lock(&sim_lock);
	for (const struct sim_stream *o = s->ctx->streams; o != NULL; o = o->next) {
		if (atomic_load(&o->capture) != NULL && (o->flags & CU_STREAM_NON_BLOCKING) == 0) {
			r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

static CUresult is_capturing(CUstream hs, bool per_thread, CUstreamCaptureStatus *status)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(hs, per_thread, &s);

	if (r == CUDA_SUCCESS && status == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		r = implicit(s);
	}
	if (r == CUDA_SUCCESS) {
		*status = status_of(s);
	}
	return r;
}

static CUresult info(CUstream hs, bool per_thread, CUstreamCaptureStatus *status, cuuint64_t *id,
		     CUgraph *graph, const CUgraphNode **deps, size_t *n_deps)
{
	struct sim_stream *s;
	struct sim_capture *c;
	CUresult r = is_capturing(hs, per_thread, status);

	if (r != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
		return r;
	}
	r = sim_stream_get(hs, per_thread, &s);
	pthread_mutex_lock(&sim_lock);
	c = atomic_load(&s->capture);
	if (c != NULL) {
		if (id != NULL) {
			*id = c->obj.id;
		}
		if (graph != NULL) {
			*graph = (CUgraph)c->graph;
		}
		if (deps != NULL) {
			*deps = s->deps;
		}
		if (n_deps != NULL) {
			*n_deps = s->n_deps;
		}
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

static CUresult info_v3(CUstream hs, bool per_thread, CUstreamCaptureStatus *status,
			cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps,
			const CUgraphEdgeData **edges, size_t *n_deps)
{
	if (edges != NULL) {
		*edges = NULL;
	}
	return info(hs, per_thread, status, id, graph, deps, n_deps);
}

static CUresult update(CUstream hs, bool per_thread, const CUgraphNode *deps, size_t n,
		       unsigned int flags)
{
	struct sim_stream *s;
	CUresult r = sim_stream_get(hs, per_thread, &s);
	size_t old;

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (atomic_load(&s->capture) == NULL) {
		return CUDA_ERROR_ILLEGAL_STATE;
	}
	old = flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES ? 0 : s->n_deps;
	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (n > 0 && deps == NULL) ||
	    old + n > SIM_MAX_DEPS) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_lock);
	for (size_t i = 0; i < n; i++) {
		s->deps[old + i] = deps[i];
	}
	s->n_deps = old + n;
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

static CUresult exchange(CUstreamCaptureMode *mode)
{
	struct sim_thread *t = sim_thread_self();
	CUstreamCaptureMode old = t->mode;

	if (mode == NULL || (unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	t->mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamBeginCapture, (CUstream s), (s), (0),
	     sim_capture_begin(ST(s), CU_STREAM_CAPTURE_MODE_GLOBAL, NULL))
SIM_API_PTSZ(cuStreamBeginCapture_v2, (CUstream s, CUstreamCaptureMode mode), (s, mode), (0),
	     sim_capture_begin(ST(s), mode, NULL))
SIM_API_PTSZ(cuStreamBeginCaptureToGraph,
	     (CUstream s, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
	      size_t n, CUstreamCaptureMode mode),
	     (s, graph, deps != NULL, edges != NULL, n, mode), (0),
	     begin_graph(ST(s), graph, mode))
SIM_API_PTSZ(cuStreamEndCapture, (CUstream s, CUgraph *graph), (s), (*graph),
	     sim_capture_end(ST(s), graph))
SIM_API_PTSZ(cuStreamIsCapturing, (CUstream s, CUstreamCaptureStatus *status), (s), (*status),
	     is_capturing(ST(s), status))
SIM_API_PTSZ(cuStreamGetCaptureInfo, (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id),
	     (s), (*status), info(ST(s), status, id, NULL, NULL, NULL))
SIM_API_PTSZ(cuStreamGetCaptureInfo_v2,
	     (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	      const CUgraphNode **deps, size_t *n),
	     (s), (*status), info(ST(s), status, id, graph, deps, n))
SIM_API_PTSZ(cuStreamGetCaptureInfo_v3,
	     (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	      const CUgraphNode **deps, const CUgraphEdgeData **edges, size_t *n),
	     (s), (*status), info_v3(ST(s), status, id, graph, deps, edges, n))
SIM_API_PTSZ(cuStreamUpdateCaptureDependencies,
	     (CUstream s, CUgraphNode *deps, size_t n, unsigned int flags), (s, n, flags), (0),
	     update(ST(s), deps, n, flags))
SIM_API_PTSZ(cuStreamUpdateCaptureDependencies_v2,
	     (CUstream s, CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n,
	      unsigned int flags),
	     (s, edges != NULL, n, flags), (0), update(ST(s), deps, n, flags))
SIM_API(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *mode), (0), (*mode),
	exchange(mode))
