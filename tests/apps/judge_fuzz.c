/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that takes memory, at random and in one thread: virtual memory, pools, arrays, mipmaps,
 * registered memory, graphs, on two devices. Wrong calls are made now and then, and their status
 * is believed. What is there at the end, the driver and the books must agree on.
 */
#include "judge.h"

enum { DEVICES = 2, MANY = 6, SLOTS = 4, STEPS = 1500 };

#define PIECE ((size_t)2 << 20)

struct range {
	CUdeviceptr start;
	bool mapped[SLOTS];
};

static unsigned int state;
static CUcontext primary[DEVICES];
static CUstream streams[DEVICES];
static CUmemGenericAllocationHandle handles[MANY];
static struct range ranges[MANY];
static CUmemoryPool pools[MANY];
static CUdeviceptr blocks[4 * MANY];
static CUarray arrays[MANY];
static CUmipmappedArray mipmaps[MANY];
static char *host[MANY];
static bool registered[MANY];
static CUgraphExec execs[MANY];
static CUdeviceptr planned[MANY];

static unsigned int below(unsigned int limit)
{
	return (unsigned int)rand_r(&state) / 7u % limit;
}

static void fuzz_handle(unsigned int i)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)below(DEVICES) },
	};

	if (handles[i] != 0) {
		if (cuMemRelease(handles[i]) == CUDA_SUCCESS) {
			handles[i] = 0;
		}
	} else if (cuMemCreate(&handles[i], PIECE * (1 + below(2)), &prop, 0) != CUDA_SUCCESS) {
		handles[i] = 0;
	}
}

static void fuzz_range(unsigned int i)
{
	struct range *range = &ranges[i];
	unsigned int slot = below(SLOTS);
	unsigned int h = below(MANY);

	if (range->start == 0) {
		if (cuMemAddressReserve(&range->start, SLOTS * PIECE, 0, 0, 0) != CUDA_SUCCESS) {
			range->start = 0;
		}
		return;
	}
	switch (below(4)) {
	case 0:
		if (cuMemAddressFree(range->start, SLOTS * PIECE) == CUDA_SUCCESS) {
			memset(range, 0, sizeof(*range));
		}
		break;
	case 1:
		(void)cuMemUnmap(range->start + slot * PIECE, PIECE * (1 + below(2)));
		break;
	case 2: {
		CUmemGenericAllocationHandle again;

		if (cuMemRetainAllocationHandle(&again, (void *)(range->start + slot * PIECE)) ==
			    CUDA_SUCCESS &&
		    cuMemRelease(again) != CUDA_SUCCESS) {
			printf("a retained handle is not released\n");
		}
		break;
	}
	default:
		if (handles[h] != 0) {
			(void)cuMemMap(range->start + slot * PIECE, PIECE * (1 + below(2)), 0,
				       handles[h], 0);
		}
		break;
	}
}

static void fuzz_pool(unsigned int i)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)below(DEVICES) },
		.maxSize = below(3) == 0 ? 40000 : 0,
	};

	if (pools[i] == NULL) {
		if (cuMemPoolCreate(&pools[i], &props) != CUDA_SUCCESS) {
			pools[i] = NULL;
		}
	} else if (below(3) == 0) {
		if (cuMemPoolDestroy(pools[i]) == CUDA_SUCCESS) {
			pools[i] = NULL;
		}
	} else if (below(3) == 0) {
		(void)cuDeviceSetMemPool((CUdevice)below(DEVICES), pools[i]);
	} else {
		(void)cuMemPoolTrimTo(pools[i], below(2) * 10000);
	}
}

static void fuzz_block(CUdeviceptr *block)
{
	CUstream stream = streams[below(DEVICES)];
	unsigned int i = below(MANY);
	size_t size = below(20000);
	CUresult status;

	if (*block != 0) {
		if ((below(2) == 0 ? cuMemFreeAsync(*block, stream) : cuMemFree(*block)) ==
		    CUDA_SUCCESS) {
			*block = 0;
		}
		return;
	}
	switch (below(4)) {
	case 0:
		status = pools[i] != NULL ? cuMemAllocFromPoolAsync(block, size, pools[i], stream)
					  : CUDA_ERROR_INVALID_VALUE;
		break;
	case 1:
		status = cuMemAllocAsync(block, size, stream);
		break;
	case 2:
		status = cuMemAllocManaged(block, size, CU_MEM_ATTACH_HOST);
		break;
	default:
		status = cuMemAlloc(block, size);
		break;
	}
	if (status != CUDA_SUCCESS) {
		*block = 0;
	}
}

static void fuzz_array(unsigned int i)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = {
		.Width = 1 + below(60), .Height = below(20), .Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1u << below(3),
	};

	if (below(2) == 0) {
		if (arrays[i] != NULL) {
			arrays[i] = cuArrayDestroy(arrays[i]) == CUDA_SUCCESS ? NULL : arrays[i];
		} else if (cuArray3DCreate(&arrays[i], &shape) != CUDA_SUCCESS) {
			arrays[i] = NULL;
		}
	} else if (mipmaps[i] != NULL) {
		mipmaps[i] = cuMipmappedArrayDestroy(mipmaps[i]) == CUDA_SUCCESS ? NULL
										 : mipmaps[i];
	} else if (cuMipmappedArrayCreate(&mipmaps[i], &shape, 1 + below(3)) != CUDA_SUCCESS) {
		mipmaps[i] = NULL;
	}
}

static void fuzz_host(unsigned int i)
{
	if (host[i] == NULL) {
		host[i] = aligned_alloc(4096, 65536);
		REQUIRE(host[i] != NULL);
	}
	if (below(8) == 0) {
		(void)cuMemHostUnregister(host[i] + 16);
	} else if (registered[i] && below(3) != 0) {
		registered[i] = cuMemHostUnregister(host[i]) != CUDA_SUCCESS;
	} else {
		registered[i] |= cuMemHostRegister(host[i], 1 + below(65536),
						   CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS;
	}
}

static void make_graph(unsigned int i)
{
	CUgraph graph = NULL;
	unsigned long long flags;

	if (cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS) {
		return;
	}
	if (cuMemAllocAsync(&planned[i], 1 + below(5000), streams[0]) != CUDA_SUCCESS) {
		planned[i] = 0;
	}
	if (below(2) == 0 && planned[i] != 0 &&
	    cuMemFreeAsync(planned[i], streams[0]) == CUDA_SUCCESS) {
		planned[i] = 0;
	}
	if (cuStreamEndCapture(streams[0], &graph) != CUDA_SUCCESS) {
		return;
	}
	flags = below(2) == 0 ? 0 : CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	if (cuGraphInstantiateWithFlags(&execs[i], graph, flags) != CUDA_SUCCESS) {
		execs[i] = NULL;
	}
	CHECK(cuGraphDestroy(graph));
}

static void fuzz_graph(unsigned int i)
{
	if (execs[i] == NULL) {
		make_graph(i);
		return;
	}
	switch (below(5)) {
	case 0:
		if (cuGraphExecDestroy(execs[i]) == CUDA_SUCCESS) {
			execs[i] = NULL;
		}
		break;
	case 1:
		if (planned[i] != 0) {
			(void)cuMemFreeAsync(planned[i], streams[0]);
		}
		break;
	default:
		(void)cuGraphLaunch(execs[i], streams[0]);
		break;
	}
}

void judge_fuzz(unsigned int seed)
{
	state = seed + 1;
	CHECK(cuInit(0));
	for (int device = 0; device < DEVICES; device++) {
		CHECK(cuDevicePrimaryCtxRetain(&primary[device], device));
		CHECK(cuCtxSetCurrent(primary[device]));
		CHECK(cuStreamCreate(&streams[device], CU_STREAM_NON_BLOCKING));
	}
	for (int i = 0; i < STEPS; i++) {
		unsigned int which = below(MANY);

		switch (below(9)) {
		case 0:
			fuzz_handle(which);
			break;
		case 1:
			fuzz_range(which);
			break;
		case 2:
			fuzz_pool(which);
			break;
		case 3:
		case 4:
			fuzz_block(&blocks[below(4 * MANY)]);
			break;
		case 5:
			fuzz_array(which);
			break;
		case 6:
			fuzz_host(which);
			break;
		case 7:
			fuzz_graph(which);
			break;
		default:
			CHECK(cuCtxSetCurrent(primary[below(DEVICES)]));
			CHECK(cuStreamSynchronize(streams[below(DEVICES)]));
			break;
		}
	}
}
