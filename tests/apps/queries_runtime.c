/* SPDX-License-Identifier: Apache-2.0 */
/* The same questions of the runtime: queries_runtime runtime CASE. */
#include "apps.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

static void ask_info(bool wants_free, bool wants_total)
{
	size_t free_bytes = 7, total_bytes = 7;
	cudaError_t status = cudaMemGetInfo(wants_free ? &free_bytes : NULL,
					    wants_total ? &total_bytes : NULL);

	printf("info %d", (int)status);
	printf(wants_free ? " %zu" : " -", free_bytes);
	printf(wants_total ? " %zu\n" : " -\n", total_bytes);
	fflush(stdout);
}

static void info(void)
{
	ask_info(true, true);
}

static void nulls(void)
{
	ask_info(false, true);
	ask_info(true, false);
	ask_info(false, false);
}

static void devices(void)
{
	info();
	CHECK(cudaSetDevice(1));
	info();
}

/* What is not the total is what it was: the bus of the simulated device is its number plus 1. */
static void properties(void)
{
	for (int device = 0; device < 2; device++) {
		static struct cudaDeviceProp prop;

		CHECK(cudaGetDeviceProperties(&prop, device));
		printf("properties %zu bus %d memory pools %d\n", prop.totalGlobalMem,
		       prop.pciBusID, prop.memoryPoolsSupported);
	}
	printf("properties %d\n", (int)cudaGetDeviceProperties(NULL, 0));
	cudaGetLastError();
}

/* Pointers that the runtime hands out are heard like all others. */
static void entry_points(void)
{
	enum cudaDriverEntryPointQueryResult found;
	CUresult (*alloc)(CUdeviceptr *, size_t) = NULL;
	CUresult (*free_it)(CUdeviceptr) = NULL;
	CUresult (*alloc_async)(CUdeviceptr *, size_t, CUstream) = NULL;
	void *none = &found;
	CUdeviceptr p = 0;

	CHECK(cudaFree(NULL));
	CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", (void **)&alloc, 12000,
					       cudaEnableDefault, &found));
	CHECK(cudaGetDriverEntryPointByVersion("cuMemFree", (void **)&free_it, 12000,
					       cudaEnableDefault, &found));
	CHECK(alloc(&p, 1000));
	CHECK(free_it(p));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	CHECK(cudaGetDriverEntryPoint("cuMemAllocAsync", (void **)&alloc_async,
				      cudaEnablePerThreadDefaultStream, &found));
	CHECK(cudaGetDriverEntryPoint("cuNoSuchThing", &none, cudaEnableDefault, &found));
#pragma GCC diagnostic pop
	CHECK(alloc_async(&p, 2000, NULL));
	CHECK(cudaFreeAsync((void *)p, NULL));
	printf("found %d %d\n", (int)found, none == NULL);
}

static void first_call(void)
{
	info();
	info();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "info", info },	{ "nulls", nulls },	    { "devices", devices },
		{ "properties", properties }, { "entry_points", entry_points },
		{ "first_call", first_call },
	};

	for (size_t i = 0; argc > 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[2]) == 0) {
			cases[i].run();
			return 0;
		}
	}
	fprintf(stderr, "queries_runtime runtime CASE\n");
	return 2;
}
