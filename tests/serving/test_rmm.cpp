// SPDX-License-Identifier: Apache-2.0
// RMM's own types on top of cuweir's memory resource.
#include <cuweir/rmm.hpp>

#include <cuda.h>
#include <rmm/resource_ref.hpp>
#include <sim.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__,            \
				     #condition);                                                  \
			std::exit(1);                                                              \
		}                                                                                  \
	} while (0)

static std::uint64_t total()
{
	cuweir_totals totals = {};

	totals.struct_size = sizeof(totals);
	CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
	CHECK(cuweir_get_totals(0, CUWEIR_KIND_DEVICE, &totals) == CUWEIR_SUCCESS);
	CHECK(totals.current + totals.held == cuweir_sim_used(0, CUWEIR_SIM_DEVICE));
	return totals.current;
}

int main()
{
	cuweir::rmm_resource resource;
	CUcontext context;
	CUstream stream;
	bool thrown = false;

	CHECK(cuInit(0) == CUDA_SUCCESS);
	CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
	CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);

	rmm::device_async_resource_ref ref{ resource };
	void *p = ref.allocate(cuda::stream_ref{ stream }, 1000, 256);
	CHECK(p != nullptr && total() == 1000);
	ref.deallocate(cuda::stream_ref{ stream }, p, 1000, 256);
	p = ref.allocate_sync(2000, 256);
	CHECK(total() == 2000);
	ref.deallocate_sync(p, 2000, 256);
	CHECK(total() == 0);
	CHECK(resource.allocate(cuda::stream_ref{ stream }, 0) == nullptr);
	try {
		(void)ref.allocate(cuda::stream_ref{ stream }, std::size_t(3) << 60, 256);
	} catch (const rmm::out_of_memory &) {
		thrown = true;
	}
	CHECK(thrown);
	thrown = false;
	try {
		(void)resource.allocate_sync(100, 512);
	} catch (const rmm::out_of_memory &) {
	} catch (const rmm::bad_alloc &) {
		thrown = true;
	}
	CHECK(thrown && total() == 0);
	CHECK(cuStreamDestroy(stream) == CUDA_SUCCESS);
	return 0;
}
