/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, capture. */
#include "runtime.h"

static CUstreamCallback callback(cudaStreamCallback_t fn)
{
	return (CUstreamCallback)(void (*)(void))fn; /* they differ in the enumeration's name */
}

RT_API(cudaDeviceSynchronize, (void), rt_drv.f_cuCtxSynchronize())
RT_API(cudaStreamCreate, (cudaStream_t *s), rt_drv.f_cuStreamCreateWithPriority(s, 0, 0))
RT_API(cudaStreamCreateWithFlags, (cudaStream_t *s, unsigned int flags),
       rt_drv.f_cuStreamCreateWithPriority(s, flags, 0))
RT_API(cudaStreamCreateWithPriority, (cudaStream_t *s, unsigned int flags, int priority),
       rt_drv.f_cuStreamCreateWithPriority(s, flags, priority))
RT_API(cudaStreamDestroy, (cudaStream_t s), rt_drv.f_cuStreamDestroy(s))
RT_API_PTSZ(cudaStreamSynchronize, (cudaStream_t s), PT(cuStreamSynchronize)(s))
RT_API_PTSZ(cudaStreamQuery, (cudaStream_t s), PT(cuStreamQuery)(s))
RT_API_PTSZ(cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t e, unsigned int flags),
	    PT(cuStreamWaitEvent)(s, e, flags))
RT_API_PTSZ(cudaStreamGetFlags, (cudaStream_t s, unsigned int *flags),
	    PT(cuStreamGetFlags)(s, flags))
RT_API_PTSZ(cudaStreamGetPriority, (cudaStream_t s, int *priority),
	    PT(cuStreamGetPriority)(s, priority))
RT_API_PTSZ(cudaStreamGetId, (cudaStream_t s, unsigned long long *id), PT(cuStreamGetId)(s, id))
RT_API_PTSZ(cudaLaunchHostFunc, (cudaStream_t s, cudaHostFn_t fn, void *data),
	    PT(cuLaunchHostFunc)(s, fn, data))
RT_API_PTSZ(cudaStreamAddCallback,
	    (cudaStream_t s, cudaStreamCallback_t fn, void *data, unsigned int flags),
	    PT(cuStreamAddCallback)(s, callback(fn), data, flags))
RT_API(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
       rt_drv.f_cuCtxGetStreamPriorityRange(least, greatest))
RT_API(cudaEventCreate, (cudaEvent_t *e), rt_drv.f_cuEventCreate(e, 0))
RT_API(cudaEventCreateWithFlags, (cudaEvent_t *e, unsigned int flags),
       rt_drv.f_cuEventCreate(e, flags))
RT_API(cudaEventDestroy, (cudaEvent_t e), rt_drv.f_cuEventDestroy(e))
RT_API_PTSZ(cudaEventRecord, (cudaEvent_t e, cudaStream_t s), PT(cuEventRecord)(e, s))
RT_API_PTSZ(cudaEventRecordWithFlags, (cudaEvent_t e, cudaStream_t s, unsigned int flags),
	    PT(cuEventRecordWithFlags)(e, s, flags))
RT_API(cudaEventQuery, (cudaEvent_t e), rt_drv.f_cuEventQuery(e))
RT_API(cudaEventSynchronize, (cudaEvent_t e), rt_drv.f_cuEventSynchronize(e))
RT_API(cudaEventElapsedTime, (float *ms, cudaEvent_t a, cudaEvent_t b),
       rt_drv.f_cuEventElapsedTime(ms, a, b))
RT_API_PTSZ(cudaStreamBeginCapture, (cudaStream_t s, enum cudaStreamCaptureMode mode),
	    PT(cuStreamBeginCapture)(s, (CUstreamCaptureMode)mode))
RT_API_PTSZ(cudaStreamBeginCaptureToGraph,
	    (cudaStream_t s, cudaGraph_t graph, const cudaGraphNode_t *deps,
	     const cudaGraphEdgeData *data, size_t n, enum cudaStreamCaptureMode mode),
	    PT(cuStreamBeginCaptureToGraph)(s, graph, deps, (const CUgraphEdgeData *)data, n,
					    (CUstreamCaptureMode)mode))
RT_API_PTSZ(cudaStreamEndCapture, (cudaStream_t s, cudaGraph_t *graph),
	    PT(cuStreamEndCapture)(s, graph))
RT_API_PTSZ(cudaStreamIsCapturing, (cudaStream_t s, enum cudaStreamCaptureStatus *status),
	    PT(cuStreamIsCapturing)(s, (CUstreamCaptureStatus *)status))
RT_API_PTSZ(cudaStreamGetCaptureInfo,
	    (cudaStream_t s, enum cudaStreamCaptureStatus *status, unsigned long long *id,
	     cudaGraph_t *graph, const cudaGraphNode_t **deps, const cudaGraphEdgeData **edges,
	     size_t *n),
	    PT(cuStreamGetCaptureInfo)(s, (CUstreamCaptureStatus *)status, (cuuint64_t *)id, graph,
				       deps, (const CUgraphEdgeData **)(uintptr_t)edges, n))
RT_API_PTSZ(cudaStreamUpdateCaptureDependencies,
	    (cudaStream_t s, cudaGraphNode_t *deps, const cudaGraphEdgeData *edges, size_t n,
	     unsigned int flags),
	    PT(cuStreamUpdateCaptureDependencies)(s, deps, (const CUgraphEdgeData *)edges, n,
						  flags))
RT_API(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode),
       rt_drv.f_cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode))
