/* SPDX-License-Identifier: Apache-2.0 */
/* The driver door for streams and captures, which are followed so that the driver need not be
 * asked where a stream belongs and whether a call is only being recorded (D-15). */
#include "bodies.h"
#include "driver_door.h"
#include "driver_stream.h"
#include "graph_books.h"
#include "handlers.h"
#include "wants.h"

typedef CUresult (*create_fn)(CUstream *, unsigned int);
typedef CUresult (*create_priority_fn)(CUstream *, unsigned int, int);
typedef CUresult (*stream_fn)(CUstream);
typedef CUresult (*begin_fn)(CUstream, CUstreamCaptureMode);
typedef CUresult (*begin_to_graph_fn)(CUstream, CUgraph, const CUgraphNode *,
				      const CUgraphEdgeData *, size_t, CUstreamCaptureMode);
typedef CUresult (*end_fn)(CUstream, CUgraph *);

static CUresult heard_created(CUresult result, const CUstream *stream)
{
	if (result == CUDA_SUCCESS && stream != NULL && cw_following()) {
		cw_heard_stream(*stream);
	}
	return result;
}

CUresult cw_stream_create(enum cw_hook_id hook, const void *site, CUstream *stream,
			  unsigned int flags)
{
	create_fn real = (create_fn)cw_real_of(hook);

	(void)site;
	return real != NULL ? heard_created(cw_want_note(hook, real(stream, flags)), stream)
			    : CUDA_ERROR_NOT_FOUND;
}

CUresult cw_stream_create_with_priority(enum cw_hook_id hook, const void *site, CUstream *stream,
					unsigned int flags, int priority)
{
	create_priority_fn real = (create_priority_fn)cw_real_of(hook);

	(void)site;
	return real != NULL ? heard_created(cw_want_note(hook, real(stream, flags, priority)),
					    stream)
			    : CUDA_ERROR_NOT_FOUND;
}

static void tell_stream_ends(CUstream stream)
{
	struct cw_where where;
	uint32_t count = cw_chain_count();

	if (count <= CW_PLACE_NAMED || stream == NULL) {
		return;
	}
	cw_where_of_stream(stream, &where);
	for (uint32_t i = count; i > 0; i--) {
		cw_tell_stream_ended(&cw_chain.policies[i - 1], where.context, stream);
	}
}

void cw_stream_ends(CUstream stream)
{
	if (cw_capture_open()) {
		cw_graph_capture_ended(stream, false, NULL);
	}
	tell_stream_ends(stream);
	cw_heard_stream_end(stream);
}

CUresult cw_stream_destroy(enum cw_hook_id hook, const void *site, CUstream stream)
{
	stream_fn real = (stream_fn)cw_real_of(hook);

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (cw_following()) {
		cw_stream_ends(stream);
	}
	return real(stream);
}

static bool per_thread(enum cw_hook_id hook)
{
	return cw_hooks[hook].stream == CW_PTDS;
}

/*
 * A capture is heard of before the call, so that no other thread asks a question that it
 * forbids; `fresh` is what cw_heard_capture_begin said.
 */
static CUresult heard_begun(CUresult result, bool fresh, CUstream stream, CUgraph into,
			    enum cw_hook_id hook)
{
	if (result == CUDA_SUCCESS) {
		cw_graph_capture_begun(stream, per_thread(hook), into);
	} else if (fresh) {
		cw_heard_capture_end(stream, per_thread(hook));
	}
	return result;
}

CUresult cw_stream_begin_capture_v1(enum cw_hook_id hook, const void *site, CUstream stream)
{
	stream_fn real = (stream_fn)cw_real_of(hook);
	bool fresh;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	fresh = cw_heard_capture_begin(stream, per_thread(hook));
	return heard_begun(real(stream), fresh, stream, NULL, hook);
}

CUresult cw_stream_begin_capture(enum cw_hook_id hook, const void *site, CUstream stream,
				 CUstreamCaptureMode mode)
{
	begin_fn real = (begin_fn)cw_real_of(hook);
	bool fresh;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	fresh = cw_heard_capture_begin(stream, per_thread(hook));
	return heard_begun(real(stream, mode), fresh, stream, NULL, hook);
}

CUresult cw_stream_begin_capture_to_graph(enum cw_hook_id hook, const void *site, CUstream stream,
					  CUgraph graph, const CUgraphNode *deps,
					  const CUgraphEdgeData *data, size_t count,
					  CUstreamCaptureMode mode)
{
	begin_to_graph_fn real = (begin_to_graph_fn)cw_real_of(hook);
	bool fresh;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	fresh = cw_heard_capture_begin(stream, per_thread(hook));
	return heard_begun(real(stream, graph, deps, data, count, mode), fresh, stream, graph,
			   hook);
}

CUresult cw_stream_end_capture(enum cw_hook_id hook, const void *site, CUstream stream,
			       CUgraph *graph)
{
	end_fn real = (end_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(stream, graph);
	if (cw_capture_has_ended(result)) {
		cw_graph_capture_ended(stream, per_thread(hook),
				       result == CUDA_SUCCESS && graph != NULL ? *graph : NULL);
		cw_heard_capture_end(stream, per_thread(hook));
	}
	return result;
}
