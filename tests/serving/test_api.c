/* SPDX-License-Identifier: Apache-2.0 */
/* Rows T-10 to T-34 of the allocator, by value, preloaded and alone. */
#include "serving.h"

#include <dlfcn.h>

static unsigned long long calls(void)
{
	return cuweir_sim_calls("cuMemAlloc_v2") + cuweir_sim_calls("cuMemAllocAsync") +
	       cuweir_sim_calls("cuMemFree_v2") + cuweir_sim_calls("cuMemFreeAsync");
}

static void presence(void **state)
{
	(void)state;
	assert_string_equal(cuweir_get_version(), "0.1.0");
	assert_int_equal(cuweir_hears_cuda(), is_preloaded());
}

/* Loaded privately, the library replaces nothing: names and calls lead to the driver. */
static void replaces_nothing(void **state)
{
	static const char *const names[] = { "cuMemAlloc_v2", "cuMemFreeAsync", "cuCtxCreate_v4",
					     "cuGetProcAddress_v2", "dlsym", "cudaMalloc" };
	CUdeviceptr p = 0;
	Dl_info info;

	(void)state;
	assert_int_equal(cuMemAlloc(&p, 100), CUDA_SUCCESS);
	assert_int_equal(total(), is_preloaded() ? 100 : 0);
	assert_int_equal(cuMemFree(p), CUDA_SUCCESS);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !is_preloaded(); i++) {
		void *found = dlsym(RTLD_DEFAULT, names[i]);

		if (found != NULL) {
			assert_int_not_equal(dladdr(found, &info), 0);
			assert_null(strstr(info.dli_fname, "cuweir"));
		}
	}
	assert_int_not_equal(dladdr((void *)(uintptr_t)&cuMemAlloc, &info), 0);
	assert_true(is_preloaded() || strstr(info.dli_fname, "libcuweir.so") == NULL);
}

static void sizes(void **state)
{
	unsigned long long before = calls();
	void *p;

	(void)state;
	/* T-10, T-18 */
	assert_null(cuweir_allocate_async(0, 256, 0, NULL));
	assert_null(cuweir_allocate(0, 0, 0));
	assert_true(cuweir_deallocate_async(NULL, NULL));
	assert_true(cuweir_deallocate(NULL));
	assert_int_equal(calls(), before);
	assert_int_equal(total(), 0);
	/* T-11 */
	p = cuweir_allocate_async(1000, 256, 0, NULL);
	assert_non_null(p);
	assert_int_equal((uintptr_t)p % 256, 0);
	check_books(1000);
	assert_true(cuweir_deallocate_async(p, NULL));
	check_books(0);
	/* T-12 */
	assert_null(cuweir_allocate_async((uint64_t)3 << 60, 0, 0, NULL));
	assert_null(cuweir_allocate((uint64_t)3 << 60, 0, 0));
	check_books(0);
}

static void alignments(void **state)
{
	static const uint64_t good[] = { 0, 1, 2, 16, 128, 256 };
	static const uint64_t bad[] = { 3, 24, 255, 257, 512, 4096, (uint64_t)1 << 63 };
	unsigned long long before;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) { /* T-13, T-14 */
		void *p = cuweir_allocate_async(100, good[i], 0, NULL);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 256, 0);
		assert_true(cuweir_deallocate_async(p, NULL));
		p = cuweir_allocate(100, good[i], 0);
		assert_non_null(p);
		assert_true(cuweir_deallocate(p));
	}
	before = calls();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) { /* T-15 */
		assert_null(cuweir_allocate_async(100, bad[i], 0, NULL));
		assert_null(cuweir_allocate(100, bad[i], 0));
	}
	assert_int_equal(calls(), before);
	check_books(0);
}

static void flags(void **state)
{
	void *p = cuweir_allocate_async(100, 0, 0xfffffff0u, NULL); /* T-09 */

	(void)state;
	assert_non_null(p);
	assert_true(cuweir_deallocate_async(p, NULL));
}

static void foreign(void **state)
{
	unsigned long long before;
	CUdeviceptr own = 0;
	void *p = cuweir_allocate_async(100, 0, 0, NULL);
	void *q = cuweir_allocate(100, 0, 0);
	int local;

	(void)state;
	assert_int_equal(cuMemAlloc(&own, 100), CUDA_SUCCESS);
	before = calls();
	/* T-19 */
	assert_false(cuweir_deallocate_async(&local, NULL));
	assert_false(cuweir_deallocate(&local));
	assert_false(cuweir_deallocate_async((char *)p + 1, NULL));
	assert_false(cuweir_deallocate_async((void *)(uintptr_t)own, NULL));
	assert_false(cuweir_deallocate((void *)(uintptr_t)own));
	assert_int_equal(calls(), before);
	/* T-20 */
	assert_true(cuweir_deallocate_async(p, NULL));
	assert_true(cuweir_deallocate(q));
	before = calls();
	assert_false(cuweir_deallocate_async(p, NULL));
	assert_false(cuweir_deallocate(q));
	assert_int_equal(calls(), before);
	assert_int_equal(cuMemFree(own), CUDA_SUCCESS);
	check_books(0);
}

/* Each way to give back what each way took. */
static void across(void **state)
{
	void *p = cuweir_allocate_async(K, 0, 0, NULL);
	void *q = cuweir_allocate(2 * K, 0, 0);

	(void)state;
	check_books(3 * K);
	assert_true(cuweir_deallocate(p));
	assert_true(cuweir_deallocate_async(q, NULL));
	check_books(0);
	if (is_preloaded()) {
		p = cuweir_allocate_async(K, 0, 0, NULL);
		assert_int_equal(cuMemFreeAsync((CUdeviceptr)(uintptr_t)p, NULL), CUDA_SUCCESS);
		assert_false(cuweir_deallocate(p));
		check_books(0);
	}
}

/* The default stream is the memory's device's, and the program's context stays current. */
static void other_device(void **state)
{
	CUcontext first, second, now;
	unsigned long long pushes;
	void *p = cuweir_allocate_async(K, 0, 0, NULL);

	(void)state;
	assert_int_equal(cuCtxGetCurrent(&first), CUDA_SUCCESS);
	assert_int_equal(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
	assert_int_equal(cuCtxSetCurrent(second), CUDA_SUCCESS);
	pushes = cuweir_sim_calls("cuCtxPushCurrent_v2");
	assert_true(cuweir_deallocate_async(p, NULL));
	/* Alone nobody hears which contexts there are. */
	assert_int_equal(cuweir_sim_calls("cuCtxPushCurrent_v2") - pushes, is_preloaded());
	assert_int_equal(cuCtxGetCurrent(&now), CUDA_SUCCESS);
	assert_ptr_equal(now, second);
	p = cuweir_allocate_async(K, 0, 0, NULL);
	assert_int_equal(cuweir_sim_used(1, CUWEIR_SIM_DEVICE), K);
	assert_true(cuweir_deallocate_async(p, NULL));
	assert_int_equal(cuweir_sim_calls("cuCtxPushCurrent_v2") - pushes, is_preloaded());
	assert_int_equal(cuCtxSetCurrent(first), CUDA_SUCCESS);
	assert_int_equal(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
	check_books(0);
}

/* T-16, T-22 */
static void streams(void **state)
{
	CUstream one, two;
	void *p;

	(void)state;
	assert_int_equal(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	assert_int_equal(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	p = cuweir_allocate_async(K, 0, 0, one);
	assert_non_null(p);
	assert_true(cuweir_deallocate_async(p, two));
	p = cuweir_allocate_async(K, 0, 0, CU_STREAM_PER_THREAD);
	assert_non_null(p);
	assert_true(cuweir_deallocate_async(p, CU_STREAM_PER_THREAD));
	assert_int_equal(cuStreamDestroy(one), CUDA_SUCCESS);
	assert_int_equal(cuStreamDestroy(two), CUDA_SUCCESS);
	check_books(0);
}

static void captured(void **state)
{
	unsigned long long before;
	CUgraph graph = NULL;
	CUstream stream;
	void *p, *q;

	(void)state;
	assert_int_equal(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	p = cuweir_allocate_async(K, 0, CUWEIR_ALLOCATOR_RESIZABLE, stream);
	assert_int_equal(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
			 CUDA_SUCCESS);
	before = calls();
	q = cuweir_allocate_async(K, 0, 0, stream);
	assert_null(q);
	assert_false(cuweir_deallocate_async(p, stream));
	assert_int_equal(calls(), before);
	assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	assert_int_equal(cuGraphDestroy(graph), CUDA_SUCCESS);
	check_books(K);
	assert_true(cuweir_deallocate_async(p, stream));
	assert_int_equal(cuStreamDestroy(stream), CUDA_SUCCESS);
	check_books(0);
}

/* D-10: the gauge is the driver's figure, at the time of the question. */
static void pool_gauge(void **state)
{
	struct cuweir_totals totals = { .struct_size = sizeof(totals) };
	unsigned long long threshold = UINT64_MAX, held = 0;
	CUmemoryPool pool, own;
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
	};
	CUdeviceptr p, q;

	(void)state;
	assert_int_equal(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemPoolCreate(&own, &props), CUDA_SUCCESS);
	assert_int_equal(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
			 CUDA_SUCCESS);
	assert_int_equal(cuMemAllocAsync(&p, 100 * K, NULL), CUDA_SUCCESS);
	assert_int_equal(cuMemAllocFromPoolAsync(&q, 300 * K, own, NULL), CUDA_SUCCESS);
	assert_int_equal(cuMemFreeAsync(p, NULL), CUDA_SUCCESS);
	assert_int_equal(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	assert_int_equal(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &held),
			 CUDA_SUCCESS);
	assert_true(held >= 100 * K);
	assert_int_equal(cuweir_get_totals(0, CUWEIR_KIND_POOL, &totals), 0);
	/* Without the preload nobody hears of pools that are made. */
	assert_true(totals.current >= held + (is_preloaded() ? 300 * K : 0));
	/* Gone with the pool, and by a trim. */
	assert_int_equal(cuMemFreeAsync(q, NULL), CUDA_SUCCESS);
	assert_int_equal(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	assert_int_equal(cuMemPoolDestroy(own), CUDA_SUCCESS);
	assert_int_equal(cuweir_get_totals(0, CUWEIR_KIND_POOL, &totals), 0);
	assert_int_equal(totals.current, held);
	assert_true(totals.peak >= totals.current);
	assert_int_equal(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
	threshold = 0;
	assert_int_equal(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
			 CUDA_SUCCESS);
	assert_int_equal(cuweir_get_totals(0, CUWEIR_KIND_POOL, &totals), 0);
	assert_int_equal(totals.current, 0);
	check_books(0);
}

static void reallocation(void **state)
{
	char bytes[2 * K];
	void *p = cuweir_allocate_async(K, 256, CUWEIR_ALLOCATOR_RESIZABLE, NULL);
	void *q = cuweir_allocate_async(K, 256, 0, NULL);
	void *grown;

	(void)state;
	memset(bytes, 7, sizeof(bytes));
	assert_int_equal(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)p, bytes, K), CUDA_SUCCESS);
	/* T-32 */
	assert_null(cuweir_reallocate(NULL, 0, K));
	assert_null(cuweir_reallocate(bytes, 0, K));
	assert_null(cuweir_reallocate(q, 0, 2 * K));
	assert_null(cuweir_reallocate(p, 0, 0));
	assert_null(cuweir_reallocate(p, 512, 2 * K));
	/* T-30 */
	assert_null(cuweir_reallocate(p, 0, (uint64_t)3 << 60));
	check_books(2 * K);
	/* T-28, T-29, T-31 */
	assert_ptr_equal(cuweir_reallocate(p, 256, 100), p);
	check_books(2 * K);
	grown = cuweir_reallocate(p, 256, 2 * K);
	assert_non_null(grown);
	assert_ptr_not_equal(grown, p);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(cuMemcpyDtoH(bytes, (CUdeviceptr)(uintptr_t)grown, K), CUDA_SUCCESS);
	for (int i = 0; i < K; i++) {
		assert_int_equal(bytes[i], 7);
	}
	check_books(3 * K);
	assert_false(cuweir_deallocate_async(p, NULL));
	p = cuweir_reallocate(grown, 0, 4 * K);
	assert_non_null(p);
	assert_true(cuweir_deallocate_async(p, NULL));
	assert_true(cuweir_deallocate_async(q, NULL));
	check_books(0);
}

static int setup(void **state)
{
	(void)state;
	start_cuda();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(presence),   cmocka_unit_test(replaces_nothing),
		cmocka_unit_test(sizes),
		cmocka_unit_test(alignments), cmocka_unit_test(flags),
		cmocka_unit_test(foreign),    cmocka_unit_test(across),
		cmocka_unit_test(other_device), cmocka_unit_test(streams),    cmocka_unit_test(captured), cmocka_unit_test(pool_gauge),
		cmocka_unit_test(reallocation),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
