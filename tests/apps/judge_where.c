/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that push, pop, set, create and destroy contexts of several devices at random, by the
 * driver and by the runtime, and take and give back memory meanwhile. What is live at the end
 * must be on the books of its own device.
 */
#include "judge.h"

#include <pthread.h>

enum { DEVICES = 3, THREADS = 4, STEPS = 600, KEPT = 24, DEPTH = 4, OWN = 3 };

enum sort { LINEAR, ORDERED, PINNED };

struct block {
	CUdeviceptr p;
	enum sort sort;
	CUcontext context; /* that it goes with; NULL: none */
};

struct walker {
	pthread_t thread;
	unsigned int state;
	struct block kept[KEPT];
	CUcontext own[OWN];
	CUstream streams[DEVICES];
};

static CUcontext primary[DEVICES];

static unsigned int below(struct walker *walker, unsigned int limit)
{
	return (unsigned int)rand_r(&walker->state) / 7u % limit;
}

static void forget(struct walker *walker, CUcontext context)
{
	for (int i = 0; i < KEPT; i++) {
		if (walker->kept[i].p != 0 && walker->kept[i].context == context) {
			walker->kept[i].p = 0;
		}
	}
}

/* A context of the thread's own: made (and current then), made current, or destroyed. */
static void own_context(struct walker *walker)
{
	CUcontext *own = &walker->own[below(walker, OWN)];
	CUcontext popped;

	if (*own == NULL) {
		CHECK(cuCtxCreate_v2(own, 0, (CUdevice)below(walker, DEVICES)));
		if (below(walker, 2) == 0) {
			CHECK(cuCtxPopCurrent(&popped));
		}
	} else if (below(walker, 3) == 0) {
		CUcontext current;

		CHECK(cuCtxGetCurrent(&current));
		forget(walker, *own);
		/* Where it is current it is popped; deeper down it is left behind. */
		if (current == *own) {
			CHECK(cuCtxDestroy(*own));
		} else {
			CHECK(cuCtxPushCurrent(*own));
			CHECK(cuCtxDestroy(*own));
		}
		*own = NULL;
	} else {
		CHECK(cuCtxSetCurrent(*own));
	}
}

static void move(struct walker *walker)
{
	CUcontext popped;
	int device = (int)below(walker, DEVICES);

	switch (below(walker, 6)) {
	case 0:
		CHECK(cuCtxPushCurrent(primary[device]));
		break;
	case 1:
		(void)cuCtxPopCurrent(&popped);
		break;
	case 2:
		CHECK(cuCtxSetCurrent(primary[device]));
		break;
	case 3:
		CHECK(cudaSetDevice(device));
		break;
	case 4:
		(void)cuCtxSetCurrent(NULL);
		break;
	default:
		own_context(walker);
		break;
	}
}

/* Without a current context there may be no memory, and that is told by a status. */
static void take(struct walker *walker, struct block *block)
{
	size_t size = 1 + below(walker, 5000);
	unsigned int what = below(walker, 5);
	CUstream stream = walker->streams[below(walker, DEVICES)];
	CUresult status;

	block->context = NULL;
	(void)cuCtxGetCurrent(&block->context);
	block->sort = LINEAR;
	switch (what) {
	case 0:
		status = cuMemAllocHost((void **)&block->p, size);
		block->sort = PINNED;
		break;
	case 1:
		status = cuMemAllocManaged(&block->p, size, CU_MEM_ATTACH_GLOBAL);
		break;
	case 2:
	case 3:
		status = cuMemAllocAsync(&block->p, size, what == 2 ? stream : NULL);
		block->sort = ORDERED;
		block->context = NULL;
		break;
	default:
		status = cuMemAlloc(&block->p, size);
		break;
	}
	if (status != CUDA_SUCCESS) {
		block->p = 0;
	}
}

/* The memory says which device it is of, not the current context. */
static void give(struct block *block)
{
	CUresult status = block->sort == PINNED ? cuMemFreeHost((void *)block->p)
						: cuMemFree(block->p);

	if (status == CUDA_SUCCESS) {
		block->p = 0;
	}
}

static void *walk(void *argument)
{
	struct walker *walker = argument;

	for (int device = 0; device < DEVICES; device++) {
		CHECK(cuCtxSetCurrent(primary[device]));
		CHECK(cuStreamCreate(&walker->streams[device], CU_STREAM_NON_BLOCKING));
	}
	for (int i = 0; i < STEPS; i++) {
		struct block *block = &walker->kept[below(walker, KEPT)];

		if (below(walker, 3) == 0) {
			move(walker);
		} else if (block->p == 0) {
			take(walker, block);
		} else {
			give(block);
		}
	}
	return NULL;
}

void judge_contexts(unsigned int seed)
{
	static struct walker walkers[THREADS];

	CHECK(cuInit(0));
	for (int device = 0; device < DEVICES; device++) {
		CHECK(cuDevicePrimaryCtxRetain(&primary[device], device));
	}
	for (int i = 0; i < THREADS; i++) {
		walkers[i].state = seed * THREADS + (unsigned int)i + 1;
		CHECK(pthread_create(&walkers[i].thread, NULL, walk, &walkers[i]));
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK(pthread_join(walkers[i].thread, NULL));
	}
}

/* ---- many threads, two devices, three kinds ---------------------------------------------- */

enum { CROWD = 8, CROWD_STEPS = 4000 };

static void *crowd_member(void *argument)
{
	struct walker *walker = argument;

	for (int i = 0; i < CROWD_STEPS; i++) {
		struct block *block = &walker->kept[below(walker, KEPT)];

		if (i % 100 == 0) {
			CHECK(cuCtxSetCurrent(primary[below(walker, 2)]));
		}
		if (block->p == 0) {
			take(walker, block);
			REQUIRE(block->p != 0);
		} else {
			give(block);
			REQUIRE(block->p == 0);
		}
	}
	return NULL;
}

void judge_crowd(unsigned int seed)
{
	static struct walker walkers[CROWD];

	CHECK(cuInit(0));
	for (int device = 0; device < 2; device++) {
		CHECK(cuDevicePrimaryCtxRetain(&primary[device], device));
	}
	for (int i = 0; i < CROWD; i++) {
		walkers[i].state = seed * CROWD + (unsigned int)i + 1;
		CHECK(pthread_create(&walkers[i].thread, NULL, crowd_member, &walkers[i]));
	}
	for (int i = 0; i < CROWD; i++) {
		CHECK(pthread_join(walkers[i].thread, NULL));
	}
}
