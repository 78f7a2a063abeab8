/* SPDX-License-Identifier: Apache-2.0 */
/* leaky: twenty frames, each with its scratch memory; and each forgets a small buffer. */
#include <cuda_runtime_api.h>
#include <stdio.h>

static int take_statistics(void)
{
	void *forgotten;

	return cudaMalloc(&forgotten, 65536) == cudaSuccess;
}

static int do_frame(void)
{
	void *scratch;

	if (cudaMalloc(&scratch, 32 << 20) != cudaSuccess) {
		return 0;
	}
	return take_statistics() && cudaFree(scratch) == cudaSuccess;
}

int main(void)
{
	for (int frame = 0; frame < 20; frame++) {
		if (!do_frame()) {
			fprintf(stderr, "leaky: frame %d: out of memory\n", frame + 1);
			return 1;
		}
	}
	printf("leaky: 20 frames\n");
	return 0;
}
