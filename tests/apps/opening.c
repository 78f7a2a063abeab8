/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opening WAY within|before|joined: a library's constructor uses CUDA, with the loader's lock held,
 * while another thread makes the process's first call: from within the constructor, or from before.
 * Joined: it has yet another thread use CUDA, and waits for that one.
 */
#include "opening.h"

#include "apps.h"

#include <cuda.h>
#include <unistd.h>

pthread_t opening_thread;
atomic_bool opening_first_call;
atomic_bool opening_in_open;
atomic_bool opening_in_constructor;

void opening_wait(atomic_bool *flag)
{
	for (int i = 0; i < 20000 && !atomic_load(flag); i++) {
		usleep(1000);
	}
}

static void allocate(size_t bytes)
{
	CUcontext context;
	CUdeviceptr p;

	CHECK(cuInit(0));
	/* The next one opens. */
	atomic_store(&opening_first_call, true);
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
	opening_wait(&opening_first_call);
	usleep(300 * 1000);
}

void opening_allocate(void)
{
	allocate(2000);
}

static void *allocate_2000(void *unused)
{
	allocate(2000);
	return unused;
}

void opening_allocate_joined(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, allocate_2000, NULL));
	CHECK(pthread_join(thread, NULL));
}

int main(int argc, char **argv)
{
	char path[4096];

	REQUIRE(argc > 2);
	setenv("OPENING", argv[2], 1);
	if (strcmp(argv[2], "before") == 0) {
		opening_start();
		opening_wait(&opening_in_open);
	}
	/* Beside the program: through a sanitizer's dlopen its RUNPATH finds nothing. */
	snprintf(path, sizeof(path), "%.*s/libopening_library.so",
		 (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
	REQUIRE(dlopen(path, RTLD_NOW) != NULL);
	CHECK(pthread_join(opening_thread, NULL));
	allocate(3000);
	print_truth();
	return 0;
}
