/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oom [MIB]: takes twelve blocks of device memory as fast as it can, each a tenth of what is
 * free (or MIB), while a second thread, which is slower, gives the oldest back: so it runs out
 * unless somebody waits. A plain CUDA program, for nvcc or for any C compiler.
 */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCKS 12
#define KEPT 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void *blocks[BLOCKS];
static int taken;

static void *consume(void *unused)
{
	(void)unused;
	for (int done = 0; done < BLOCKS - KEPT; done++) {
		pthread_mutex_lock(&lock);
		while (taken - done < KEPT) {
			pthread_cond_wait(&changed, &lock);
		}
		pthread_mutex_unlock(&lock);
		usleep(150000);
		cudaFree(blocks[done]);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	size_t free_bytes, total_bytes, size;
	pthread_t consumer;

	if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) {
		fprintf(stderr, "oom: no CUDA device\n");
		return 2;
	}
	size = argc > 1 ? strtoull(argv[1], NULL, 10) << 20 : (free_bytes / 10) & ~(size_t)4095;
	if (pthread_create(&consumer, NULL, consume, NULL) != 0) {
		return 2;
	}
	for (int i = 0; i < BLOCKS; i++) {
		cudaError_t status = cudaMalloc(&blocks[i], size);

		if (status != cudaSuccess) {
			printf("oom: block %d of %d: %s\n", i + 1, BLOCKS,
			       cudaGetErrorString(status));
			return 1;
		}
		pthread_mutex_lock(&lock);
		taken++;
		pthread_cond_signal(&changed);
		pthread_mutex_unlock(&lock);
	}
	pthread_join(consumer, NULL);
	for (int i = BLOCKS - KEPT; i < BLOCKS; i++) {
		cudaFree(blocks[i]);
	}
	printf("oom: all %d blocks of %zu MiB were had\n", BLOCKS, size >> 20);
	return 0;
}
