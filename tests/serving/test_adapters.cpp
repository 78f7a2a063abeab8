// SPDX-License-Identifier: Apache-2.0
// T-01 to T-37 by the C++ adapter; PyTorch's entry points; a policy served by a user's
// IGpuAsyncAllocator (with the argument "served").
#include <cuweir/pytorch.h>
#include <cuweir/tensorrt.hpp>

#include <cuda.h>
#include <sim.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__,            \
				     #condition);                                                  \
			std::exit(1);                                                              \
		}                                                                                  \
	} while (0)

static std::uint64_t total(std::uint64_t *ret_held = nullptr)
{
	cuweir_totals totals = {};

	totals.struct_size = sizeof(totals);
	CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
	CHECK(cuweir_get_totals(0, CUWEIR_KIND_DEVICE, &totals) == CUWEIR_SUCCESS);
	CHECK(totals.current + totals.held == cuweir_sim_used(0, CUWEIR_SIM_DEVICE));
	if (ret_held != nullptr) {
		*ret_held = totals.held;
	}
	return totals.current;
}

static void adapter()
{
	cuweir::tensorrt::allocator object;
	nvinfer1::IGpuAsyncAllocator &allocator = object;
	void *p, *q;

	CHECK(sizeof(object) == sizeof(void *));                          // T-03
	CHECK(std::strcmp(allocator.getInterfaceInfo().kind, "IGpuAllocator") == 0); // T-06
	CHECK(allocator.getInterfaceInfo().major == 1);
	CHECK(allocator.getAPILanguage() == nvinfer1::APILanguage::kCPP); // T-07
	CHECK(allocator.allocateAsync(0, 256, 0, nullptr) == nullptr);    // T-10
	p = allocator.allocateAsync(1000, 256, 0, nullptr);               // T-11
	CHECK(p != nullptr && total() == 1000);
	CHECK(allocator.allocateAsync(std::uint64_t(3) << 60, 0, 0, nullptr) == nullptr); // T-12
	CHECK(allocator.allocateAsync(100, 512, 0, nullptr) == nullptr);  // T-15
	CHECK(allocator.deallocateAsync(p, nullptr));                     // T-17
	CHECK(allocator.deallocateAsync(nullptr, nullptr));               // T-18
	CHECK(!allocator.deallocateAsync(&object, nullptr));              // T-19
	CHECK(!allocator.deallocateAsync(p, nullptr));                    // T-20
	p = allocator.allocateAsync(1000, 0, 1u << int(nvinfer1::AllocatorFlag::kRESIZABLE),
				    nullptr);
	q = allocator.reallocate(p, 256, 5000);                           // T-29
	CHECK(q != nullptr && q != p && total() == 5000);
	CHECK(allocator.reallocate(q, 256, std::uint64_t(3) << 60) == nullptr); // T-30
	CHECK(allocator.deallocateAsync(q, nullptr));
	CHECK(total() == 0);
}

static void torch()
{
	CUstream stream;
	void *p;

	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
	CHECK(cuweir_torch_alloc(0, 0, stream) == nullptr);
	p = cuweir_torch_alloc(4096, 0, stream);
	CHECK(p != nullptr && total() == 4096);
	cuweir_torch_free(p, 4096, 0, stream);
	cuweir_torch_free(nullptr, 0, 0, stream);
	CHECK(total() == 0);
	bool thrown = false;
	try {
		cuweir_torch_alloc(std::size_t(3) << 60, 0, stream);
	} catch (const std::bad_alloc &) {
		thrown = true;
	}
	CHECK(thrown);
	CHECK(cuStreamDestroy(stream) == CUDA_SUCCESS);
}

static void served()
{
	std::uint64_t held = 0;
	CUdeviceptr p = 0, q = 0;

	CHECK(cuMemAllocAsync(&p, 1000, nullptr) == CUDA_SUCCESS);
	CHECK(total(&held) == 1000 && held == 3096);
	CHECK(cuMemAlloc(&q, 5000) == CUDA_SUCCESS);
	CHECK(total(&held) == 6000 && held == 3096 + 3192);
	CHECK(cuMemFree(q) == CUDA_SUCCESS);
	CHECK(cuMemFreeAsync(p, nullptr) == CUDA_SUCCESS);
	CHECK(total(&held) == 0 && held == 0);
	CHECK(cuMemAlloc(&q, 666) == CUDA_ERROR_OUT_OF_MEMORY); // T-05
	CHECK(cuMemFree(p) != CUDA_SUCCESS);
	CHECK(total(&held) == 0 && held == 0);
}

int main(int argc, char **argv)
{
	CUcontext context;

	CHECK(cuInit(0) == CUDA_SUCCESS);
	CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
	CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
	if (argc > 1 && std::strcmp(argv[1], "served") == 0) {
		served();
	} else {
		adapter();
		torch();
	}
	return 0;
}
