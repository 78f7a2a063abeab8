/* SPDX-License-Identifier: Apache-2.0 */
/* cudaDeviceProp, out of the driver's attributes; what they do not tell is 0. */
#include <string.h>

#include "runtime.h"

struct field {
	size_t offset;
	CUdevice_attribute attribute;
};

#define FIELD(name, attr) {offsetof(struct cudaDeviceProp, name), CU_DEVICE_ATTRIBUTE_##attr}

static const struct field ints[] = {
	FIELD(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
	FIELD(warpSize, WARP_SIZE),
	FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
	FIELD(maxThreadsDim[0], MAX_BLOCK_DIM_X),
	FIELD(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
	FIELD(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
	FIELD(maxGridSize[0], MAX_GRID_DIM_X),
	FIELD(maxGridSize[1], MAX_GRID_DIM_Y),
	FIELD(maxGridSize[2], MAX_GRID_DIM_Z),
	FIELD(major, COMPUTE_CAPABILITY_MAJOR),
	FIELD(minor, COMPUTE_CAPABILITY_MINOR),
	FIELD(multiProcessorCount, MULTIPROCESSOR_COUNT),
	FIELD(integrated, INTEGRATED),
	FIELD(canMapHostMemory, CAN_MAP_HOST_MEMORY),
	FIELD(concurrentKernels, CONCURRENT_KERNELS),
	FIELD(ECCEnabled, ECC_ENABLED),
	FIELD(pciBusID, PCI_BUS_ID),
	FIELD(pciDeviceID, PCI_DEVICE_ID),
	FIELD(pciDomainID, PCI_DOMAIN_ID),
	FIELD(asyncEngineCount, ASYNC_ENGINE_COUNT),
	FIELD(unifiedAddressing, UNIFIED_ADDRESSING),
	FIELD(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
	FIELD(l2CacheSize, L2_CACHE_SIZE),
	FIELD(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
	FIELD(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
	FIELD(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
	FIELD(managedMemory, MANAGED_MEMORY),
	FIELD(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
	FIELD(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
	FIELD(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
	FIELD(cooperativeLaunch, COOPERATIVE_LAUNCH),
	FIELD(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
	FIELD(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
	FIELD(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED),
	FIELD(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
	FIELD(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
	FIELD(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
	FIELD(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
	FIELD(ipcEventSupported, IPC_EVENT_SUPPORTED),
	FIELD(hostNumaId, HOST_NUMA_ID),
};

static const struct field sizes[] = {
	FIELD(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
	FIELD(memPitch, MAX_PITCH),
	FIELD(totalConstMem, TOTAL_CONSTANT_MEMORY),
	FIELD(textureAlignment, TEXTURE_ALIGNMENT),
	FIELD(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
	FIELD(surfaceAlignment, SURFACE_ALIGNMENT),
	FIELD(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
	FIELD(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
	FIELD(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
};

static CUresult properties(struct cudaDeviceProp *p, int dev)
{
	CUresult r;

	if (p == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	memset(p, 0, sizeof(*p));
	r = rt_drv.f_cuDeviceGetName(p->name, (int)sizeof(p->name), dev);
	if (r != CUDA_SUCCESS) {
		return r;
	}
	rt_drv.f_cuDeviceGetUuid(&p->uuid, dev);
	rt_drv.f_cuDeviceTotalMem(&p->totalGlobalMem, dev);
	for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++) {
		rt_drv.f_cuDeviceGetAttribute((int *)(void *)((char *)p + ints[i].offset),
					      ints[i].attribute, dev);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int v = 0;

		rt_drv.f_cuDeviceGetAttribute(&v, sizes[i].attribute, dev);
		*(size_t *)(void *)((char *)p + sizes[i].offset) = (size_t)v;
	}
	return r;
}

RT_EXPORT cudaError_t CUDARTAPI cudaGetDeviceProperties(struct cudaDeviceProp *p, int dev)
{
	cudaError_t e = rt_init();

	return e != cudaSuccess ? rt_error(e) : rt_done(properties(p, dev));
}
