/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is linked to the runtime; for reopen.c. */
#include <cuda_runtime_api.h>

int use_cuda(void);

int use_cuda(void)
{
	void *memory = NULL;
	int result = (int)cudaMalloc(&memory, 4096);

	return result != 0 ? result : (int)cudaFree(memory);
}
