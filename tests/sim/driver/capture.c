/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: who captures, what is forbidden meanwhile (C-80 to C-84), how streams join. */
#include "internal.h"

_Atomic unsigned int sim_open_captures;
static struct sim_capture *captures; /* under sim_lock */

void sim_capture_break(struct sim_capture *c)
{
	atomic_store(&c->invalid, true);
}

/* The capture a stream takes part in; NULL, and 901 as the error, where it has been broken. */
struct sim_capture *sim_capture_of(struct sim_stream *s, CUresult *ret_error)
{
	struct sim_capture *c = atomic_load_explicit(&s->capture, memory_order_acquire);

	if (c != NULL && atomic_load(&c->invalid)) {
		*ret_error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		return NULL;
	}
	return c;
}

CUresult sim_unsafe_slow(void)
{
	const struct sim_thread *t = sim_thread_self();
	CUresult r = CUDA_SUCCESS;

	if (t->mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&sim_lock);
	for (struct sim_capture *c = captures; c != NULL; c = c->next) {
		bool offends = c->thread == t->id
				       ? c->mode != CU_STREAM_CAPTURE_MODE_RELAXED
				       : c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
						 t->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;

		if (offends) {
			sim_capture_break(c);
			r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

/* CUWEIR_SIM_STRICT_CAPTURE: any call but the few allowed breaks every open capture. */
CUresult sim_capture_strict(void)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&sim_lock);
	for (struct sim_capture *c = captures; c != NULL; c = c->next) {
		sim_capture_break(c);
		r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

static CUresult break_in(struct sim_ctx *ctx, bool blocking_only, CUresult code)
{
	CUresult r = CUDA_SUCCESS;

	if (atomic_load(&sim_open_captures) == 0) {
		return r;
	}
	pthread_mutex_lock(&sim_lock);
	for (struct sim_stream *s = ctx->streams; s != NULL; s = s->next) {
		struct sim_capture *c = atomic_load(&s->capture);

		if (c != NULL && !(blocking_only && (s->flags & CU_STREAM_NON_BLOCKING) != 0)) {
			sim_capture_break(c);
			r = code;
		}
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult sim_capture_legacy(struct sim_ctx *ctx)
{
	return break_in(ctx, true, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUresult sim_capture_sync(struct sim_ctx *ctx)
{
	return break_in(ctx, false, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

/* A node after everything that the stream has captured so far. */
struct sim_node *sim_capture_node(struct sim_stream *s, CUgraphNodeType type)
{
	struct sim_capture *c;
	struct sim_node *n = NULL;

	pthread_mutex_lock(&sim_lock);
	c = atomic_load(&s->capture);
	if (c != NULL) {
		n = sim_node_new(c->graph, type);
	}
	if (n != NULL) {
		n->n_deps = s->n_deps;
		for (size_t i = 0; i < s->n_deps; i++) {
			n->deps[i] = s->deps[i];
		}
		s->n_deps = 1;
		s->deps[0] = (CUgraphNode)n;
		s->capture_seq++;
	}
	pthread_mutex_unlock(&sim_lock);
	return n;
}

void sim_capture_record(struct sim_stream *s, struct sim_event *e)
{
	struct sim_capture *c;

	pthread_mutex_lock(&sim_lock);
	c = atomic_load(&s->capture);
	if (c != NULL) {
		e->capture_id = c->obj.id;
		e->capture_seq = s->capture_seq;
		e->capture_stream = s;
		e->n_deps = s->n_deps;
		for (size_t i = 0; i < s->n_deps; i++) {
			e->deps[i] = s->deps[i];
		}
	}
	pthread_mutex_unlock(&sim_lock);
}

static void enter(struct sim_stream *s, struct sim_capture *c, uint64_t seq)
{
	s->n_deps = 0;
	s->capture_seq = seq;
	s->joined_seq = 0;
	s->next_member = c->members;
	c->members = s;
	atomic_store_explicit(&s->capture, c, memory_order_release);
}

/* sim_lock is held. */
void sim_capture_leave(struct sim_stream *s)
{
	struct sim_capture *c = atomic_load(&s->capture);
	struct sim_stream **p = c != NULL ? &c->members : NULL;

	while (p != NULL && *p != s) {
		p = &(*p)->next_member;
	}
	if (p != NULL) {
		*p = s->next_member;
		atomic_store(&s->capture, NULL);
	}
}

static void join(struct sim_stream *s, struct sim_capture *c, struct sim_event *e)
{
	if (atomic_load(&s->capture) == NULL) {
		enter(s, c, 1); /* 1: work of a forked stream has to come back */
	}
	for (size_t i = 0; i < e->n_deps && s->n_deps < SIM_MAX_DEPS; i++) {
		bool have = false;

		for (size_t k = 0; k < s->n_deps; k++) {
			have = have || s->deps[k] == e->deps[i];
		}
		if (!have) {
			s->deps[s->n_deps++] = e->deps[i];
		}
	}
	if (e->capture_stream != s && e->capture_seq > e->capture_stream->joined_seq) {
		e->capture_stream->joined_seq = e->capture_seq;
	}
}

CUresult sim_capture_wait(struct sim_stream *s, struct sim_event *e)
{
	struct sim_capture *mine, *c;
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&sim_lock);
	mine = atomic_load(&s->capture);
	for (c = captures; c != NULL && c->obj.id != e->capture_id; c = c->next) {
	}
	if (mine != NULL && atomic_load(&mine->invalid)) {
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else if (e->capture_id == 0) {
		if (mine != NULL && e->recorded) {
			sim_capture_break(mine);
			r = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
		}
	} else if (c == NULL) {
		r = CUDA_ERROR_CAPTURED_EVENT; /* its capture is over. GPU? */
	} else if (atomic_load(&c->invalid)) {
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else if (s->is_default) {
		sim_capture_break(c);
		r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	} else if (mine != NULL && mine != c) {
		sim_capture_break(mine);
		sim_capture_break(c);
		r = CUDA_ERROR_STREAM_CAPTURE_MERGE;
	} else {
		join(s, c, e);
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult sim_capture_begin(CUstream hs, bool per_thread, CUstreamCaptureMode mode,
			   struct sim_graph *into)
{
	struct sim_stream *s;
	struct sim_capture *c;
	CUresult r = sim_stream_get(hs, per_thread, &s);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if ((unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (s->is_default) {
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_lock(&sim_lock);
	if (atomic_load(&s->capture) != NULL) {
		pthread_mutex_unlock(&sim_lock);
		return CUDA_ERROR_ILLEGAL_STATE;
	}
	c = sim_obj_new(SIM_CAPTURE);
	if (c != NULL) {
		c->graph = into != NULL ? into : sim_graph_new();
		c->own_graph = into == NULL;
	}
	if (c == NULL || c->graph == NULL) {
		pthread_mutex_unlock(&sim_lock);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	c->mode = mode;
	c->thread = sim_thread_self()->id;
	c->origin = s;
	c->next = captures;
	if (c->next != NULL) {
		c->next->prev = c;
	}
	captures = c;
	enter(s, c, 0);
	atomic_fetch_add(&sim_open_captures, 1);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

/* Every stream of the capture leaves it. False if one of them was never joined back. */
static bool leave(struct sim_capture *c)
{
	bool joined = true;

	while (c->members != NULL) {
		struct sim_stream *s = c->members;

		joined = joined && (s == c->origin || s->joined_seq >= s->capture_seq);
		sim_capture_leave(s);
	}
	if (c->next != NULL) {
		c->next->prev = c->prev;
	}
	if (c->prev != NULL) {
		c->prev->next = c->next;
	} else {
		captures = c->next;
	}
	atomic_fetch_sub(&sim_open_captures, 1);
	return joined;
}

CUresult sim_capture_end(CUstream hs, bool per_thread, CUgraph *ret)
{
	struct sim_stream *s;
	struct sim_capture *c;
	CUresult r = sim_stream_get(hs, per_thread, &s);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&sim_lock);
	c = atomic_load(&s->capture);
	if (c == NULL) {
		r = CUDA_ERROR_ILLEGAL_STATE;
	} else if (ret == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else if (c->origin != s) {
		sim_capture_break(c);
		r = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	} else if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		   c->thread != sim_thread_self()->id) {
		r = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	} else {
		bool joined = leave(c);

		r = atomic_load(&c->invalid) ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
		    : joined		     ? CUDA_SUCCESS
					     : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
		if (r != CUDA_SUCCESS && c->own_graph) {
			sim_graph_drop(c->graph);
		}
		*ret = r == CUDA_SUCCESS ? (CUgraph)c->graph : NULL;
		sim_obj_free(&c->obj);
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

/* The stream goes away: its capture can never be ended if it began there. sim_lock is held. */
void sim_capture_lost(struct sim_stream *s)
{
	struct sim_capture *c = atomic_load(&s->capture);

	if (c != NULL && c->origin == s) {
		leave(c);
		if (c->own_graph) {
			sim_graph_drop(c->graph);
		}
		sim_obj_free(&c->obj);
	} else {
		sim_capture_leave(s);
	}
}
