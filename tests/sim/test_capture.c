/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: what it forbids, and what it makes. */
#include <pthread.h>

#include "test.h"

static CUcontext ctx;
static CUstream s1, s2;

static int setup(void **state)
{
	(void)state;
	return cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&ctx, NULL, 0, 0) != CUDA_SUCCESS ||
	       cuStreamCreate(&s1, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
	       cuStreamCreate(&s2, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
}

static CUstreamCaptureStatus status(CUstream s)
{
	CUstreamCaptureStatus st;

	OK(cuStreamIsCapturing(s, &st));
	return st;
}

static CUresult other_result;

static void *alloc_elsewhere(void *mode)
{
	CUdeviceptr p;

	OK(cuCtxSetCurrent(ctx));
	if (mode != NULL) {
		OK(cuThreadExchangeStreamCaptureMode(mode));
	}
	other_result = cuMemAlloc(&p, 100);
	if (other_result == CUDA_SUCCESS) {
		OK(cuMemFree(p));
	}
	return NULL;
}

static CUresult elsewhere(CUstreamCaptureMode *mode)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, alloc_elsewhere, mode), 0);
	pthread_join(t, NULL);
	return other_result;
}

/* C-82: mode of the capture, same thread or another, mode of the thread. */
static void test_matrix(void **state)
{
	const CUstreamCaptureMode g = CU_STREAM_CAPTURE_MODE_GLOBAL,
				  l = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
				  x = CU_STREAM_CAPTURE_MODE_RELAXED;
	const struct {
		CUstreamCaptureMode capture, thread;
		int other, forbidden;
	} rows[] = {
		{g, g, 0, 1}, {l, g, 0, 1}, {x, g, 0, 0}, {g, l, 0, 1}, {l, l, 0, 1}, {g, x, 0, 0},
		{g, g, 1, 1}, {l, g, 1, 0}, {x, g, 1, 0}, {g, l, 1, 0}, {g, x, 1, 0}, {l, x, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CUstreamCaptureMode mode = rows[i].thread;
		CUgraph graph = NULL;
		CUdeviceptr p;
		CUresult r;

		OK(cuStreamBeginCapture(s1, rows[i].capture));
		if (rows[i].other) {
			r = elsewhere(&mode);
		} else {
			OK(cuThreadExchangeStreamCaptureMode(&mode));
			r = cuMemAlloc(&p, 100);
			if (r == CUDA_SUCCESS) {
				OK(cuMemFree(p));
			}
			OK(cuThreadExchangeStreamCaptureMode(&mode));
		}
		assert_int_equal(r, rows[i].forbidden ? 900 : 0);
		assert_int_equal(status(s1), rows[i].forbidden ? 2 : 1);
		assert_int_equal(cuStreamEndCapture(s1, &graph), rows[i].forbidden ? 901 : 0);
		assert_int_equal(graph != NULL, !rows[i].forbidden);
		if (graph != NULL) {
			OK(cuGraphDestroy(graph));
		}
		assert_int_equal(status(s1), 0);
	}
}

static void test_alloc_node(void **state)
{
	CUgraphExec exec;
	CUgraph graph;
	CUdeviceptr p, q;
	size_t n = 0;

	(void)state;
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemAllocAsync(&p, 64 * 1024, s1));
	assert_int_equal(D_USED(0), 0);
	OK(cuMemAllocAsync(&q, 1000, s2)); /* not captured */
	assert_int_equal(D_USED(0), 1000);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(q, s1));
	OK(cuMemFreeAsync(q, s2));
	OK(cuMemsetD8Async(p, 1, 64 * 1024, s1));
	OK(cuStreamEndCapture(s1, &graph));
	OK(cuGraphGetNodes(graph, NULL, &n));
	assert_int_equal(n, 2);
	OK(cuGraphInstantiate(&exec, graph, 0));
	assert_int_equal(D_USED(0), 0);
	OK(cuGraphLaunch(exec, s1));
	assert_int_equal(D_USED(0), 64 * 1024);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, s1));
	OK(cuMemFreeAsync(p, s1));
	assert_int_equal(D_USED(0), 0);
	OK(cuGraphLaunch(exec, s1));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	assert_int_equal(D_USED(0), 64 * 1024);
	OK(cuMemFree(p));
	assert_int_equal(D_USED(0), 0);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
}

static void test_fork_and_join(void **state)
{
	CUevent fork, back;
	CUgraph graph;
	CUdeviceptr p;

	(void)state;
	OK(cuEventCreate(&fork, 0));
	OK(cuEventCreate(&back, 0));
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	OK(cuEventRecord(fork, s1));
	OK(cuStreamWaitEvent(s2, fork, 0));
	assert_int_equal(status(s2), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuMemAllocAsync(&p, 5000, s2));
	assert_int_equal(D_USED(0), 0);
	FAILS(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(fork));
	OK(cuEventRecord(back, s2));
	OK(cuStreamWaitEvent(s1, back, 0));
	OK(cuMemFreeAsync(p, s1));
	OK(cuStreamEndCapture(s1, &graph));
	OK(cuGraphDestroy(graph));
	assert_int_equal(status(s2), CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	OK(cuEventRecord(fork, s1));
	OK(cuStreamWaitEvent(s2, fork, 0));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(s2, &graph));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s1, &graph));
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	OK(cuEventRecord(fork, s1));
	OK(cuStreamWaitEvent(s2, fork, 0));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s1, &graph));
}

static void test_by_nature(void **state)
{
	CUstream blocking;
	CUgraph graph;
	CUdeviceptr p;

	(void)state;
	FAILS(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(s1, &graph));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
	      cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_RELAXED));
	FAILS(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s1));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuMemAllocAsync(&p, 1, s1));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s1, &graph));
	OK(cuStreamCreate(&blocking, 0));
	OK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemAllocAsync(&p, 1, NULL));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &graph));
	OK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuStreamDestroy(blocking));
	OK(cuMemAlloc(&p, 1));
	OK(cuMemFree(p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matrix),
		cmocka_unit_test(test_alloc_node),
		cmocka_unit_test(test_fork_and_join),
		cmocka_unit_test(test_by_nature),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
