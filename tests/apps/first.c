/* SPDX-License-Identifier: Apache-2.0 */
/*
 * first THREADS PAIRS BYTES [DEVICE]: allocations that are the program's first calls of CUDA, by
 * threads that begin at once. Prints how many failed; "context" first where that is current in
 * each thread before.
 */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t start;
static atomic_int failures;
static int pairs;
static size_t bytes;
static int device = -1;
static int with_context;

static void *work(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&start);
	if (device >= 0 && cudaSetDevice(device) != cudaSuccess) {
		failures++;
	}
	if (with_context && cudaFree(NULL) != cudaSuccess) {
		failures++;
	}
	for (int i = 0; i < pairs; i++) {
		void *memory = NULL;

		if (cudaMalloc(&memory, bytes) != cudaSuccess || cudaFree(memory) != cudaSuccess) {
			failures++;
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int count;

	with_context = argc > 1 && strcmp(argv[1], "context") == 0;
	argv += with_context;
	argc -= with_context;
	if (argc < 4 || (count = atoi(argv[1])) < 1 || count > 64) {
		return 2;
	}
	pairs = atoi(argv[2]);
	bytes = strtoull(argv[3], NULL, 10);
	device = argc > 4 ? atoi(argv[4]) : -1;
	pthread_barrier_init(&start, NULL, (unsigned int)count);
	for (int i = 0; i < count; i++) {
		if (pthread_create(&threads[i], NULL, work, NULL) != 0) {
			return 2;
		}
	}
	for (int i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
	}
	printf("failed %d\n", (int)failures);
	return 0;
}
