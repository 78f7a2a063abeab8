/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks NVML how much memory there is, before and after CUDA is there: nvml WAY, linked or
 * dlsym. A line for each device and version: index, status, and the figures in MiB.
 */
#include "../apps.h"
#include "nvml.h"

#include <cuda.h>

static struct {
	nvmlReturn_t (*init)(void);
	nvmlReturn_t (*handle)(unsigned int, nvmlDevice_t *);
	nvmlReturn_t (*memory)(nvmlDevice_t, nvmlMemory_t *);
	nvmlReturn_t (*memory_v2)(nvmlDevice_t, nvmlMemory_v2_t *);
} nvml;

static void find_functions(void)
{
#ifdef WAY_LINKED
	nvml.init = nvmlInit_v2;
	nvml.handle = nvmlDeviceGetHandleByIndex_v2;
	nvml.memory = nvmlDeviceGetMemoryInfo;
	nvml.memory_v2 = nvmlDeviceGetMemoryInfo_v2;
#else
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

	REQUIRE(library != NULL);
	*(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
	*(void **)&nvml.handle = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&nvml.memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
	*(void **)&nvml.memory_v2 = dlsym(library, "nvmlDeviceGetMemoryInfo_v2");
#endif
}

static void ask(unsigned int index)
{
	nvmlMemory_v2_t second = { .version = nvmlMemory_v2 };
	nvmlMemory_v2_t other = { .version = 7, .total = 5 };
	nvmlMemory_t first = { 0 };
	nvmlDevice_t device;

	CHECK(nvml.handle(index, &device));
	printf("%u v1 %d", index, nvml.memory(device, &first));
	printf(" total %llu free %llu used %llu\n", first.total >> 20, first.free >> 20,
	       first.used >> 20);
	printf("%u v2 %d", index, nvml.memory_v2(device, &second));
	printf(" total %llu free %llu used %llu reserved %llu\n", second.total >> 20,
	       second.free >> 20, second.used >> 20, second.reserved >> 20);
	if (index == 3) {
		printf("%d %d", nvml.memory(device, NULL), nvml.memory_v2(device, &other));
		printf(" %llu\n", other.total);
	}
	fflush(stdout);
}

int main(void)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*init)(unsigned int) = NULL;

	find_functions();
	CHECK(nvml.init());
	ask(3);
	*(void **)&init = dlsym(libcuda, "cuInit");
	CHECK(init(0));
	ask(3);
	ask(2);
	ask(1);
	return 0;
}
