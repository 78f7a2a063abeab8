/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime door for streams and captures: followed where no driver door hears the runtime
 * (D-19), so that nothing is done that an open capture forbids (D-15). What such a capture
 * allocates is the graph's, and not counted.
 */
#include "bodies.h"
#include "driver_stream.h"
#include "resolve.h"
#include "runtime_door.h"
#include "where.h"

typedef cudaError_t (*stream_fn)(cudaStream_t);
typedef cudaError_t (*begin_fn)(cudaStream_t, enum cudaStreamCaptureMode);
typedef cudaError_t (*begin_to_graph_fn)(cudaStream_t, cudaGraph_t, const cudaGraphNode_t *,
					 const cudaGraphEdgeData *, size_t,
					 enum cudaStreamCaptureMode);
typedef cudaError_t (*end_fn)(cudaStream_t, cudaGraph_t *);

cudaError_t cw_cuda_stream_destroy(enum cw_hook_id hook, const void *site, cudaStream_t stream)
{
	stream_fn real = (stream_fn)cw_real_runtime(hook, site);

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	if (cw_runtime_is_alone(hook, (void *)real)) {
		cw_stream_ends(stream);
	}
	return real(stream);
}

static bool per_thread(enum cw_hook_id hook)
{
	return hook == CW_HOOK_cudaStreamBeginCapture_ptsz ||
	       hook == CW_HOOK_cudaStreamBeginCaptureToGraph_ptsz ||
	       hook == CW_HOOK_cudaStreamEndCapture_ptsz;
}

/* Heard of before the call, as at the driver door. */
static bool hear_begin(enum cw_hook_id hook, void *real, cudaStream_t stream)
{
	return cw_runtime_is_alone(hook, real) && cw_heard_capture_begin(stream, per_thread(hook));
}

static cudaError_t begun(cudaError_t result, bool fresh, enum cw_hook_id hook, cudaStream_t stream)
{
	if (result != cudaSuccess && fresh) {
		cw_heard_capture_end(stream, per_thread(hook));
	}
	return result;
}

cudaError_t cw_cuda_stream_begin_capture(enum cw_hook_id hook, const void *site,
					 cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	begin_fn real = (begin_fn)cw_real_runtime(hook, site);
	bool fresh;

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	fresh = hear_begin(hook, (void *)real, stream);
	return begun(real(stream, mode), fresh, hook, stream);
}

cudaError_t cw_cuda_stream_begin_capture_to_graph(enum cw_hook_id hook, const void *site,
						  cudaStream_t stream, cudaGraph_t graph,
						  const cudaGraphNode_t *deps,
						  const cudaGraphEdgeData *data, size_t count,
						  enum cudaStreamCaptureMode mode)
{
	begin_to_graph_fn real = (begin_to_graph_fn)cw_real_runtime(hook, site);
	bool fresh;

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	fresh = hear_begin(hook, (void *)real, stream);
	return begun(real(stream, graph, deps, data, count, mode), fresh, hook, stream);
}

cudaError_t cw_cuda_stream_end_capture(enum cw_hook_id hook, const void *site,
				       cudaStream_t stream, cudaGraph_t *graph)
{
	end_fn real = (end_fn)cw_real_runtime(hook, site);
	cudaError_t result;

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	result = real(stream, graph);
	if (cw_capture_open() && cw_runtime_is_alone(hook, (void *)real) &&
	    cw_capture_has_ended((CUresult)result)) {
		cw_heard_capture_end(stream, per_thread(hook));
	}
	return result;
}
