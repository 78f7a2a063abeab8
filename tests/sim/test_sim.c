/* SPDX-License-Identifier: Apache-2.0 */
/* Driver basics: look-ups, contexts, linear memory, by value. Capacity 1 GiB, two devices. */
#include <pthread.h>
#include <string.h>

#include "test.h"

static CUcontext ctx;

static int setup(void **state)
{
	(void)state;
	return cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&ctx, NULL, 0, 0) != CUDA_SUCCESS;
}

static int teardown(void **state)
{
	(void)state;
	return cuCtxDestroy(ctx) != CUDA_SUCCESS;
}

static void test_before_init(void **state)
{
	CUdevice d;
	CUdeviceptr p = 7;
	int v = 0;

	(void)state;
	FAILS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGet(&d, 0));
	FAILS(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&p, 1));
	assert_int_equal(p, 7);
	OK(cuDriverGetVersion(&v));
	assert_int_equal(v, 13000);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuInit(1));
	OK(cuInit(0));
	FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&d, 2));
	FAILS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&p, 1));
	FAILS(CUDA_ERROR_INVALID_CONTEXT, cuMemFree(7));
}

/* coverage.md M9: cuMemAlloc at four versions and three flags. */
static void test_lookup_versions(void **state)
{
	CUdriverProcAddressQueryResult s;
	void *v1, *v2, *p;

	(void)state;
	OK(cuGetProcAddress("cuMemAlloc", &v1, 2000, 0, &s));
	assert_int_equal(s, CU_GET_PROC_ADDRESS_SUCCESS);
	OK(cuGetProcAddress("cuMemAlloc", &v2, 3020, 0, &s));
	assert_ptr_not_equal(v1, v2);
	assert_ptr_equal(v2, (void *)cuMemAlloc);
	OK(cuGetProcAddress("cuMemAlloc", &p, 11020, 2, NULL));
	assert_ptr_equal(p, v2);
	OK(cuGetProcAddress("cuMemAlloc", &p, 13000, 1, &s));
	assert_ptr_equal(p, v2);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuMemAlloc", &p, 99990, 0, &s));
	OK(cuGetProcAddress("cuMemAlloc", &p, 1000, 0, &s));
	assert_null(p);
	assert_int_equal(s, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	OK(cuGetProcAddress("cuNoSuchThing", &p, 13000, 0, &s));
	assert_null(p);
	assert_int_equal(s, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	OK(cuGetProcAddress("", &p, 0, 0, &s));
	assert_null(p);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuMemAlloc", &p, 13000, 4, &s));
}

static void test_lookup_v1_and_ptsz(void **state)
{
	CUresult (*old)(const char *, void **, int, cuuint64_t);
	void *legacy, *per_thread, *p;

	(void)state;
	OK(cuGetProcAddress("cuGetProcAddress", (void **)&old, 11030, 0, NULL));
	OK(cuGetProcAddress("cuGetProcAddress", &p, 12000, 0, NULL));
	assert_ptr_equal(p, (void *)cuGetProcAddress);
	assert_ptr_not_equal((void *)old, p);
	FAILS(CUDA_ERROR_NOT_FOUND, old("cuNoSuchThing", &p, 13000, 0));
	OK(old("cuMemAllocAsync", &legacy, 11020, 0));
	OK(old("cuMemAllocAsync", &per_thread, 11020, 2));
	assert_ptr_not_equal(legacy, per_thread);
}

static void test_alloc_by_value(void **state)
{
	CUdeviceptr p = 0, q = 0;
	size_t free_bytes, total;

	(void)state;
	OK(cuMemAlloc(&p, 1000));
	OK(cuMemAlloc(&q, 1));
	assert_int_equal(p % 512, 0);
	assert_int_equal(D_USED(0), 1001);
	assert_int_equal(cuweir_sim_live(0, CUWEIR_SIM_DEVICE), 2);
	OK(cuMemGetInfo(&free_bytes, &total));
	assert_int_equal(total, 1024 * MiB);
	assert_int_equal(free_bytes, 1024 * MiB - 1001);
	OK(cuMemGetInfo(NULL, &total));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(p + 1));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(p + 512));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)(uintptr_t)&p));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((void *)(uintptr_t)p));
	OK(cuMemFree(p));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	OK(cuMemFree(q));
	OK(cuMemFree(0));
	assert_int_equal(D_USED(0), 0);
}

static void test_out_of_memory(void **state)
{
	CUdeviceptr p = 0, q = 77;

	(void)state;
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&q, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 1));
	OK(cuMemAlloc(&p, 1024 * MiB));
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 1));
	assert_int_equal(q, 77);
	OK(cuMemFree(p));
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 1024 * MiB + 1));
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, SIZE_MAX));
	assert_int_equal(D_USED(0), 0);
}

static void test_pitch_managed_host(void **state)
{
	CUdeviceptr p, m;
	size_t pitch = 0;
	void *h;

	(void)state;
	OK(cuMemAllocPitch(&p, &pitch, 1000, 10, 4));
	assert_int_equal(pitch, 1024);
	assert_int_equal(D_USED(0), 10240);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&m, 0, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemAllocManaged(&m, 2048 * MiB, CU_MEM_ATTACH_GLOBAL));
	assert_int_equal(cuweir_sim_used(0, CUWEIR_SIM_MANAGED), 2048 * MiB);
	OK(cuMemHostAlloc(&h, 4096, CU_MEMHOSTALLOC_PORTABLE));
	assert_int_equal(cuweir_sim_used(0, CUWEIR_SIM_HOST), 4096);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)(uintptr_t)h));
	OK(cuMemFreeHost(h));
	OK(cuMemFree(m));
	OK(cuMemFree(p));
	assert_int_equal(D_USED(0) + cuweir_sim_used(0, CUWEIR_SIM_MANAGED), 0);
}

static void test_copies_and_pointers(void **state)
{
	char text[] = "what goes in", back[sizeof(text)] = "";
	CUdeviceptr p, q, base;
	size_t size;
	int ordinal = -1;
	unsigned int word = 0;

	(void)state;
	OK(cuMemAlloc(&p, 4096));
	OK(cuMemAlloc(&q, 4096));
	OK(cuMemcpyHtoD(p + 5, text, sizeof(text)));
	OK(cuMemcpyDtoD(q, p + 5, sizeof(text)));
	OK(cuMemcpyDtoH(back, q, sizeof(text)));
	assert_string_equal(back, text);
	OK(cuMemsetD32(q, 0x01020304, 1024));
	OK(cuMemcpyDtoH(&word, q + 4092, 4));
	assert_int_equal(word, 0x01020304);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(p + 4090, text, sizeof(text)));
	OK(cuMemGetAddressRange(&base, &size, p + 4095));
	assert_true(base == p && size == 4096);
	FAILS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, p + 4096 + 4096 + 512));
	OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p + 9));
	assert_int_equal(ordinal, 0);
	OK(cuMemFree(p));
	OK(cuMemFree(q));
}

static void test_context_end(void **state)
{
	CUcontext other, now;
	CUdeviceptr p, async;
	CUstream s;

	(void)state;
	OK(cuCtxCreate(&other, NULL, 0, 1));
	OK(cuMemAlloc(&p, 3 * MiB));
	OK(cuStreamCreate(&s, 0));
	OK(cuMemAllocAsync(&async, 5 * MiB, s));
	assert_int_equal(D_USED(1), 8 * MiB);
	OK(cuCtxDestroy(other));
	assert_int_equal(D_USED(1), 5 * MiB);
	OK(cuCtxGetCurrent(&now));
	assert_ptr_equal(now, ctx);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	OK(cuMemFree(async));
	assert_int_equal(D_USED(1), 0);
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(s));
	FAILS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(1));
	OK(cuCtxSynchronize());
}

#define MANY 200000

static void test_many(void **state)
{
	CUdeviceptr *p = malloc(MANY * sizeof(*p));
	unsigned long long sum = 0;
	uint64_t x = 1;

	(void)state;
	assert_non_null(p);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < MANY; i++) {
			if (round > 0 && i % 3 == 0) {
				continue;
			}
			x = x * 6364136223846793005U + 1442695040888963407U;
			OK(cuMemAlloc(&p[i], 1 + (x >> 33) % 4000));
			assert_int_equal(p[i] % 512, 0);
		}
		for (size_t i = 0; i < MANY; i++) {
			if (i % 3 != 0 || round == 2) {
				OK(cuMemFree(p[i]));
			}
		}
	}
	assert_int_equal(cuweir_sim_live(0, CUWEIR_SIM_DEVICE), 0);
	assert_int_equal(D_USED(0), sum);
	free(p);
}

static void *churn(void *arg)
{
	CUdeviceptr p[64] = {0};

	(void)arg;
	OK(cuCtxSetCurrent(ctx));
	for (size_t i = 0; i < 20000; i++) {
		if (p[i % 64] != 0) {
			OK(cuMemFree(p[i % 64]));
		}
		OK(cuMemAlloc(&p[i % 64], 1 + i * 7 % 5000));
	}
	for (size_t i = 0; i < 64; i++) {
		OK(cuMemFree(p[i]));
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t t[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_create(&t[i], NULL, churn, NULL), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
	}
	assert_int_equal(D_USED(0), 0);
}

int main(void)
{
	const struct CMUnitTest early[] = {
		cmocka_unit_test(test_before_init),
		cmocka_unit_test(test_lookup_versions),
		cmocka_unit_test(test_lookup_v1_and_ptsz),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alloc_by_value),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_pitch_managed_host),
		cmocka_unit_test(test_copies_and_pointers),
		cmocka_unit_test(test_context_end),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_threads),
	};
	int bad = cmocka_run_group_tests(early, NULL, NULL);

	return bad + cmocka_run_group_tests(tests, setup, teardown);
}
