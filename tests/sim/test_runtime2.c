/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated runtime's arrays, graphs, pools and imports; and how it finds the driver. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

/* D-19: the foreign form passes no door at all. First, before any look-up of this program's. */
static void test_lookups(void **state)
{
	void *p = NULL;

	(void)state;
	OK(cudaMalloc(&p, 100));
	assert_int_equal(cuweir_sim_calls("cuMemAlloc_v2"), 1);
#ifdef FOREIGN
	assert_int_equal(cuweir_sim_calls("cuGetProcAddress_v2"), 0);
	assert_int_equal(cuweir_sim_calls("cuGetProcAddress"), 0);
#else
	assert_true(cuweir_sim_calls("cuGetProcAddress_v2") > 100);
#endif
	OK(cudaFree(p));
}

static void test_arrays(void **state)
{
	struct cudaChannelFormatDesc f4 = {32, 32, 32, 32, cudaChannelFormatKindFloat};
	struct cudaChannelFormatDesc rgba = {8, 8, 8, 8, cudaChannelFormatKindUnsigned}, back;
	struct cudaChannelFormatDesc bc1 = {8, 8, 8, 8,
					    cudaChannelFormatKindUnsignedBlockCompressed1};
	struct cudaExtent e = {64, 64, 0}, got;
	unsigned int flags = 9;
	unsigned char in[16] = {1, 2, 3, 4, 5, 6, 7, 8}, out[16] = {0};
	cudaMipmappedArray_t m;
	cudaArray_t a, level;

	(void)state;
	OK(cudaMallocArray(&a, &f4, 100, 50, 0));
	assert_int_equal(cuweir_sim_calls("cuArrayCreate_v2"), 1);
	assert_int_equal(D_USED(0), 80000);
	OK(cudaFreeArray(a));
	OK(cudaFreeArray(NULL));
	OK(cudaMallocArray(&a, &bc1, 10, 10, 0));
	assert_int_equal(D_USED(0), 72);
	OK(cudaFreeArray(a));
	e.depth = 3;
	OK(cudaMalloc3DArray(&a, &rgba, e, cudaArrayLayered));
	assert_int_equal(D_USED(0), 3 * 16384);
	OK(cudaArrayGetInfo(&back, &got, &flags, a));
	assert_true(got.depth == 3 && flags == cudaArrayLayered && back.w == 8 &&
		    back.f == cudaChannelFormatKindUnsigned);
	OK(cudaMemcpy2DToArray(a, 0, 0, in, 8, 8, 2, cudaMemcpyHostToDevice));
	OK(cudaMemcpy2DFromArray(out, 4, a, 4, 0, 4, 1, cudaMemcpyDeviceToHost));
	assert_int_equal(out[0], 5);
	OK(cudaFreeArray(a));
	e.depth = 0;
	OK(cudaMallocMipmappedArray(&m, &rgba, e, 7, 0));
	assert_int_equal(D_USED(0), 21844);
	OK(cudaGetMipmappedArrayLevel(&level, m, 3));
	OK(cudaFreeMipmappedArray(m));
	assert_int_equal(D_USED(0), 0);
}

static void test_graphs(void **state)
{
	struct cudaMemAllocNodeParams p = {
		.poolProps = {.allocType = cudaMemAllocationTypePinned,
			      .location = {.type = cudaMemLocationTypeDevice}},
		.bytesize = 4096};
	cudaGraphExec_t exec;
	cudaGraphNode_t a, f;
	cudaStream_t s;
	cudaGraph_t g;

	(void)state;
	OK(cudaStreamCreate(&s));
	OK(cudaGraphCreate(&g, 0));
	OK(cudaGraphAddMemAllocNode(&a, g, NULL, 0, &p));
	OK(cudaGraphInstantiate(&exec, g, cudaGraphInstantiateFlagAutoFreeOnLaunch));
	OK(cudaGraphLaunch(exec, s));
	OK(cudaGraphLaunch(exec, s));
	assert_int_equal(D_USED(0), 4096);
	OK(cudaFree(p.dptr));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphAddMemFreeNode(&f, g, &a, 1, p.dptr));
	OK(cudaGraphInstantiate(&exec, g, 0));
	OK(cudaGraphLaunch(exec, s));
	assert_int_equal(D_USED(0), 0);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	OK(cudaDeviceGraphMemTrim(0));
	OK(cudaStreamDestroy(s));
}

static void test_imports(void **state)
{
	struct cudaExternalMemoryHandleDesc d = {.type = cudaExternalMemoryHandleTypeOpaqueFd,
						 .size = 65536};
	struct cudaExternalMemoryBufferDesc b = {.size = 4096};
	struct cudaMemLocation host = {.type = cudaMemLocationTypeHost};
	cudaIpcMemHandle_t handle;
	cudaExternalMemory_t m;
	cudaMemPool_t pool;
	void *p, *q;

	(void)state;
	d.handle.fd = memfd_create("external", 0);
	assert_int_equal(ftruncate(d.handle.fd, 65536), 0);
	OK(cudaImportExternalMemory(&m, &d));
	OK(cudaExternalMemoryGetMappedBuffer(&p, m, &b));
	assert_int_equal(cuweir_sim_used(0, CUWEIR_SIM_IMPORTED), 65536);
	OK(cudaDestroyExternalMemory(m)); /* legal before the buffer's end */
	OK(cudaFree(p));
	assert_int_equal(cuweir_sim_used(0, CUWEIR_SIM_IMPORTED), 0);
	OK(cudaMalloc(&p, 100));
	OK(cudaIpcGetMemHandle(&handle, p));
	FAILS(201, cudaIpcOpenMemHandle(&q, handle, cudaIpcMemLazyEnablePeerAccess));
	cudaGetLastError();
	OK(cudaFree(p));
	OK(cudaMemGetDefaultMemPool(&pool, &host, cudaMemAllocationTypePinned));
	OK(cudaMallocFromPoolAsync(&p, 700, pool, NULL));
	assert_int_equal(cuweir_sim_used(-1, CUWEIR_SIM_HOST), 700);
	OK(cudaFreeAsync(p, NULL));
}

static void test_peers(void **state)
{
	void *p, *q;
	char text[8] = "";
	int can = 0;

	(void)state;
	OK(cudaDeviceCanAccessPeer(&can, 0, 1));
	assert_int_equal(can, 1);
	OK(cudaDeviceEnablePeerAccess(1, 0));
	FAILS(704, cudaDeviceEnablePeerAccess(1, 0));
	cudaGetLastError();
	OK(cudaMalloc(&p, 64));
	OK(cudaSetDevice(1));
	OK(cudaMalloc(&q, 64));
	OK(cudaMemcpy(p, "hither", 7, cudaMemcpyHostToDevice));
	OK(cudaMemcpyPeer(q, 1, p, 0, 7));
	OK(cudaMemcpy2D(text, 2, q, 3, 2, 2, cudaMemcpyDeviceToHost));
	assert_string_equal(text, "hihe");
	OK(cudaFree(p));
	OK(cudaFree(q));
	OK(cudaSetDevice(0));
	assert_int_equal(D_USED(0) + D_USED(1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookups), cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_graphs),	cmocka_unit_test(test_imports),
		cmocka_unit_test(test_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
