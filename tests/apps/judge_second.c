/* SPDX-License-Identifier: Apache-2.0 */
/* A library with a runtime of its own linked into it. */
#include <cuda_runtime_api.h>

int second_alloc(void **ret, size_t size);
int second_free(void *p);
int second_error(void);

int second_alloc(void **ret, size_t size)
{
	return (int)cudaMalloc(ret, size);
}

int second_free(void *p)
{
	return (int)cudaFree(p);
}

int second_error(void)
{
	return (int)cudaGetLastError();
}
