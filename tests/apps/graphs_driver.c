/* SPDX-License-Identifier: Apache-2.0 */
/* The driver API as graphs.c's way in; see way_driver.c for the forms of it. */
#include "apps.h"
#include "graphs.h"
#include "lookup.h"

#undef cuMemFree
#undef cuMemGetInfo
#undef cuStreamBeginCapture
#undef cuGraphAddNode
#undef cuGraphExecUpdate
#undef cuGraphInstantiate

#define CALLS(CALL)                                                                          \
	CALL(cuInit, cuInit, 2000, 0, (unsigned int))                                        \
	CALL(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, 0,                    \
	     (CUcontext *, CUdevice))                                                        \
	CALL(cuCtxSetCurrent, cuCtxSetCurrent, 4000, 0, (CUcontext))                         \
	CALL(cuStreamCreate, cuStreamCreate, 2000, 0, (CUstream *, unsigned int))            \
	CALL(cuStreamBeginCapture_v2, cuStreamBeginCapture, 10010, 0,                        \
	     (CUstream, CUstreamCaptureMode))                                                \
	CALL(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, 12030, 0,             \
	     (CUstream, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,       \
	      CUstreamCaptureMode))                                                          \
	CALL(cuStreamEndCapture, cuStreamEndCapture, 10000, 0, (CUstream, CUgraph *))        \
	CALL(cuMemAllocAsync, cuMemAllocAsync, 11020, 0, (CUdeviceptr *, size_t, CUstream))  \
	CALL(cuMemFreeAsync, cuMemFreeAsync, 11020, 0, (CUdeviceptr, CUstream))              \
	CALL(cuMemFree_v2, cuMemFree, 3020, 0, (CUdeviceptr))                                \
	CALL(cuMemGetInfo_v2, cuMemGetInfo, 3020, 0, (size_t *, size_t *))                   \
	CALL(cuGraphCreate, cuGraphCreate, 10000, 0, (CUgraph *, unsigned int))              \
	CALL(cuGraphDestroy, cuGraphDestroy, 10000, 0, (CUgraph))                            \
	CALL(cuGraphClone, cuGraphClone, 10000, 0, (CUgraph *, CUgraph))                     \
	CALL(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040, 0,                       \
	     (CUgraphNode *, CUgraph, const CUgraphNode *, size_t,                           \
	      CUDA_MEM_ALLOC_NODE_PARAMS *))                                                 \
	CALL(cuGraphAddMemFreeNode, cuGraphAddMemFreeNode, 11040, 0,                         \
	     (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr))             \
	CALL(cuGraphAddNode, cuGraphAddNode, 12020, 0,                                       \
	     (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraphNodeParams *))     \
	CALL(cuGraphAddNode_v2, cuGraphAddNode, 12030, 0,                                    \
	     (CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,  \
	      CUgraphNodeParams *))                                                          \
	CALL(cuGraphInstantiate, cuGraphInstantiate, 10000, 0,                               \
	     (CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t))                        \
	CALL(cuGraphInstantiate_v2, cuGraphInstantiate, 11000, 0,                            \
	     (CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t))                        \
	CALL(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, 0,             \
	     (CUgraphExec *, CUgraph, unsigned long long))                                   \
	CALL(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000, 0,           \
	     (CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *))                      \
	CALL(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams, 12000, 2,      \
	     (CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *))                      \
	CALL(cuGraphExecUpdate, cuGraphExecUpdate, 10020, 0,                                 \
	     (CUgraphExec, CUgraph, CUgraphNode *, CUgraphExecUpdateResult *))               \
	CALL(cuGraphExecUpdate_v2, cuGraphExecUpdate, 12000, 0,                              \
	     (CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *))                          \
	CALL(cuGraphExecDestroy, cuGraphExecDestroy, 10000, 0, (CUgraphExec))                \
	CALL(cuGraphUpload, cuGraphUpload, 11010, 0, (CUgraphExec, CUstream))                \
	CALL(cuGraphLaunch, cuGraphLaunch, 10000, 0, (CUgraphExec, CUstream))                \
	CALL(cuGraphLaunch_ptsz, cuGraphLaunch, 10000, 2, (CUgraphExec, CUstream))           \
	CALL(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim, 11040, 0, (CUdevice))

static struct {
#define MEMBER(symbol, base, version, flags, parameters) CUresult(*symbol) parameters;
	CALLS(MEMBER)
} driver;

#ifdef WAY_LINKED

#define DECLARE(symbol, base, version, flags, parameters)                                    \
	CUresult linked_##symbol parameters __asm__(#symbol);
CALLS(DECLARE)

static void find_functions(const char *how)
{
	(void)how;
#define TAKE(symbol, base, version, flags, parameters) driver.symbol = linked_##symbol;
	CALLS(TAKE)
}

#else

static void find_functions(const char *how)
{
#define TAKE(symbol, base, version, flags, parameters)                                       \
	*(void **)&driver.symbol = take(how, #symbol, #base, version, flags);
	CALLS(TAKE)
}

#endif

/* NULL: a thread of its own, where the functions are known already. */
static int start(const char *how)
{
	CUcontext context;

	if (how != NULL) {
		find_functions(how);
		CHECK(driver.cuInit(0));
	}
	CHECK(driver.cuDevicePrimaryCtxRetain(&context, 0));
	return (int)driver.cuCtxSetCurrent(context);
}

static int make_stream(CUstream *stream)
{
	return (int)driver.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
}

static int begin(CUstream stream)
{
	return (int)driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

static int begin_to_graph(CUstream stream, CUgraph graph)
{
	return (int)driver.cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0,
						       CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

static int end(CUstream stream, CUgraph *graph)
{
	return (int)driver.cuStreamEndCapture(stream, graph);
}

static int alloc_async(CUdeviceptr *p, size_t size, CUstream stream)
{
	return (int)driver.cuMemAllocAsync(p, size, stream);
}

static int free_async(CUdeviceptr p, CUstream stream)
{
	return (int)driver.cuMemFreeAsync(p, stream);
}

static int mem_free(CUdeviceptr p)
{
	return (int)driver.cuMemFree_v2(p);
}

static int instantiate(CUgraphExec *exec, CUgraph graph, bool auto_free)
{
	return (int)driver.cuGraphInstantiateWithFlags(
		exec, graph, auto_free ? CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH : 0);
}

static int instantiate_form(CUgraphExec *exec, CUgraph graph, int form)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {
		.flags = form == 5 ? CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH : 0
	};

	switch (form) {
	case 0:
		return (int)driver.cuGraphInstantiate(exec, graph, NULL, NULL, 0);
	case 1:
		return (int)driver.cuGraphInstantiate_v2(exec, graph, NULL, NULL, 0);
	case 2:
		return (int)driver.cuGraphInstantiateWithFlags(exec, graph, 0);
	case 3:
		return (int)driver.cuGraphInstantiateWithParams(exec, graph, &params);
	default:
		return (int)driver.cuGraphInstantiateWithParams_ptsz(exec, graph, &params);
	}
}

static int update(CUgraphExec exec, CUgraph graph, bool first_version)
{
	CUgraphExecUpdateResultInfo info;
	CUgraphExecUpdateResult result;
	CUgraphNode node;

	return (int)(first_version ? driver.cuGraphExecUpdate(exec, graph, &node, &result)
				   : driver.cuGraphExecUpdate_v2(exec, graph, &info));
}

static int launch(CUgraphExec exec, CUstream stream)
{
	return (int)driver.cuGraphLaunch(exec, stream);
}

static int launch_per_thread(CUgraphExec exec)
{
	return (int)driver.cuGraphLaunch_ptsz(exec, NULL);
}

static int upload(CUgraphExec exec, CUstream stream)
{
	return (int)driver.cuGraphUpload(exec, stream);
}

static int exec_destroy(CUgraphExec exec)
{
	return (int)driver.cuGraphExecDestroy(exec);
}

static int graph_destroy(CUgraph graph)
{
	return (int)driver.cuGraphDestroy(graph);
}

static int info(size_t *free_bytes, size_t *total_bytes)
{
	return (int)driver.cuMemGetInfo_v2(free_bytes, total_bytes);
}

static int create(CUgraph *graph)
{
	return (int)driver.cuGraphCreate(graph, 0);
}

static CUDA_MEM_ALLOC_NODE_PARAMS alloc_params(size_t size, int device)
{
	return (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			       .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device } },
		.bytesize = size,
	};
}

static int add_alloc(CUgraph graph, CUdeviceptr *p, size_t size, int device)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(size, device);
	CUgraphNode node;
	CUresult status = driver.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params);

	*p = params.dptr;
	return (int)status;
}

static int add_free(CUgraph graph, CUdeviceptr p)
{
	CUgraphNode node;

	return (int)driver.cuGraphAddMemFreeNode(&node, graph, NULL, 0, p);
}

static int add_any(CUgraph graph, CUgraphNodeParams *params, bool first_version)
{
	CUgraphNode node;

	return (int)(first_version
			     ? driver.cuGraphAddNode(&node, graph, NULL, 0, params)
			     : driver.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, params));
}

static int add_any_alloc(CUgraph graph, CUdeviceptr *p, size_t size, bool first_version)
{
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = alloc_params(size, 0);
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
	int status;

	memcpy(&params.alloc, &alloc, sizeof(alloc));
	status = add_any(graph, &params, first_version);
	*p = params.alloc.dptr;
	return status;
}

static int add_any_free(CUgraph graph, CUdeviceptr p)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE };

	params.free.dptr = p;
	return add_any(graph, &params, false);
}

static int add_child(CUgraph graph, CUgraph child, bool move)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_GRAPH };

	params.graph.graph = child;
	params.graph.ownership = move ? CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE
				      : CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
	return add_any(graph, &params, false);
}

static int clone(CUgraph *copy, CUgraph graph)
{
	return (int)driver.cuGraphClone(copy, graph);
}

static int trim(int device)
{
	return (int)driver.cuDeviceGraphMemTrim(device);
}

const struct graph_way graph_way = {
	.start = start,
	.stream = make_stream,
	.begin = begin,
	.end = end,
	.alloc_async = alloc_async,
	.free_async = free_async,
	.free = mem_free,
	.instantiate = instantiate,
	.launch = launch,
	.exec_destroy = exec_destroy,
	.graph_destroy = graph_destroy,
	.info = info,
	.create = create,
	.begin_to_graph = begin_to_graph,
	.add_alloc = add_alloc,
	.add_free = add_free,
	.add_any_alloc = add_any_alloc,
	.add_any_free = add_any_free,
	.add_child = add_child,
	.clone = clone,
	.instantiate_form = instantiate_form,
	.update = update,
	.upload = upload,
	.launch_per_thread = launch_per_thread,
	.trim = trim,
};
