/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames: memory that is taken by one function for two callers, and never given back; and by a
 * third one, which runs out of it.
 */
#include <cuda_runtime_api.h>
#include <stddef.h>

static void *taken[3];

/* What follows each call keeps the compiler from making a jump of it. */
__attribute__((noinline)) static int take(size_t bytes, int place)
{
	int result = (int)cudaMalloc(&taken[place], bytes);

	return result != 0 ? result : place;
}

__attribute__((noinline)) static int load_model(void)
{
	return take(1 << 20, 0) + 1;
}

__attribute__((noinline)) static int make_batch(void)
{
	return take(4096, 1) + 2;
}

__attribute__((noinline)) static int grow(void)
{
	return take((size_t)1 << 40, 2) + 3;
}

int main(void)
{
	int sum = load_model();

	sum += make_batch();
	sum += grow();
	return sum == 0;
}
