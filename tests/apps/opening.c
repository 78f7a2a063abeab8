/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opening WAY within|before: a library's constructor uses CUDA, with the loader's lock held, while
 * another thread makes the process's first call: from within the constructor, or from before.
 */
#include "opening.h"

#include "apps.h"

#include <cuda.h>
#include <unistd.h>

pthread_t opening_thread;

static void allocate(size_t bytes)
{
	CUcontext context;
	CUdeviceptr p;

	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemAlloc(&p, bytes));
	CHECK(cuMemFree(p));
}

static void *allocate_1000(void *unused)
{
	allocate(1000);
	return unused;
}

void opening_start(void)
{
	CHECK(pthread_create(&opening_thread, NULL, allocate_1000, NULL));
	usleep(200 * 1000);
}

void opening_allocate(void)
{
	allocate(2000);
}

int main(int argc, char **argv)
{
	char path[4096];
	bool within = argc > 2 && strcmp(argv[2], "within") == 0;

	if (!within) {
		opening_start();
	}
	setenv("OPENING_WITHIN", within ? "1" : "0", 1);
	/* Beside the program: through a sanitizer's dlopen its RUNPATH finds nothing. */
	snprintf(path, sizeof(path), "%.*s/libopening_library.so",
		 (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
	REQUIRE(dlopen(path, RTLD_NOW) != NULL);
	CHECK(pthread_join(opening_thread, NULL));
	allocate(3000);
	print_truth();
	return 0;
}
