/* SPDX-License-Identifier: Apache-2.0 */
/* Device attributes, error names, driver entry points. */
#include <stddef.h>

#include "runtime.h"

static const struct {
	const char *name;
	int value;
} errors[] = {
#define ERROR(name, value) {#name, value},
#include "errors.def"
#undef ERROR
};

static const char *error_name(cudaError_t e, const char *unknown)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].value == (int)e) {
			return errors[i].name;
		}
	}
	return unknown;
}

RT_EXPORT const char *CUDARTAPI cudaGetErrorName(cudaError_t e)
{
	return error_name(e, "unrecognized error code");
}

RT_EXPORT const char *CUDARTAPI cudaGetErrorString(cudaError_t e)
{
	switch (e) {
	case cudaSuccess:
		return "no error";
	case cudaErrorInvalidValue:
		return "invalid argument";
	case cudaErrorMemoryAllocation:
		return "out of memory";
	default:
		return error_name(e, "unrecognized error code");
	}
}

RT_EXPORT cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *version)
{
	if (version == NULL) {
		return rt_error(cudaErrorInvalidValue);
	}
	*version = CUDART_VERSION;
	return cudaSuccess;
}

/* 0 where there is no driver, not an error. */
RT_EXPORT cudaError_t CUDARTAPI cudaDriverGetVersion(int *version)
{
	if (version == NULL) {
		return rt_error(cudaErrorInvalidValue);
	}
	*version = 0;
	if (rt_init() == cudaErrorInsufficientDriver) {
		return cudaSuccess;
	}
	return rt_done(rt_drv.f_cuDriverGetVersion(version));
}

RT_EXPORT cudaError_t CUDARTAPI cudaDeviceGetAttribute(int *v, enum cudaDeviceAttr a, int dev)
{
	cudaError_t e = rt_init();

	return e != cudaSuccess
		       ? rt_error(e)
		       : rt_done(rt_drv.f_cuDeviceGetAttribute(v, (CUdevice_attribute)a, dev));
}

RT_EXPORT cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char *text, int len, int dev)
{
	cudaError_t e = rt_init();

	return e != cudaSuccess ? rt_error(e)
				: rt_done(rt_drv.f_cuDeviceGetPCIBusId(text, len, dev));
}

/* They do nothing where no profiler is attached. */
RT_EXPORT cudaError_t CUDARTAPI cudaProfilerStart(void);
RT_EXPORT cudaError_t CUDARTAPI cudaProfilerStop(void);

cudaError_t CUDARTAPI cudaProfilerStart(void)
{
	RT_IN_CTX(rt_drv.f_cuProfilerStart());
}

cudaError_t CUDARTAPI cudaProfilerStop(void)
{
	RT_IN_CTX(rt_drv.f_cuProfilerStop());
}

/* The program's look-up goes through the function that this runtime was given for look-ups. */
static cudaError_t entry_point(const char *symbol, void **fn, int version,
			       unsigned long long flags, bool per_thread,
			       enum cudaDriverEntryPointQueryResult *status)
{
	CUdriverProcAddressQueryResult s = CU_GET_PROC_ADDRESS_SUCCESS;
	CUresult r;
	cudaError_t e = rt_init();

	if (e != cudaSuccess) {
		return rt_error(e);
	}
	if (flags == cudaEnableDefault && per_thread) {
		flags = cudaEnablePerThreadDefaultStream;
	}
	r = rt_drv.lookup(symbol, fn, version, flags, &s);
	if (r == CUDA_SUCCESS && status != NULL) {
		*status = (enum cudaDriverEntryPointQueryResult)s;
	}
	return rt_done(r);
}

#define ENTRY(suffix, per_thread)                                                                  \
	RT_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPoint##suffix(                           \
		const char *symbol, void **fn, unsigned long long flags,                           \
		enum cudaDriverEntryPointQueryResult *status);                                     \
	RT_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPoint##suffix(                           \
		const char *symbol, void **fn, unsigned long long flags,                           \
		enum cudaDriverEntryPointQueryResult *status)                                      \
	{                                                                                          \
		return entry_point(symbol, fn, CUDART_VERSION, flags, per_thread, status);         \
	}                                                                                          \
	RT_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion##suffix(                  \
		const char *symbol, void **fn, unsigned int version, unsigned long long flags,     \
		enum cudaDriverEntryPointQueryResult *status);                                     \
	RT_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion##suffix(                  \
		const char *symbol, void **fn, unsigned int version, unsigned long long flags,     \
		enum cudaDriverEntryPointQueryResult *status)                                      \
	{                                                                                          \
		return entry_point(symbol, fn, (int)version, flags, per_thread, status);           \
	}

ENTRY(, false)
ENTRY(_ptsz, true)
