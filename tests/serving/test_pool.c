/* SPDX-License-Identifier: Apache-2.0 */
/* D-11, D-20, D-21, and T-17, T-22: a program that knows of nothing, and the pool. */
#include "serving.h"

static unsigned long long all_calls(void)
{
	return cuweir_sim_calls(NULL);
}

static CUdeviceptr take(uint64_t size)
{
	CUdeviceptr p = 0;

	assert_int_equal(cuMemAlloc(&p, size), CUDA_SUCCESS);
	assert_int_not_equal(p, 0);
	return p;
}

static CUdeviceptr take_in(uint64_t size, CUstream stream)
{
	CUdeviceptr p = 0;

	assert_int_equal(cuMemAllocAsync(&p, size, stream), CUDA_SUCCESS);
	assert_int_not_equal(p, 0);
	return p;
}

static void give(CUdeviceptr p)
{
	assert_int_equal(cuMemFree(p), CUDA_SUCCESS);
}

static void give_in(CUdeviceptr p, CUstream stream)
{
	assert_int_equal(cuMemFreeAsync(p, stream), CUDA_SUCCESS);
}

static CUstream new_stream(void)
{
	CUstream stream;

	assert_int_equal(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	return stream;
}

static uint64_t held(void)
{
	return totals_of(CUWEIR_KIND_DEVICE).held;
}

/* Gives all blocks back: what nothing can hold fails, and the pool is asked first. */
static void empty_pool(void)
{
	CUdeviceptr none = 0;

	assert_int_equal(cuMemAlloc(&none, (size_t)3 << 60), CUDA_ERROR_OUT_OF_MEMORY);
}

static void warm(void **state)
{
	unsigned long long before;
	CUdeviceptr p, q;

	(void)state;
	p = take_in(1000, NULL);
	check_books(1000);
	assert_int_equal(held(), 24); /* 1000 of 1024 */
	give_in(p, NULL);
	check_books(0);
	assert_int_equal(held(), 1024);
	before = all_calls();
	for (int i = 0; i < 100; i++) {
		q = take_in(1000 - (uint64_t)i / 4, NULL);
		assert_int_equal(q, p);
		give_in(q, NULL);
	}
	assert_int_equal(all_calls(), before);
	check_books(0);
	empty_pool();
	assert_int_equal(held(), 0);
	check_books(0);
}

static void sizes(void **state)
{
	(void)state;
	for (uint64_t base = 1; base <= 64 * M; base *= 2) {
		for (uint64_t size = base; size < 2 * base; size += base / 5 + 1) {
			CUdeviceptr p = take(size);
			CUdeviceptr start = 0;
			size_t length = 0;

			assert_int_equal(cuMemsetD8(p, 1, size), CUDA_SUCCESS);
			assert_int_equal(cuMemGetAddressRange(&start, &length, p), CUDA_SUCCESS);
			assert_int_equal(start, p);
			assert_true(length >= size);
			assert_true(length <= 512 || length - size <= size / 8 + 64);
			give(p);
		}
	}
	empty_pool();
	check_books(0);
}

static void synchronous(void **state)
{
	unsigned long long before, waits;
	CUdeviceptr p = take(K);

	(void)state;
	waits = cuweir_sim_calls("cuCtxSynchronize");
	before = all_calls();
	/* The shim waits for the device, as cuMemFree does; then the pool, by which it knows what
	 * else has ended. */
	give(p);
	assert_int_equal(cuweir_sim_calls("cuCtxSynchronize"), waits + 2);
	assert_int_equal(all_calls(), before + 2);
	assert_int_equal(take(K), p); /* valid in every stream at once, and asks nobody */
	assert_int_equal(all_calls(), before + 2);
	give(p);
	/* freed in a stream: only when that is done */
	p = take_in(K, NULL);
	give_in(p, NULL);
	before = cuweir_sim_calls("cuEventQuery");
	assert_int_equal(take(K), p);
	assert_int_equal(cuweir_sim_calls("cuEventQuery"), before + 1);
	give(p);
	/* and a synchronization of the context covers what was freed before it */
	p = take_in(2 * K, NULL);
	give_in(p, NULL);
	give(take(64 * K));
	before = all_calls();
	assert_int_equal(take(2 * K), p);
	assert_int_equal(all_calls(), before);
	give(p);
	empty_pool();
	check_books(0);
}

static void across_streams(void **state)
{
	CUstream one = new_stream(), two = new_stream();
	unsigned long long records, waits;
	CUdeviceptr p = take_in(K, one), q;

	(void)state;
	records = cuweir_sim_calls("cuEventRecord");
	give_in(p, one);
	waits = cuweir_sim_calls("cuStreamWaitEvent");
	q = take_in(K, two); /* recorded at the free, or now where it was the only stream */
	assert_int_equal(q, p);
	assert_int_equal(cuweir_sim_calls("cuStreamWaitEvent"), waits + 1);
	assert_int_equal(cuweir_sim_calls("cuEventRecord"), records + 1);
	records = cuweir_sim_calls("cuEventRecord");
	give_in(q, two); /* there are several: recorded at the free */
	assert_int_equal(cuweir_sim_calls("cuEventRecord"), records + 1);
	assert_int_equal(take_in(K, two), p); /* at once */
	assert_int_equal(cuweir_sim_calls("cuStreamWaitEvent"), waits + 1);
	give_in(p, one); /* in another stream than it was taken in */
	assert_int_equal(take_in(K, one), p);
	assert_int_equal(cuweir_sim_calls("cuStreamWaitEvent"), waits + 1);
	give_in(p, one);
	/* A stream ends: its blocks are not those of the one that gets its handle. */
	q = take_in(4 * K, two);
	give_in(q, two);
	assert_int_equal(cuStreamDestroy(two), CUDA_SUCCESS);
	two = new_stream();
	waits = cuweir_sim_calls("cuStreamWaitEvent");
	assert_int_equal(take_in(4 * K, two), q);
	assert_int_equal(cuweir_sim_calls("cuStreamWaitEvent"), waits + 1);
	give_in(q, two);
	assert_int_equal(cuStreamDestroy(one), CUDA_SUCCESS);
	assert_int_equal(cuStreamDestroy(two), CUDA_SUCCESS);
	empty_pool();
	check_books(0);
}

static void wrong_frees(void **state)
{
	CUdeviceptr p = take(K), q = 0;
	size_t pitch = 0;
	CUresult real;

	(void)state;
	give(p);
	real = cuMemFree((CUdeviceptr)0x1234500000);
	assert_int_not_equal(real, CUDA_SUCCESS);
	/* The pool's now: the driver would take it, but it is not the program's. */
	assert_int_equal(cuMemAllocPitch(&q, &pitch, 100, 10, 4), CUDA_SUCCESS);
	check_books(pitch * 10);
	give(q);
	empty_pool();
	check_books(0);
}

static void trimmed(void **state)
{
	CUdeviceptr p = take(600 * (uint64_t)M), q = 0;
	size_t pitch;

	(void)state;
	give(p);
	assert_true(held() >= 600 * (uint64_t)M);
	p = take(700 * (uint64_t)M); /* of 1 GiB */
	give(p);
	/* for memory that the pool does not serve, too */
	assert_int_equal(cuMemAllocPitch(&q, &pitch, 1024 * 1024, 800, 4), CUDA_SUCCESS);
	assert_int_equal(held(), 0);
	give(q);
	/* 144 and 896 MiB would not fit: then the second is no larger than it must be */
	p = take(130 * (uint64_t)M);
	q = take(880 * (uint64_t)M);
	check_books(1010 * (uint64_t)M);
	assert_int_equal(held(), 14 * (uint64_t)M);
	give(p);
	give(q);
	empty_pool();
	check_books(0);
}

static void contexts(void **state)
{
	CUdeviceptr mine = take(K), p, q;
	CUcontext first = NULL, other = NULL;
	CUstream stream, theirs;

	(void)state;
	stream = new_stream();
	assert_int_equal(cuCtxGetCurrent(&first), CUDA_SUCCESS);
#if CUDA_VERSION >= 13000
	assert_int_equal(cuCtxCreate(&other, NULL, 0, 0), CUDA_SUCCESS);
#else
	assert_int_equal(cuCtxCreate(&other, 0, 0), CUDA_SUCCESS);
#endif
	theirs = new_stream();
	p = take(K);
	q = take_in(2 * K, theirs);
	assert_int_not_equal(p, mine);
	give(p);
	assert_int_equal(take(K), p);
	/* Of the first context, while the other one is current. */
	give(mine);
	assert_int_not_equal(take_in(K, theirs), mine);
	assert_int_equal(take_in(K, stream), mine);
	give_in(mine, stream);
	give_in(q, stream); /* the other way round */
	assert_int_equal(take_in(2 * K, theirs), q);
	assert_int_equal(cuCtxDestroy(other), CUDA_SUCCESS);
	assert_int_equal(cuCtxSetCurrent(first), CUDA_SUCCESS);
	check_books(0);
	assert_int_equal(held(), 1024);
	assert_int_equal(take_in(K, stream), mine);
	give_in(mine, stream);
	assert_int_equal(cuStreamDestroy(stream), CUDA_SUCCESS);
	empty_pool();
	check_books(0);
}

static void captures(void **state)
{
	CUstream stream = new_stream(), other = new_stream();
	CUdeviceptr p = take_in(K, stream), q = take(K), r = take_in(K, other), planned = 0;
	unsigned long long before, asked;
	CUgraph graph = NULL;

	(void)state;
	assert_int_equal(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
			 CUDA_SUCCESS);
	/* A plan of the driver's, not a block. */
	assert_int_equal(cuMemAllocAsync(&planned, K, stream), CUDA_SUCCESS);
	assert_int_equal(cuMemFreeAsync(planned, stream), CUDA_SUCCESS);
	before = all_calls();
	asked = cuweir_sim_calls("cuStreamIsCapturing");
	give_in(p, stream);
	give(q);
	give_in(r, other);
	assert_int_equal(all_calls() - before, cuweir_sim_calls("cuStreamIsCapturing") - asked);
	assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	assert_int_equal(cuGraphDestroy(graph), CUDA_SUCCESS);
	check_books(0);
	/* Not used again before their context was waited for by the pool. */
	planned = take_in(K, stream);
	assert_true(planned != p && planned != q && planned != r);
	give_in(planned, stream);
	give(take(64 * K));
	for (int i = 0; i < 4; i++) {
		planned = take_in(K, stream);
		(void)planned;
	}
	assert_int_equal(totals_of(CUWEIR_KIND_DEVICE).current, 4 * K);
	assert_int_equal(held(), 64 * K);
	assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	/* Leaves the four to the context. */
	assert_int_equal(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
	assert_int_equal(held(), 0);
	assert_int_equal(total(), 0);
	start_cuda();
	check_books(0);
}

static int ups;

static int refuse(void *state, uint64_t value, const struct cuweir_event *event)
{
	(void)state, (void)value, (void)event;
	ups++;
	return CUWEIR_ERROR_NOT_PERMITTED;
}

static void vetoed(void **state)
{
	const uint64_t list[] = { 1 };
	struct cuweir_event_handler table = {
		.struct_size = sizeof(table),
		.alloc_thresholds = list,
		.alloc_threshold_count = 1,
		.on_alloc_threshold = refuse,
	};
	CUdeviceptr p = 0;

	(void)state;
	assert_int_equal(cuweir_set_event_handler(&table, NULL, false), 0);
	assert_int_equal(cuMemAlloc(&p, K), CUWEIR_ERROR_NOT_PERMITTED);
	assert_int_equal(cuMemAllocAsync(&p, K, NULL), CUWEIR_ERROR_NOT_PERMITTED);
	assert_int_equal(p, 0);
	assert_int_equal(ups, 2);
	assert_int_equal(cuweir_clear_event_handler(), 0);
	check_books(0);
	assert_int_equal(held(), K);
	empty_pool();
	check_books(0);
}

static void reservations(void **state)
{
	struct cuweir_reservation *r = NULL;
	uint64_t used = 0, reserved = 0;
	void *memory = NULL;

	(void)state;
	/* The block that the pool takes is paid for by the reservation: not twice. */
	assert_int_equal(cuweir_set_budget(0, 0, 1000), 0);
	assert_int_equal(cuweir_reservation_open(0, &r), 0);
	assert_int_equal(cuweir_reservation_add(r, 1000), 0);
	assert_int_equal(cuweir_reservation_allocate_buffer(r, NULL, &memory),
			 CUWEIR_ERROR_OUT_OF_MEMORY); /* blocks are of 512 bytes */
	cuweir_reservation_destroy(r);
	assert_int_equal(cuweir_get_budget(0, NULL, &used, &reserved), 0);
	assert_int_equal(used + reserved, 0);
	assert_int_equal(cuweir_set_budget(0, 0, 1024), 0);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(cuweir_reservation_open(0, &r), 0);
		if (cuweir_reservation_add(r, 1024) != 0) {
			/* What the pool keeps counts until memory runs short. */
			assert_int_equal(held(), 1024);
			empty_pool();
			assert_int_equal(cuweir_reservation_add(r, 1024), 0);
		}
		assert_int_equal(cuweir_reservation_allocate_buffer(r, NULL, &memory), 0);
		assert_int_equal(cuweir_get_budget(0, NULL, &used, &reserved), 0);
		assert_int_equal(used, 1024);
		assert_int_equal(reserved, 0);
		check_books(1024);
		assert_true(cuweir_deallocate_async(memory, NULL));
		cuweir_reservation_destroy(r);
		check_books(0);
	}
	empty_pool();
	assert_int_equal(cuweir_get_budget(0, NULL, &used, &reserved), 0);
	assert_int_equal(used + reserved, 0);
	assert_int_equal(cuweir_set_budget(0, 0, UINT64_MAX), 0);
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
		cmocka_unit_test(warm),        cmocka_unit_test(sizes),
		cmocka_unit_test(synchronous), cmocka_unit_test(across_streams),
		cmocka_unit_test(wrong_frees), cmocka_unit_test(trimmed),
		cmocka_unit_test(contexts),    cmocka_unit_test(captures),
		cmocka_unit_test(vetoed),      cmocka_unit_test(reservations),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
