/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a CUDA runtime start: one allocation, whose status is printed. On a simulated driver
 * NVIDIA's runtime looks everything up and then refuses the driver, which is no failure here.
 * Linked to a runtime; or, built with TOUCH_OPEN, given the path of one.
 */
#include <dlfcn.h>
#include <stdio.h>

#ifndef TOUCH_OPEN
#include <cuda_runtime_api.h>

int main(void)
{
	void *p = NULL;

	printf("cudaMalloc %d\n", (int)cudaMalloc(&p, 4096));
	return 0;
}

#else

int main(int argc, char **argv)
{
	int (*cuda_malloc)(void **, size_t) = NULL;
	void *p = NULL;
	void *runtime = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;

	if (runtime == NULL) {
		fprintf(stderr, "touch: %s\n", argc > 1 ? dlerror() : "no runtime named");
		return 1;
	}
	*(void **)&cuda_malloc = dlsym(runtime, "cudaMalloc");
	if (cuda_malloc == NULL) {
		fprintf(stderr, "touch: %s\n", dlerror());
		return 1;
	}
	printf("cudaMalloc %d\n", cuda_malloc(&p, 4096));
	return 0;
}

#endif
