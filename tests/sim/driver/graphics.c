/* SPDX-License-Identifier: Apache-2.0 */
/* Graphics resources. Nothing can be registered, since there is no graphics interface: every
 * resource is an unknown one, and no resources at all are mapped with success. */
#include "internal.h"

static CUresult many(CUgraphicsResource *list, unsigned int n, CUstream hs, bool per_thread)
{
	struct sim_stream *s;
	CUresult r = sim_stream_use(hs, per_thread, &s);

	if (r == CUDA_SUCCESS && n > 0) {
		r = list == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	}
	return r;
}

static CUresult one(void)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	return r == CUDA_SUCCESS ? CUDA_ERROR_INVALID_HANDLE : r;
}

SIM_API_PTSZ(cuGraphicsMapResources, (unsigned int n, CUgraphicsResource *list, CUstream s),
	     (n, s), (0), many(list, n, ST(s)))
SIM_API_PTSZ(cuGraphicsUnmapResources, (unsigned int n, CUgraphicsResource *list, CUstream s),
	     (n, s), (0), many(list, n, ST(s)))
SIM_API(cuGraphicsUnregisterResource, (CUgraphicsResource res), (res), (0), one())
SIM_API(cuGraphicsResourceGetMappedPointer_v2,
	(CUdeviceptr *p, size_t *size, CUgraphicsResource res), (res), (*p, *size), one())
SIM_API(cuGraphicsResourceGetMappedPointer,
	(CUdeviceptr_v1 *p, unsigned int *size, CUgraphicsResource res), (res), (*p, *size), one())
SIM_API(cuGraphicsSubResourceGetMappedArray,
	(CUarray *a, CUgraphicsResource res, unsigned int i, unsigned int level), (res, i, level),
	(*a), one())
SIM_API(cuGraphicsResourceGetMappedMipmappedArray, (CUmipmappedArray *m, CUgraphicsResource res),
	(res), (*m), one())
SIM_API(cuGraphicsResourceSetMapFlags, (CUgraphicsResource res, unsigned int flags), (res, flags),
	(0), one())
SIM_API(cuGraphicsResourceSetMapFlags_v2, (CUgraphicsResource res, unsigned int flags),
	(res, flags), (0), one())
