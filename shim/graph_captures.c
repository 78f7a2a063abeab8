/* SPDX-License-Identifier: Apache-2.0 */
/* Captures that are open, and what they have planned so far. */
#include "graph_private.h"
#include "pipeline.h"
#include "thread.h"

static struct cw_graph_capture *captures; /* under cw_graph_lock */

/* The per-thread default stream is another stream in each thread. */
static uint64_t stream_key(CUstream stream, bool per_thread)
{
	if (stream == CU_STREAM_PER_THREAD || (stream == NULL && per_thread)) {
		return (uint64_t)cw_thread_id() << 8 | 2;
	}
	return (uint64_t)(uintptr_t)stream;
}

/* The lock is held; NULL where it would be a guess. */
static struct cw_graph_capture *capture_of(CUstream stream, bool per_thread)
{
	uint64_t key = stream_key(stream, per_thread);
	struct cw_graph_capture *mine = NULL;
	unsigned int count = 0;

	if (captures != NULL && captures->next == NULL) {
		return captures;
	}
	for (struct cw_graph_capture *at = captures; at != NULL; at = at->next) {
		if (at->stream == key) {
			return at;
		}
		if (at->thread == cw_thread_id()) {
			mine = at;
			count++;
		}
	}
	return count == 1 ? mine : NULL;
}

static struct cw_graph *graph_of_capture(struct cw_graph_capture *capture)
{
	if (capture == NULL) {
		return NULL;
	}
	if (capture->into != NULL) {
		return cw_graph_find_or_make(capture->into);
	}
	if (capture->graph == NULL) {
		capture->graph = cw_graph_new(NULL);
	}
	return capture->graph;
}

void cw_graph_captured(CUstream stream, bool per_thread, const struct cw_graph_step *step)
{
	bool done;

	cw_lock_acquire(&cw_graph_lock);
	done = cw_graph_add_alloc(graph_of_capture(capture_of(stream, per_thread)), NULL, step);
	cw_lock_release(&cw_graph_lock);
	if (!done) {
		cw_count_untracked_allocation();
	}
}

void cw_graph_captured_free(CUstream stream, bool per_thread, uint64_t pointer)
{
	cw_lock_acquire(&cw_graph_lock);
	(void)cw_graph_add_free(graph_of_capture(capture_of(stream, per_thread)), NULL, pointer);
	cw_lock_release(&cw_graph_lock);
}

void cw_graph_capture_begun(CUstream stream, bool per_thread, CUgraph graph)
{
	struct cw_graph_capture *capture;

	cw_lock_acquire(&cw_graph_lock);
	capture = cw_graph_take_cell();
	if (capture != NULL) {
		capture->stream = stream_key(stream, per_thread);
		capture->thread = cw_thread_id();
		capture->into = graph;
		capture->next = captures;
		captures = capture;
	}
	cw_lock_release(&cw_graph_lock);
}

void cw_graph_capture_ended(CUstream stream, bool per_thread, CUgraph graph)
{
	uint64_t key = stream_key(stream, per_thread);
	struct cw_graph_capture **at = &captures;
	struct cw_graph_capture *ended;

	cw_lock_acquire(&cw_graph_lock);
	while (*at != NULL && (*at)->stream != key) {
		at = &(*at)->next;
	}
	ended = *at;
	if (ended != NULL) {
		*at = ended->next;
		/* What went into a graph that exists is in it, after a failure too. GPU? */
		if (ended->graph != NULL && graph != NULL) {
			cw_graph_set_handle(ended->graph, graph);
		} else if (ended->graph != NULL) {
			cw_graph_unuse(ended->graph);
		}
		cw_graph_give_cell(ended);
	}
	cw_lock_release(&cw_graph_lock);
}

void cw_graph_captures_postfork_child(void)
{
	captures = NULL;
}
