/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, launches and advice: what clients need on their way to memory. */
#include <string.h>

#include "test.h"

static CUcontext ctx;
static CUstream s;

static const char ptx[] = "// test\n.version 8.0\n.target sm_90\n"
			  ".visible .global .align 4 .u32 table[16];\n"
			  ".visible .entry nothing() { ret; }\n";

static int setup(void **state)
{
	(void)state;
	return cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&ctx, NULL, 0, 0) != CUDA_SUCCESS ||
	       cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
}

static void test_modules(void **state)
{
	CUmodule m, inner;
	CUlibrary lib;
	CUfunction f, g;
	CUkernel k;
	CUdeviceptr p;
	size_t size;
	int v = 0, block = 0;

	(void)state;
	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&f, m, "nothing"));
	OK(cuModuleGetFunction(&g, m, "nothing"));
	assert_ptr_equal(f, g);
	OK(cuModuleGetGlobal(&p, &size, m, "table"));
	assert_int_equal(size, 64);
	OK(cuMemsetD32(p, 5, 16));
	FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&p, &size, m, "tab"));
	OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 0, 1, 1, 32, 1, 1, 0, s, NULL, NULL));
	OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
	assert_int_equal(v, 1024);
	OK(cuOccupancyMaxPotentialBlockSize(&v, &block, f, NULL, 0, 256));
	assert_int_equal(block, 256);
	OK(cuModuleUnload(m));
	FAILS(CUDA_ERROR_INVALID_HANDLE,
	      cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL));
	OK(cuLibraryLoadData(&lib, ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&k, lib, "nothing"));
	OK(cuKernelGetFunction(&f, k));
	OK(cuLibraryGetModule(&inner, lib));
	OK(cuModuleGetFunction(&g, inner, "nothing"));
	assert_ptr_equal(f, g);
	OK(cuLibraryUnload(lib));
	assert_int_equal(D_USED(0), 0);
}

/* An image that ends without a NUL, as PTX may be handed to the linker, and one of another kind. */
static void test_link(void **state)
{
	char more[] = ".global .f64 weight[3];!";
	char object[] = "\177ELF";
	CUlinkState link;
	CUmodule m;
	CUdeviceptr p;
	size_t size = 0;
	void *image;

	(void)state;
	OK(cuLinkCreate(0, NULL, NULL, &link));
	OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)ptx, sizeof(ptx), "a", 0, NULL,
			 NULL));
	OK(cuLinkAddData(link, CU_JIT_INPUT_OBJECT, object, sizeof(object), "b", 0, NULL, NULL));
	OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, more, sizeof(more) - 2, "c", 0, NULL, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      cuLinkAddData(link, CU_JIT_INPUT_PTX, NULL, 1, "d", 0, NULL, NULL));
	OK(cuLinkComplete(link, &image, &size));
	assert_int_equal(size, strlen(image) + 1);
	assert_null(strchr(image, '!'));
	OK(cuModuleLoadData(&m, image));
	OK(cuLinkDestroy(link));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuLinkComplete(link, &image, &size));
	OK(cuModuleGetGlobal(&p, &size, m, "table"));
	assert_int_equal(size, 64);
	OK(cuModuleGetGlobal(&p, &size, m, "weight"));
	assert_int_equal(size, 24);
	OK(cuModuleUnload(m));
	OK(cuLinkCreate(0, NULL, NULL, &link));
	OK(cuLinkComplete(link, &image, &size)); /* of nothing: an empty program */
	assert_int_equal(size, strlen(image) + 1);
	OK(cuLinkDestroy(link));
}

static void test_launch_in_capture(void **state)
{
	CUmodule m;
	CUfunction f;
	CUgraph graph;
	CUgraphNode node;
	CUgraphNodeType type;
	size_t n = 1;

	(void)state;
	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&f, m, "nothing"));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL));
	OK(cuStreamEndCapture(s, &graph));
	OK(cuGraphGetNodes(graph, &node, &n));
	OK(cuGraphNodeGetType(node, &type));
	assert_int_equal(type, CU_GRAPH_NODE_TYPE_KERNEL);
	OK(cuGraphDestroy(graph));
	OK(cuModuleUnload(m));
}

static void test_advice(void **state)
{
	CUmemLocation dev = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
	CUdeviceptr m, d;
	unsigned int word = 0;

	(void)state;
	OK(cuMemAllocManaged(&m, 8192, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemAlloc(&d, 8192));
	OK(cuMemPrefetchAsync(m, 8192, dev, 0, s));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(m, 8193, dev, 0, s));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(d, 8192, dev, 0, s));
	OK(cuMemAdvise(m, 8192, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, dev));
	dev.id = 7;
	FAILS(CUDA_ERROR_INVALID_DEVICE,
	      cuMemAdvise(m, 8192, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, dev));
	OK(cuStreamAttachMemAsync(s, m, 0, CU_MEM_ATTACH_SINGLE));
	OK(cuMemsetD2D32(d, 64, 9, 4, 3));
	OK(cuMemcpyDtoH(&word, d + 128 + 12, 4));
	assert_int_equal(word, 9);
	OK(cuStreamWriteValue32(s, d, 77, 0));
	OK(cuMemcpyDtoH(&word, d, 4));
	assert_int_equal(word, 77);
	OK(cuMemFree(d));
	OK(cuMemFree(m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_launch_in_capture),
		cmocka_unit_test(test_advice),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
