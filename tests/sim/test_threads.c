/* SPDX-License-Identifier: Apache-2.0 */
/* All families at once, in several threads: nothing is left, and the sanitizers are silent. */
#include <pthread.h>

#include "test.h"

#define THREADS 4
#define ROUNDS 60
#define G (2 * MiB)

static void virtual_memory(CUdevice dev)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev}};
	CUmemAccessDesc rw = {.location = prop.location,
			      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h;
	CUdeviceptr va;

	OK(cuMemAddressReserve(&va, 2 * G, 0, 0, 0));
	OK(cuMemCreate(&h, G, &prop, 0));
	OK(cuMemMap(va + G, G, 0, h, 0));
	OK(cuMemSetAccess(va + G, G, &rw, 1));
	OK(cuMemsetD8(va + G, 1, 4096));
	OK(cuMemRelease(h));
	OK(cuMemUnmap(va + G, G));
	OK(cuMemAddressFree(va, 2 * G));
}

static void arrays(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {64, 64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0};
	CUmipmappedArray m;
	CUarray a, level;

	OK(cuArray3DCreate(&a, &d));
	OK(cuMipmappedArrayCreate(&m, &d, 7));
	OK(cuMipmappedArrayGetLevel(&level, m, 1));
	OK(cuMipmappedArrayDestroy(m));
	OK(cuArrayDestroy(a));
}

static void graphs(CUdevice dev, CUstream s)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev}},
		.bytesize = 10000};
	CUgraphNode a;
	CUgraphExec exec;
	CUgraph g;

	OK(cuGraphCreate(&g, 0));
	OK(cuGraphAddMemAllocNode(&a, g, NULL, 0, &p));
	OK(cuGraphInstantiate(&exec, g, 0));
	OK(cuGraphLaunch(exec, s));
	OK(cuMemFreeAsync(p.dptr, s));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(g));
}

static void *run(void *arg)
{
	CUdevice dev = (CUdevice)(intptr_t)arg % 2;
	CUipcMemHandle handle;
	CUcontext ctx;
	CUstream s;
	CUdeviceptr p;

	OK(cuCtxCreate(&ctx, NULL, 0, dev));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < ROUNDS; i++) {
		virtual_memory(dev);
		arrays();
		graphs(dev, s);
		OK(cuMemAlloc(&p, 5000));
		OK(cuIpcGetMemHandle(&handle, p));
		OK(cuMemFree(p));
	}
	OK(cuCtxDestroy(ctx));
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t t[THREADS];

	(void)state;
	OK(cuInit(0));
	for (intptr_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&t[i], NULL, run, (void *)i), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
	}
	for (int dev = -1; dev < 2; dev++) {
		if (dev >= 0) {
			OK(cuDeviceGraphMemTrim(dev));
			assert_int_equal(cuweir_sim_free(dev), 1024 * MiB);
		}
		for (int kind = 0; kind < CUWEIR_SIM_KINDS; kind++) {
			assert_int_equal(cuweir_sim_used(dev, kind), 0);
			assert_int_equal(cuweir_sim_live(dev, kind), 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
