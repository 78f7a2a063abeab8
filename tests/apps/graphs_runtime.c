/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime as graphs.c's way in: graphs are made by captures. */
#include "apps.h"
#include "graphs.h"

#include <cuda_runtime_api.h>

static int start(const char *how)
{
	(void)how;
	return (int)cudaSetDevice(0);
}

static int make_stream(CUstream *stream)
{
	return (int)cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
}

static int begin(CUstream stream)
{
	return (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
}

static int create(CUgraph *graph)
{
	return (int)cudaGraphCreate(graph, 0);
}

static int begin_to_graph(CUstream stream, CUgraph graph)
{
	return (int)cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0,
						  cudaStreamCaptureModeThreadLocal);
}

static int add_alloc(CUgraph graph, CUdeviceptr *p, size_t size, int device)
{
	struct cudaMemAllocNodeParams params = {
		.poolProps = { .allocType = cudaMemAllocationTypePinned,
			       .location = { .type = cudaMemLocationTypeDevice, .id = device } },
		.bytesize = size,
	};
	cudaGraphNode_t node;
	cudaError_t status = cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params);

	*p = (CUdeviceptr)params.dptr;
	return (int)status;
}

static int end(CUstream stream, CUgraph *graph)
{
	return (int)cudaStreamEndCapture(stream, graph);
}

static int alloc_async(CUdeviceptr *p, size_t size, CUstream stream)
{
	return (int)cudaMallocAsync((void **)p, size, stream);
}

static int free_async(CUdeviceptr p, CUstream stream)
{
	return (int)cudaFreeAsync((void *)p, stream);
}

static int mem_free(CUdeviceptr p)
{
	return (int)cudaFree((void *)p);
}

static int instantiate(CUgraphExec *exec, CUgraph graph, bool auto_free)
{
	return (int)cudaGraphInstantiate(
		exec, graph, auto_free ? cudaGraphInstantiateFlagAutoFreeOnLaunch : 0);
}

static int launch(CUgraphExec exec, CUstream stream)
{
	return (int)cudaGraphLaunch(exec, stream);
}

static int exec_destroy(CUgraphExec exec)
{
	return (int)cudaGraphExecDestroy(exec);
}

static int graph_destroy(CUgraph graph)
{
	return (int)cudaGraphDestroy(graph);
}

static int info(size_t *free_bytes, size_t *total_bytes)
{
	return (int)cudaMemGetInfo(free_bytes, total_bytes);
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
};
