/* SPDX-License-Identifier: Apache-2.0 */
/* Making arrays, in two sizes of descriptors, and what is asked about them. */
#include <string.h>

#include "internal.h"
#include "array.h"
#include "space.h"

static CUresult create_3d(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return sim_array_new((struct sim_array **)ret, d, 1, SIM_ARRAY, NULL);
}

static CUresult create_3d_v1(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
	CUDA_ARRAY3D_DESCRIPTOR big;

	if (d == NULL) {
		return create_3d(ret, NULL);
	}
	big = (CUDA_ARRAY3D_DESCRIPTOR){d->Width, d->Height, d->Depth, d->Format, d->NumChannels,
					d->Flags};
	return create_3d(ret, &big);
}

static CUresult create(CUarray *ret, const CUDA_ARRAY_DESCRIPTOR *d)
{
	CUDA_ARRAY3D_DESCRIPTOR big;

	if (d == NULL) {
		return create_3d(ret, NULL);
	}
	big = (CUDA_ARRAY3D_DESCRIPTOR){d->Width, d->Height, 0, d->Format, d->NumChannels, 0};
	return create_3d(ret, &big);
}

static CUresult create_v1(CUarray *ret, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
	CUDA_ARRAY_DESCRIPTOR big;

	if (d == NULL) {
		return create_3d(ret, NULL);
	}
	big = (CUDA_ARRAY_DESCRIPTOR){d->Width, d->Height, d->Format, d->NumChannels};
	return create(ret, &big);
}

static CUresult create_mip(CUmipmappedArray *ret, const CUDA_ARRAY3D_DESCRIPTOR *d,
			   unsigned int levels)
{
	return sim_array_new((struct sim_array **)ret, d, levels, SIM_MIPMAP, NULL);
}

static CUresult find(CUarray h, const void *out, struct sim_array **ret)
{
	*ret = sim_obj_get(h, SIM_ARRAY);
	return *ret == NULL ? CUDA_ERROR_INVALID_HANDLE
	       : out == NULL ? CUDA_ERROR_INVALID_VALUE
			     : CUDA_SUCCESS;
}

static CUresult desc_3d(CUDA_ARRAY3D_DESCRIPTOR *ret, CUarray h)
{
	struct sim_array *m;
	CUresult r = find(h, ret, &m);

	if (r == CUDA_SUCCESS) {
		*ret = m->desc;
	}
	return r;
}

static CUresult desc_3d_v1(CUDA_ARRAY3D_DESCRIPTOR_v1 *ret, CUarray h)
{
	struct sim_array *m;
	CUresult r = find(h, ret, &m);

	if (r == CUDA_SUCCESS) {
		*ret = (CUDA_ARRAY3D_DESCRIPTOR_v1){
			(unsigned int)m->desc.Width, (unsigned int)m->desc.Height,
			(unsigned int)m->desc.Depth, m->desc.Format, m->desc.NumChannels,
			m->desc.Flags};
	}
	return r;
}

static CUresult desc(CUDA_ARRAY_DESCRIPTOR *ret, CUarray h)
{
	struct sim_array *m;
	CUresult r = find(h, ret, &m);

	if (r == CUDA_SUCCESS) {
		*ret = (CUDA_ARRAY_DESCRIPTOR){m->desc.Width, m->desc.Height, m->desc.Format,
					       m->desc.NumChannels};
	}
	return r;
}

static CUresult desc_v1(CUDA_ARRAY_DESCRIPTOR_v1 *ret, CUarray h)
{
	CUDA_ARRAY_DESCRIPTOR big;
	CUresult r = desc(ret != NULL ? &big : NULL, h);

	if (r == CUDA_SUCCESS) {
		*ret = (CUDA_ARRAY_DESCRIPTOR_v1){(unsigned int)big.Width, (unsigned int)big.Height,
						  big.Format, big.NumChannels};
	}
	return r;
}

/* "Only valid for arrays allocated with DEFERRED_MAPPING". GPU?: the size; whole 64 KiB here. */
static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, const struct sim_array *m,
			     CUdevice dev)
{
	struct sim_layout y;
	struct sim_device *d;
	uint64_t bytes = 0;
	CUresult r = sim_device_get(dev, &d);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (m == NULL || ret == NULL || (m->desc.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (unsigned int i = 0; i < m->n_levels; i++) {
		const struct sim_array *l =
			m->n_levels > 1 ? sim_array_level((struct sim_array *)(uintptr_t)m, i) : m;

		bytes += l != NULL && sim_format_layout(&l->desc, &y) ? y.bytes : 0;
	}
	memset(ret, 0, sizeof(*ret));
	ret->size = (bytes + 65535) / 65536 * 65536;
	ret->alignment = 65536;
	return CUDA_SUCCESS;
}

/* Tiles of 64 KiB, as published for other interfaces. GPU?: the same here. */
static CUresult sparse(CUDA_ARRAY_SPARSE_PROPERTIES *ret, const struct sim_array *m)
{
	static const unsigned int flat[5][2] = {
		{256, 256}, {256, 128}, {128, 128}, {128, 64}, {64, 64}};
	static const unsigned int deep[5][3] = {
		{64, 32, 32}, {32, 32, 32}, {32, 32, 16}, {32, 16, 16}, {16, 16, 16}};
	unsigned int k;
	bool solid;

	if (ret == NULL || m == NULL || (m->desc.Flags & CUDA_ARRAY3D_SPARSE) == 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	k = (unsigned int)__builtin_ctzll(sim_format_element(m->desc.Format,
							     m->desc.NumChannels));
	k = k > 4 ? 4 : k;
	solid = m->desc.Depth > 0 &&
		(m->desc.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0;
	memset(ret, 0, sizeof(*ret));
	ret->tileExtent.width = solid ? deep[k][0] : flat[k][0];
	ret->tileExtent.height = solid ? deep[k][1] : flat[k][1];
	ret->tileExtent.depth = solid ? deep[k][2] : 1;
	ret->miptailFirstLevel = m->n_levels;
	for (unsigned int i = m->n_levels; i-- > 0;) {
		if (m->desc.Width >> i < ret->tileExtent.width ||
		    m->desc.Height >> i < ret->tileExtent.height) {
			ret->miptailFirstLevel = i;
		}
	}
	ret->miptailSize = ret->miptailFirstLevel < m->n_levels ? 65536 : 0;
	return CUDA_SUCCESS;
}

/* A deferred array takes one handle; tiles of sparse ones are checked and forgotten. Either way
 * it costs no bytes (C-111). GPU?: whether an unmapped handle's bytes go at once. */
static CUresult map_one(const CUarrayMapInfo *i)
{
	struct sim_array *m = i->resourceType == CU_RESOURCE_TYPE_ARRAY
				      ? sim_obj_get(i->resource.array, SIM_ARRAY)
				      : sim_obj_get(i->resource.mipmap, SIM_MIPMAP);
	struct sim_handle *h = NULL;
	CUresult r = CUDA_SUCCESS;

	if (m == NULL || (m->desc.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) ==
				 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_space_lock);
	if (i->memOperationType == CU_MEM_OPERATION_TYPE_MAP) {
		h = sim_handle_get(i->memHandle.memHandle);
		r = h == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	}
	if (r == CUDA_SUCCESS && (m->desc.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0) {
		if (m->bound != NULL) {
			sim_handle_unmapped(m->bound);
		}
		m->bound = h;
		if (h != NULL) {
			h->maps++;
		}
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}

static CUresult map_arrays(const CUarrayMapInfo *list, unsigned int n, CUstream hs,
			   bool per_thread)
{
	struct sim_stream *s;
	CUresult r = sim_stream_use(hs, per_thread, &s);

	if (r == CUDA_SUCCESS && (list == NULL || n == 0)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	for (unsigned int i = 0; r == CUDA_SUCCESS && i < n; i++) {
		r = map_one(&list[i]);
	}
	return r;
}

SIM_ALLOC(cuArrayCreate_v2, array, (CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc),
	  (desc != NULL), (*array), create(array, desc))
SIM_ALLOC(cuArrayCreate, array, (CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *desc),
	  (desc != NULL), (*array), create_v1(array, desc))
SIM_ALLOC(cuArray3DCreate_v2, array, (CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc),
	  (desc != NULL), (*array), create_3d(array, desc))
SIM_ALLOC(cuArray3DCreate, array, (CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc),
	  (desc != NULL), (*array), create_3d_v1(array, desc))
SIM_ALLOC(cuMipmappedArrayCreate, mip,
	  (CUmipmappedArray *mip, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels),
	  (desc != NULL, levels), (*mip), create_mip(mip, desc, levels))
SIM_API(cuArrayDestroy, (CUarray array), (array), (0),
	sim_array_end(sim_obj_get(array, SIM_ARRAY)))
SIM_API(cuMipmappedArrayDestroy, (CUmipmappedArray mip), (mip), (0),
	sim_array_end(sim_obj_get(mip, SIM_MIPMAP)))
SIM_API(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR *d, CUarray array), (array), (0),
	desc(d, array))
SIM_API(cuArrayGetDescriptor, (CUDA_ARRAY_DESCRIPTOR_v1 *d, CUarray array), (array), (0),
	desc_v1(d, array))
SIM_API(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR *d, CUarray array), (array), (0),
	desc_3d(d, array))
SIM_API(cuArray3DGetDescriptor, (CUDA_ARRAY3D_DESCRIPTOR_v1 *d, CUarray array), (array), (0),
	desc_3d_v1(d, array))
SIM_API(cuArrayGetMemoryRequirements,
	(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray array, CUdevice dev), (array, dev), (0),
	requirements(out, sim_obj_get(array, SIM_ARRAY), dev))
SIM_API(cuMipmappedArrayGetMemoryRequirements,
	(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray mip, CUdevice dev), (mip, dev), (0),
	requirements(out, sim_obj_get(mip, SIM_MIPMAP), dev))
SIM_API(cuArrayGetSparseProperties, (CUDA_ARRAY_SPARSE_PROPERTIES *out, CUarray array), (array),
	(0), sparse(out, sim_obj_get(array, SIM_ARRAY)))
SIM_API(cuMipmappedArrayGetSparseProperties,
	(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUmipmappedArray mip), (mip), (0),
	sparse(out, sim_obj_get(mip, SIM_MIPMAP)))
SIM_API_PTSZ(cuMemMapArrayAsync, (CUarrayMapInfo *list, unsigned int n, CUstream s), (n, s), (0),
	     map_arrays(list, n, ST(s)))
