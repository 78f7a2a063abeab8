/* SPDX-License-Identifier: Apache-2.0 */
/* What nvcc's code registers with the simulated runtime: launches, attributes, variables. */
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <string.h>

#include "test.h"

extern void **__cudaRegisterFatBinary(void *wrapper);
extern void __cudaRegisterFatBinaryEnd(void **handle);
extern void __cudaUnregisterFatBinary(void **handle);
extern void __cudaRegisterFunction(void **handle, const char *host, char *dev, const char *name,
				   int limit, void *tid, void *bid, void *bd, void *gd, int *w);
extern void __cudaRegisterVar(void **handle, char *host, char *dev, const char *name, int ext,
			      size_t size, int constant, int global);
extern cudaError_t __cudaGetKernel(cudaKernel_t *ret, const void *func);
extern cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				      size_t shared, cudaStream_t s);

static char stub, other, shadow, long_name[2000];

static struct {
	int magic, version;
	const void *data;
	void *more;
} wrapper = {
	0x466243b1, 1, ".version 8.0\n.target sm_90\n.global .align 4 .u32 counts[16];\n", NULL,
};

static const dim3 one = {1, 1, 1};

static void test_launches(void **state)
{
	void **handle = __cudaRegisterFatBinary(&wrapper);
	cudaLaunchConfig_t config = {.gridDim = one, .blockDim = one};
	struct cudaFuncAttributes a;
	const dim3 none = {1, 0, 1}, many = {1024, 2, 1};
	cudaKernel_t kernel = NULL;
	int blocks = 0;

	(void)state;
	memset(long_name, 'k', sizeof(long_name) - 1);
	__cudaRegisterFunction(handle, &stub, NULL, long_name, -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
	OK(cudaLaunchKernel(&stub, one, one, NULL, 0, NULL));
	assert_int_equal(cuweir_sim_calls("cuLibraryLoadData"), 1);
	OK(cudaLaunchKernel(&stub, one, one, NULL, 0, NULL));
	assert_int_equal(cuweir_sim_calls("cuLibraryLoadData"), 1);
	assert_int_equal(cuweir_sim_calls("cuLaunchKernel"), 2);
	FAILS(cudaErrorInvalidConfiguration, cudaLaunchKernel(&stub, none, one, NULL, 0, NULL));
	FAILS(cudaErrorInvalidConfiguration, cudaLaunchKernel(&stub, one, many, NULL, 0, NULL));
	FAILS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(&other, one, one, NULL, 0, NULL));
	FAILS(cudaErrorInvalidDeviceFunction, cudaGetLastError());
	OK(__cudaGetKernel(&kernel, &stub));
	OK(__cudaLaunchKernel(kernel, one, one, NULL, 0, NULL));
	OK(cudaLaunchKernelExC(&config, &stub, NULL));
	OK(cudaLaunchCooperativeKernel(&stub, one, one, NULL, 0, NULL));
	OK(cudaFuncGetAttributes(&a, &stub));
	assert_int_equal(a.maxThreadsPerBlock, 1024);
	OK(cudaFuncSetAttribute(&stub, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &stub, 256, 0));
	assert_int_equal(blocks, 8);
	__cudaUnregisterFatBinary(handle);
	assert_int_equal(cuweir_sim_calls("cuLibraryUnload"), 1);
	FAILS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(&stub, one, one, NULL, 0, NULL));
	cudaGetLastError();
}

/* The first launch of an image may be in a capture: its loading does not break that. */
static void test_capture(void **state)
{
	void **handle = __cudaRegisterFatBinary(&wrapper);
	cudaGraphNode_t nodes[4];
	enum cudaGraphNodeType type;
	cudaGraphExec_t exec;
	cudaStream_t s;
	cudaGraph_t g;
	size_t n = 4, deps = 4;

	(void)state;
	__cudaRegisterFunction(handle, &stub, NULL, "add", -1, NULL, NULL, NULL, NULL, NULL);
	OK(cudaStreamCreate(&s));
	OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	OK(cudaLaunchKernel(&stub, one, one, NULL, 0, s));
	OK(cudaLaunchKernel(&stub, one, one, NULL, 0, s));
	OK(cudaStreamEndCapture(s, &g));
	OK(cudaGraphGetNodes(g, nodes, &n));
	assert_int_equal(n, 2);
	OK(cudaGraphNodeGetType(nodes[1], &type));
	assert_int_equal(type, cudaGraphNodeTypeKernel);
	OK(cudaGraphNodeGetDependencies(nodes[1], nodes + 2, NULL, &deps));
	assert_int_equal(deps, 1);
	assert_ptr_equal(nodes[2], nodes[0]);
	OK(cudaGraphInstantiate(&exec, g, 0));
	OK(cudaGraphLaunch(exec, s));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	OK(cudaStreamDestroy(s));
	__cudaUnregisterFatBinary(handle);
}

static void test_variables(void **state)
{
	void **handle = __cudaRegisterFatBinary(&wrapper);
	unsigned int in[2] = {7, 8};
	void *p = NULL;

	(void)state;
	__cudaRegisterVar(handle, &shadow, NULL, "counts", 0, 64, 0, 0);
	__cudaRegisterVar(handle, &other, NULL, "unknown", 0, 64, 0, 0);
	OK(cudaGetSymbolAddress(&p, &shadow));
	OK(cudaMemcpyToSymbol(&shadow, in, sizeof(in), 4, cudaMemcpyHostToDevice));
	assert_int_equal(((unsigned int *)p)[2], 8);
	FAILS(1, cudaMemcpyToSymbol(&shadow, in, sizeof(in), 60, cudaMemcpyHostToDevice));
	FAILS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&p, &other));
	FAILS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&p, &stub));
	cudaGetLastError();
	__cudaUnregisterFatBinary(handle);
}

static void CUDART_CB called(cudaStream_t s, cudaError_t e, void *data)
{
	(void)s;
	*(int *)data = e == cudaSuccess ? 1 : -1;
}

static void test_device(void **state)
{
	struct cudaPointerAttributes a;
	struct cudaDeviceProp p;
	cudaLibrary_t library;
	cudaKernel_t kernel;
	char bus[16], memory[64];
	int done = 0, least = 9, most = 9;
	unsigned int n;

	(void)state;
	OK(cudaGetDeviceProperties(&p, 1));
	assert_true(p.major == 9 && p.maxThreadsPerMultiProcessor == 2048 && p.pciBusID == 2 &&
		    p.sharedMemPerMultiprocessor == 233472 && p.totalGlobalMem == 1024 * MiB);
	OK(cudaDeviceGetPCIBusId(bus, sizeof(bus), 1));
	assert_string_equal(bus, "0000:02:00.0");
	OK(cudaDeviceGetStreamPriorityRange(&least, &most));
	assert_true(least == 0 && most == -5);
	OK(cudaStreamAddCallback(NULL, called, &done, 0));
	assert_int_equal(done, 1);
	OK(cudaHostRegister(memory, sizeof(memory), 0));
	OK(cudaPointerGetAttributes(&a, memory + 8));
	assert_true(a.type == cudaMemoryTypeHost && a.hostPointer == memory + 8 && a.device == 0);
	OK(cudaHostUnregister(memory));
	OK(cudaPointerGetAttributes(&a, memory + 8));
	assert_int_equal(a.type, cudaMemoryTypeUnregistered);
	OK(cudaProfilerStart());
	OK(cudaProfilerStop());
	OK(cudaLibraryLoadData(&library, wrapper.data, NULL, NULL, 0, NULL, NULL, 0));
	OK(cudaLibraryGetKernel(&kernel, library, "any"));
	OK(cudaLaunchKernel(kernel, one, one, NULL, 0, NULL));
	FAILS(801, cudaLibraryGetKernelCount(&n, library)); /* any image has any kernel */
	cudaGetLastError();
	OK(cudaLibraryUnload(library));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launches),
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
