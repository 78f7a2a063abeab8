/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated CUDA runtime's own declarations. Like NVIDIA's it opens libcuda.so.1 at its first
 * use, finds everything through cuGetProcAddress, works in primary contexts, and keeps one last
 * error per thread. It exists as libcudart.so.13, as a static archive, and in a foreign form whose
 * look-ups pass neither dlsym nor cuGetProcAddress.
 */
#ifndef CUWEIR_SIM_RUNTIME_H
#define CUWEIR_SIM_RUNTIME_H

#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Old prototypes that cudaTypedefs.h keeps for its internal use. */
typedef CUresult (*PFN_cuDevicePrimaryCtxRelease_old)(CUdevice dev);
#define PFN_cuDevicePrimaryCtxRelease_v7000 PFN_cuDevicePrimaryCtxRelease_old
#define PFN_cuDevicePrimaryCtxReset_v7000 PFN_cuDevicePrimaryCtxRelease_old

struct rt_driver {
#define DRV(base, version) PFN_##base##_v##version f_##base;
#define DRV_PT(base, version, pt_version, suffix)                                                  \
	PFN_##base##_v##version f_##base;                                                          \
	PFN_##base##_v##pt_version##_##suffix f_##base##_pt;
#include "driver.def"
#undef DRV
#undef DRV_PT
	PFN_cuGetProcAddress_v12000 lookup;
};

extern struct rt_driver rt_drv;

/* A driver older than a function leaves NULL; only what is newer than this runtime's least driver
 * may be missing, and is checked before its use. */
#define RT_LEAST_DRIVER 12030

/* Where the driver's functions come from: lookup.c or foreign.c. An error leaves nothing behind. */
cudaError_t rt_find_driver(struct rt_driver *ret);

cudaError_t rt_init(void); /* the driver is open and cuInit is done */
cudaError_t rt_bind(void); /* and this thread has a context */
cudaError_t rt_done(CUresult r); /* the result, kept as the last error if it is one */
cudaError_t rt_error(cudaError_t e);
int rt_device(void);
cudaError_t rt_primary(int dev, CUcontext *ret); /* of another device, for peers */

/* image.c: the kernel that a host function stands for; a kernel may be given as it is. */
CUresult rt_kernel(const void *func, CUfunction *ret);

#define RT_EXPORT __attribute__((visibility("default")))

/* A function that works in a context: bind first, then one expression of a CUresult. */
#define RT_IN_CTX(expr)                                                                            \
	do {                                                                                       \
		cudaError_t rt_e = rt_bind();                                                      \
		return rt_e != cudaSuccess ? rt_error(rt_e) : rt_done(expr);                       \
	} while (0)

#define RT_API(name, params, expr)                                                                 \
	RT_EXPORT cudaError_t CUDARTAPI name params;                                               \
	RT_EXPORT cudaError_t CUDARTAPI name params                                                \
	{                                                                                          \
		RT_IN_CTX(expr);                                                                   \
	}

/* The function and its per-thread twin; PT(f) in the expression picks the driver's function. */
#define PT(base) (rt_pt ? rt_drv.f_##base##_pt : rt_drv.f_##base)
#define RT_ONE(name, params, expr, per_thread)                                                     \
	RT_EXPORT cudaError_t CUDARTAPI name params;                                               \
	RT_EXPORT cudaError_t CUDARTAPI name params                                                \
	{                                                                                          \
		const bool rt_pt = per_thread;                                                     \
		RT_IN_CTX(expr);                                                                   \
	}
#define RT_API_PTSZ(name, params, expr)                                                            \
	RT_ONE(name, params, expr, false)                                                          \
	RT_ONE(name##_ptsz, params, expr, true)
#define RT_API_PTDS(name, params, expr)                                                            \
	RT_ONE(name, params, expr, false)                                                          \
	RT_ONE(name##_ptds, params, expr, true)
#endif
