/* SPDX-License-Identifier: Apache-2.0 */
/* hog BLOCKS: takes so many blocks of 100 MiB, or what it gets, and gives all back. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1000 };

int main(int argc, char **argv)
{
	static void *blocks[MOST];
	int wanted = argc > 1 ? atoi(argv[1]) : 10;
	int taken = 0;

	while (taken < wanted && taken < MOST &&
	       cudaMalloc(&blocks[taken], (size_t)100 << 20) == cudaSuccess) {
		taken++;
	}
	for (int i = 0; i < taken; i++) {
		cudaFree(blocks[i]);
	}
	printf("hog: %d of %d blocks\n", taken, wanted);
	return taken == wanted ? 0 : 1;
}
