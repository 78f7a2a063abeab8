/* SPDX-License-Identifier: Apache-2.0 */
/*
 * careless fds FILE: closes all descriptors but the standard ones between its CUDA calls, and has a
 * file of its own behind the number after; prints how large that is, 4 bytes.
 * careless cancel: cancels threads in their CUDA calls, the first one too. None of these is a point
 * of cancellation: prints how many were cancelled within, and how many allocations are left.
 */
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 40 };

static atomic_int within;
static atomic_int left;
static atomic_int started;

static int use_cuda(void)
{
	void *memory = NULL;

	return cudaMalloc(&memory, 1000) != cudaSuccess || cudaFree(memory) != cudaSuccess;
}

static int lose_descriptors(const char *name)
{
	struct stat status = { 0 };
	int failed = use_cuda();
	int fd;

	for (int i = 3; i < 1024; i++) {
		close(i);
	}
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	for (int i = fd + 1; i < 1024; i++) {
		dup2(fd, i);
	}
	failed |= write(fd, "DATA", 4) != 4;
	for (int i = 0; i < 3; i++) {
		failed |= use_cuda();
	}
	fstat(fd, &status);
	printf("size %lld\n", (long long)status.st_size);
	return failed;
}

static void *work(void *argument)
{
	(void)argument;
	started++;
	for (;;) {
		void *memory = NULL;

		within++;
		left++;
		if (cudaMalloc(&memory, 1000) != cudaSuccess || cudaFree(memory) != cudaSuccess) {
			return NULL;
		}
		left--;
		within--;
		pthread_testcancel();
	}
}

static int cancel_threads(void)
{
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;
		void *result;

		started = 0;
		if (pthread_create(&thread, NULL, work, NULL) != 0) {
			return 1;
		}
		while (started == 0) {
		}
		usleep((useconds_t)(i * 50));
		pthread_cancel(thread);
		pthread_join(thread, &result);
	}
	printf("within %d, left %d\n", (int)within, (int)left);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "fds") == 0) {
		return lose_descriptors(argv[2]);
	}
	return argc == 2 && strcmp(argv[1], "cancel") == 0 ? cancel_threads() : 2;
}
