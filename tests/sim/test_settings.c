/* SPDX-License-Identifier: Apache-2.0 */
/* CUWEIR_SIM_*: failures by rule, reissue, strict capture, scribbling, the trace. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static CUcontext ctx;
static char trace_path[64];

static void test_failures(void **state)
{
	CUdeviceptr p, q = 5;

	(void)state;
	OK(cuMemAlloc(&p, 100));
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 100)); /* cuMemAlloc_v2:2=2 */
	assert_int_equal(q, 0xdead);
	FAILS(CUDA_ERROR_LAUNCH_FAILED, cuMemFree(p)); /* cuMemFree:1=719 */
	OK(cuMemAlloc(&q, 100));
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 100)); /* alloc:4-5=2 */
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocManaged(&q, 100, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemAllocManaged(&q, 100, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemFree(q));
	OK(cuMemFree(p));
	assert_int_equal(cuweir_sim_calls("cuMemAlloc_v2"), 4);
	assert_int_equal(cuweir_sim_calls("cuMemFree_v2"), 3);
}

static void test_reissue(void **state)
{
	CUdeviceptr a, b, c, d;

	(void)state;
	OK(cuMemAlloc(&a, 5000));
	OK(cuMemAlloc(&b, 5000));
	OK(cuMemAlloc(&c, 5000));
	OK(cuMemFree(a));
	OK(cuMemFree(b));
	OK(cuMemAlloc(&d, 3000));
	assert_int_equal(d, b);
	OK(cuMemFree(d));
	OK(cuMemAlloc(&d, 512));
	assert_int_equal(d, b);
	OK(cuMemFree(c));
	OK(cuMemFree(d));
}

static void test_strict(void **state)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUstreamCaptureStatus st;
	CUdeviceptr p;
	CUgraph graph;
	CUstream s;
	size_t n;

	(void)state;
	OK(cuStreamCreate(&s, 0));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuStreamIsCapturing(s, &st));
	OK(cuMemAllocAsync(&p, 64 * 1024, s));
	OK(cuMemFreeAsync(p, s));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	OK(cuStreamEndCapture(s, &graph));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemGetInfo(&n, &n));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
}

static void test_trace(void **state)
{
	static char text[100000];
	FILE *f = fopen(trace_path, "r");
	size_t n;

	(void)state;
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	assert_non_null(strstr(text, "cuInit Flags=0 -> = 0\n"));
	assert_non_null(strstr(text, "cuMemAlloc_v2 size=100 -> dptr=D0+0x0 = 0\n"));
	assert_non_null(strstr(text, "cuMemAlloc_v2 size=100 -> = 2\n"));
	assert_non_null(strstr(text, "cuMemFree_v2 dptr=D0+0x0 -> = 719\n"));
	assert_null(strstr(text, "sim_"));
	unlink(trace_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_reissue),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_trace),
	};

	snprintf(trace_path, sizeof(trace_path), "/tmp/cuweir-sim-%d.trace", (int)getpid());
	setenv("CUWEIR_SIM_TRACE", "/tmp/cuweir-sim-%p.trace", 1);
	setenv("CUWEIR_SIM_FAIL", "cuMemAlloc_v2:2=2,cuMemFree:1=719,alloc:4-5=2", 1);
	setenv("CUWEIR_SIM_REISSUE", "1", 1);
	setenv("CUWEIR_SIM_STRICT_CAPTURE", "1", 1);
	setenv("CUWEIR_SIM_SCRIBBLE_ON_FAIL", "1", 1);
	setenv("CUWEIR_SIM_LATENCY", "10", 1);
	if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&ctx, NULL, 0, 0) != CUDA_SUCCESS) {
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
