/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools. The attribute numbers are the driver's. */
#include <string.h>

#include "runtime.h"

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "same layout");
_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc), "same layout");
_Static_assert(sizeof(struct cudaMemLocation) == sizeof(CUmemLocation), "same layout");

static CUresult create(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
	CUmemPoolProps p;

	if (props == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	memcpy(&p, props, sizeof(p));
	return rt_drv.f_cuMemPoolCreate(pool, &p);
}

static CUresult set_access(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t n)
{
	CUresult r = list == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

	for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
		CUmemAccessDesc d;

		memcpy(&d, &list[i], sizeof(d));
		r = rt_drv.f_cuMemPoolSetAccess(pool, &d, 1);
	}
	return r;
}

static CUresult get_access(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
			   const struct cudaMemLocation *location)
{
	CUmemAccess_flags f = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	CUmemLocation l;
	CUresult r;

	if (flags == NULL || location == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	memcpy(&l, location, sizeof(l));
	r = rt_drv.f_cuMemPoolGetAccess(&f, pool, &l);
	if (r == CUDA_SUCCESS) {
		*flags = (enum cudaMemAccessFlags)f;
	}
	return r;
}

RT_API(cudaMemPoolCreate, (cudaMemPool_t *pool, const struct cudaMemPoolProps *props),
       create(pool, props))
RT_API(cudaMemPoolDestroy, (cudaMemPool_t pool), rt_drv.f_cuMemPoolDestroy(pool))
RT_API(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep),
       rt_drv.f_cuMemPoolTrimTo(pool, keep))
RT_API(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value),
       rt_drv.f_cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attr, value))
RT_API(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value),
       rt_drv.f_cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attr, value))
RT_API(cudaMemPoolSetAccess,
       (cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t n),
       set_access(pool, list, n))
RT_API(cudaMemPoolGetAccess,
       (enum cudaMemAccessFlags * flags, cudaMemPool_t pool, struct cudaMemLocation *location),
       get_access(flags, pool, location))
RT_API(cudaDeviceGetDefaultMemPool, (cudaMemPool_t *pool, int dev),
       rt_drv.f_cuDeviceGetDefaultMemPool(pool, dev))
RT_API(cudaDeviceGetMemPool, (cudaMemPool_t *pool, int dev),
       rt_drv.f_cuDeviceGetMemPool(pool, dev))
RT_API(cudaDeviceSetMemPool, (int dev, cudaMemPool_t pool),
       rt_drv.f_cuDeviceSetMemPool(dev, pool))
