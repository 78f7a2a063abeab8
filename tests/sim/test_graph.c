/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs with memory nodes, by value. */
#include "test.h"

#define K64 65536ULL

static CUcontext ctx;
static CUstream s;

static int setup(void **state)
{
	(void)state;
	return cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&ctx, NULL, 0, 0) != CUDA_SUCCESS ||
	       cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
}

static CUDA_MEM_ALLOC_NODE_PARAMS alloc_params(int dev, size_t bytes)
{
	return (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev}},
		.bytesize = bytes};
}

static cuuint64_t gauge(CUgraphMem_attribute a)
{
	cuuint64_t v = 0;

	OK(cuDeviceGetGraphMemAttribute(0, a, &v));
	return v;
}

static void test_alloc_and_free_nodes(void **state)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = alloc_params(0, K64), back;
	CUgraphNode a, f, none;
	CUgraphExec exec, second;
	CUgraph g, copy;
	CUdeviceptr d = 0;
	cuuint64_t zero = 0;

	(void)state;
	OK(cuGraphCreate(&g, 0));
	OK(cuGraphAddMemAllocNode(&a, g, NULL, 0, &p));
	assert_int_not_equal(p.dptr, 0);
	assert_int_equal(D_USED(0), 0);
	OK(cuGraphMemAllocNodeGetParams(a, &back));
	assert_true(back.dptr == p.dptr && back.bytesize == K64);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&f, g, &a, 1, p.dptr + 512));
	OK(cuGraphAddMemFreeNode(&f, g, &a, 1, p.dptr));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&none, g, &a, 1, p.dptr));
	OK(cuGraphMemFreeNodeGetParams(f, &d));
	assert_int_equal(d, p.dptr);
	FAILS(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&copy, g));
	FAILS(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(f));
	OK(cuGraphInstantiate(&exec, g, 0));
	FAILS(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiate(&second, g, 0));
	OK(cuGraphUpload(exec, s));
	OK(cuGraphLaunch(exec, s));
	OK(cuGraphLaunch(exec, s));
	assert_int_equal(D_USED(0), 0);
	assert_int_equal(gauge(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), K64);
	assert_int_equal(gauge(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), K64);
	assert_int_equal(cuweir_sim_free(0), 1024 * MiB - K64);
	OK(cuDeviceGraphMemTrim(0));
	assert_int_equal(cuweir_sim_free(0), 1024 * MiB);
	OK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
	assert_int_equal(gauge(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 0);
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(g));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(p.dptr));
}

/* C-86, C-89: unfreed memory stops the next launch, or goes with it; it outlives the graph. */
static void test_unfreed(void **state)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	CUgraphExec exec;
	CUgraphNode a;
	CUgraph g;

	(void)state;
	p.alloc.poolProps = alloc_params(0, 0).poolProps;
	p.alloc.bytesize = 5 * MiB;
	OK(cuGraphCreate(&g, 0));
	OK(cuGraphAddNode(&a, g, NULL, NULL, 0, &p));
	OK(cuGraphInstantiate(&exec, g, 0));
	OK(cuGraphLaunch(exec, s));
	assert_int_equal(D_USED(0), 5 * MiB);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, s));
	assert_int_equal(D_USED(0), 5 * MiB);
	OK(cuMemFree(p.alloc.dptr));
	assert_int_equal(D_USED(0), 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphInstantiate(&exec, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	OK(cuGraphLaunch(exec, s));
	OK(cuGraphLaunch(exec, s));
	assert_int_equal(D_USED(0), 5 * MiB);
	assert_int_equal(cuweir_sim_live(0, CUWEIR_SIM_DEVICE), 1);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(g));
	assert_int_equal(D_USED(0), 5 * MiB);
	OK(cuMemFreeAsync(p.alloc.dptr, s));
	assert_int_equal(D_USED(0), 0);
	OK(cuDeviceGraphMemTrim(0));
}

/* A launch that runs out of memory half way leaves nothing behind. */
static void test_out_of_memory(void **state)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = alloc_params(0, 600 * MiB), q = p;
	CUgraphNode a, b;
	CUgraphExec exec;
	CUgraph g;

	(void)state;
	OK(cuGraphCreate(&g, 0));
	OK(cuGraphAddMemAllocNode(&a, g, NULL, 0, &p));
	OK(cuGraphAddMemAllocNode(&b, g, NULL, 0, &q));
	OK(cuGraphInstantiate(&exec, g, 0));
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuGraphLaunch(exec, s));
	assert_int_equal(D_USED(0), 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(g));
	OK(cuDeviceGraphMemTrim(0));
	assert_int_equal(cuweir_sim_free(0), 1024 * MiB);
}

static void test_child_graphs(void **state)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = alloc_params(0, K64);
	CUgraphNodeParams child = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
	CUgraphNode a, c, e;
	CUgraphExec exec;
	CUgraph outer, inner;

	(void)state;
	OK(cuGraphCreate(&outer, 0));
	OK(cuGraphCreate(&inner, 0));
	OK(cuGraphAddMemAllocNode(&a, inner, NULL, 0, &p));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddChildGraphNode(&c, outer, NULL, 0, inner));
	child.graph.graph = inner;
	child.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	OK(cuGraphAddNode(&c, outer, NULL, NULL, 0, &child));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(inner));
	OK(cuGraphAddEmptyNode(&e, outer, &c, 1));
	OK(cuGraphInstantiate(&exec, outer, 0));
	OK(cuGraphLaunch(exec, s));
	assert_int_equal(D_USED(0), K64);
	OK(cuMemFreeAsync(p.dptr, s));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(outer));
	assert_int_equal(D_USED(0), 0);
}

static void test_copies_and_update(void **state)
{
	CUDA_MEMSET_NODE_PARAMS set = {.value = 7, .elementSize = 1, .width = 16, .height = 1};
	CUgraphExecUpdateResultInfo info;
	CUgraphNode n, m, from[4], to[4];
	CUgraphExec exec;
	CUgraph g, h;
	CUdeviceptr p;
	unsigned char byte = 0;
	size_t count = 4;

	(void)state;
	OK(cuMemAlloc(&p, 16));
	set.dst = p;
	OK(cuGraphCreate(&g, 0));
	OK(cuGraphAddMemsetNode(&n, g, NULL, 0, &set, ctx));
	OK(cuGraphAddEmptyNode(&m, g, &n, 1));
	OK(cuGraphGetEdges(g, from, to, NULL, &count));
	assert_true(count == 1 && from[0] == n && to[0] == m);
	OK(cuGraphInstantiate(&exec, g, 0));
	OK(cuGraphClone(&h, g));
	OK(cuGraphDestroy(g));
	OK(cuGraphLaunch(exec, s)); /* an executable graph needs its graph no more */
	OK(cuMemcpyDtoH(&byte, p + 15, 1));
	assert_int_equal(byte, 7);
	OK(cuGraphExecUpdate(exec, h, &info));
	assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	OK(cuGraphGetNodes(h, from, &count));
	OK(cuGraphDestroyNode(from[0]));
	FAILS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, h, &info));
	assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphDestroy(h));
	OK(cuGraphLaunch(exec, s));
	OK(cuGraphExecDestroy(exec));
	OK(cuMemFree(p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alloc_and_free_nodes),
		cmocka_unit_test(test_unfreed),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_child_graphs),
		cmocka_unit_test(test_copies_and_update),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
