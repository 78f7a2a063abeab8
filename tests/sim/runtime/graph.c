/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs. Structures that the two interfaces share are passed on as they are. */
#include <string.h>

#include "runtime.h"

_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS),
	       "same layout");
_Static_assert(sizeof(struct cudaGraphNodeParams) == sizeof(CUgraphNodeParams), "same layout");
_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS),
	       "same layout");
_Static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo),
	       "same layout");
_Static_assert(offsetof(struct cudaGraphNodeParams, alloc) == offsetof(CUgraphNodeParams, alloc),
	       "same layout");
_Static_assert((int)cudaGraphNodeTypeMemAlloc == (int)CU_GRAPH_NODE_TYPE_MEM_ALLOC, "same numbers");

/* Parameters of kernels, copies and fills are not alike; those nodes are not to be had here. */
static CUresult add_node(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
			 const cudaGraphEdgeData *edges, size_t n, struct cudaGraphNodeParams *p)
{
	if (p == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	switch (p->type) {
	case cudaGraphNodeTypeMemAlloc:
	case cudaGraphNodeTypeMemFree:
	case cudaGraphNodeTypeGraph:
	case cudaGraphNodeTypeEmpty:
	case cudaGraphNodeTypeHost:
		return rt_drv.f_cuGraphAddNode(node, graph, deps,
					       (const CUgraphEdgeData *)(const void *)edges, n,
					       (CUgraphNodeParams *)p);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static CUresult free_params(cudaGraphNode_t node, void *ret)
{
	CUdeviceptr p = 0;
	CUresult r = rt_drv.f_cuGraphMemFreeNodeGetParams(node, ret != NULL ? &p : NULL);

	if (r == CUDA_SUCCESS) {
		*(void **)ret = (void *)(uintptr_t)p;
	}
	return r;
}

RT_API(cudaGraphCreate, (cudaGraph_t *graph, unsigned int flags),
       rt_drv.f_cuGraphCreate(graph, flags))
RT_API(cudaGraphDestroy, (cudaGraph_t graph), rt_drv.f_cuGraphDestroy(graph))
RT_API(cudaGraphClone, (cudaGraph_t *ret, cudaGraph_t graph), rt_drv.f_cuGraphClone(ret, graph))
RT_API(cudaGraphDestroyNode, (cudaGraphNode_t node), rt_drv.f_cuGraphDestroyNode(node))
RT_API(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n),
       rt_drv.f_cuGraphGetNodes(graph, nodes, n))
RT_API(cudaGraphNodeGetType, (cudaGraphNode_t node, enum cudaGraphNodeType *type),
       rt_drv.f_cuGraphNodeGetType(node, (CUgraphNodeType *)type))
RT_API(cudaGraphNodeGetDependencies,
       (cudaGraphNode_t node, cudaGraphNode_t *deps, cudaGraphEdgeData *edges, size_t *n),
       rt_drv.f_cuGraphNodeGetDependencies(node, deps, (CUgraphEdgeData *)edges, n))
RT_API(cudaGraphConditionalHandleCreate,
       (cudaGraphConditionalHandle *handle, cudaGraph_t graph, unsigned int value,
	unsigned int flags),
       rt_drv.f_cuGraphConditionalHandleCreate((CUgraphConditionalHandle *)handle, graph, NULL,
					       value, flags))
RT_API(cudaUserObjectCreate,
       (cudaUserObject_t *object, void *p, cudaHostFn_t destroy, unsigned int count,
	unsigned int flags),
       rt_drv.f_cuUserObjectCreate(object, p, destroy, count, flags))
RT_API(cudaUserObjectRetain, (cudaUserObject_t object, unsigned int count),
       rt_drv.f_cuUserObjectRetain(object, count))
RT_API(cudaUserObjectRelease, (cudaUserObject_t object, unsigned int count),
       rt_drv.f_cuUserObjectRelease(object, count))
RT_API(cudaGraphRetainUserObject,
       (cudaGraph_t graph, cudaUserObject_t object, unsigned int count, unsigned int flags),
       rt_drv.f_cuGraphRetainUserObject(graph, object, count, flags))
RT_API(cudaGraphReleaseUserObject,
       (cudaGraph_t graph, cudaUserObject_t object, unsigned int count),
       rt_drv.f_cuGraphReleaseUserObject(graph, object, count))
RT_API(cudaGraphAddEmptyNode,
       (cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n),
       rt_drv.f_cuGraphAddEmptyNode(node, graph, deps, n))
RT_API(cudaGraphAddChildGraphNode,
       (cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
	cudaGraph_t child),
       rt_drv.f_cuGraphAddChildGraphNode(node, graph, deps, n, child))
RT_API(cudaGraphAddMemAllocNode,
       (cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
	struct cudaMemAllocNodeParams *p),
       rt_drv.f_cuGraphAddMemAllocNode(node, graph, deps, n, (CUDA_MEM_ALLOC_NODE_PARAMS *)p))
RT_API(cudaGraphAddMemFreeNode,
       (cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n, void *p),
       rt_drv.f_cuGraphAddMemFreeNode(node, graph, deps, n, (CUdeviceptr)(uintptr_t)p))
RT_API(cudaGraphMemAllocNodeGetParams, (cudaGraphNode_t node, struct cudaMemAllocNodeParams *p),
       rt_drv.f_cuGraphMemAllocNodeGetParams(node, (CUDA_MEM_ALLOC_NODE_PARAMS *)p))
RT_API(cudaGraphMemFreeNodeGetParams, (cudaGraphNode_t node, void *p), free_params(node, p))
RT_API(cudaGraphAddNode,
       (cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
	const cudaGraphEdgeData *edges, size_t n, struct cudaGraphNodeParams *p),
       add_node(node, graph, deps, edges, n, p))
RT_API(cudaGraphInstantiate, (cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags),
       rt_drv.f_cuGraphInstantiateWithFlags(exec, graph, flags))
RT_API(cudaGraphInstantiateWithFlags,
       (cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags),
       rt_drv.f_cuGraphInstantiateWithFlags(exec, graph, flags))
RT_API_PTSZ(cudaGraphInstantiateWithParams,
	    (cudaGraphExec_t *exec, cudaGraph_t graph, cudaGraphInstantiateParams *p),
	    PT(cuGraphInstantiateWithParams)(exec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)p))
RT_API_PTSZ(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t s), PT(cuGraphUpload)(exec, s))
RT_API_PTSZ(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t s), PT(cuGraphLaunch)(exec, s))
RT_API(cudaGraphExecDestroy, (cudaGraphExec_t exec), rt_drv.f_cuGraphExecDestroy(exec))
RT_API(cudaGraphExecUpdate,
       (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info),
       rt_drv.f_cuGraphExecUpdate(exec, graph, (CUgraphExecUpdateResultInfo *)info))
RT_API(cudaDeviceGraphMemTrim, (int dev), rt_drv.f_cuDeviceGraphMemTrim(dev))
RT_API(cudaDeviceGetGraphMemAttribute,
       (int dev, enum cudaGraphMemAttributeType attr, void *value),
       rt_drv.f_cuDeviceGetGraphMemAttribute(dev, (CUgraphMem_attribute)attr, value))
RT_API(cudaDeviceSetGraphMemAttribute,
       (int dev, enum cudaGraphMemAttributeType attr, void *value),
       rt_drv.f_cuDeviceSetGraphMemAttribute(dev, (CUgraphMem_attribute)attr, value))
