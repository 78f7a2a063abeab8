/* SPDX-License-Identifier: Apache-2.0 */
/* The look-ups as cudart 13.0 makes them (measured: interception.md, coverage.md M1 to M4). */
#include <dlfcn.h>

#include "runtime.h"

static cudaError_t ask(PFN_cuGetProcAddress_v12000 lookup, const char *base, void *ret,
		       int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	void *p = NULL;

	if (lookup(base, &p, version, flags, &status) != CUDA_SUCCESS || p == NULL) {
		return cudaErrorSymbolNotFound;
	}
	*(void **)ret = p;
	return cudaSuccess;
}

cudaError_t rt_find_driver(struct rt_driver *d)
{
	CUdriverProcAddressQueryResult status;
	PFN_cuGetProcAddress_v12000 first, second = NULL;
	PFN_cuGetProcAddress_v11030 old = NULL;
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);
	void *p = NULL;

	if (handle == NULL) {
		return cudaErrorInsufficientDriver;
	}
	p = dlsym(handle, "cuGetProcAddress_v2");
	if (p == NULL) {
		return cudaErrorInsufficientDriver;
	}
	*(void **)&first = p;
	p = NULL;
	first("", &p, 0, 0, &status);
	ask(first, "cuGetProcAddress", &old, 11030, 0);
	if (ask(first, "cuGetProcAddress", &second, 12000, 0) != cudaSuccess) {
		return cudaErrorInsufficientDriver;
	}
	d->lookup = second;
/* Names are pasted and quoted at once: cuda.h would turn a base name passed on into a symbol. */
#define ASK(field, name, version, flags)                                                           \
	if (ask(second, name, &d->field, version, flags) != cudaSuccess &&                         \
	    (version) <= RT_LEAST_DRIVER) {                                                        \
		return cudaErrorSymbolNotFound;                                                    \
	}
#define DRV(base, version) ASK(f_##base, #base, version, 0)
#define DRV_PT(base, version, pt_version, suffix)                                                  \
	ASK(f_##base, #base, version, 0)                                                           \
	ASK(f_##base##_pt, #base, pt_version, 2)
#include "driver.def"
#undef DRV
#undef DRV_PT
	return cudaSuccess;
}
