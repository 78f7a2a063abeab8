/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, and copies that may have an end in one. */
#include <string.h>

#include "runtime.h"

/* Kinds above the four plain ones name a format with its channels. */
static const CUarray_format named[] = {
	[4] = CU_AD_FORMAT_NV12,
	CU_AD_FORMAT_UNORM_INT8X1,
	CU_AD_FORMAT_UNORM_INT8X2,
	CU_AD_FORMAT_UNORM_INT8X4,
	CU_AD_FORMAT_UNORM_INT16X1,
	CU_AD_FORMAT_UNORM_INT16X2,
	CU_AD_FORMAT_UNORM_INT16X4,
	CU_AD_FORMAT_SNORM_INT8X1,
	CU_AD_FORMAT_SNORM_INT8X2,
	CU_AD_FORMAT_SNORM_INT8X4,
	CU_AD_FORMAT_SNORM_INT16X1,
	CU_AD_FORMAT_SNORM_INT16X2,
	CU_AD_FORMAT_SNORM_INT16X4,
	CU_AD_FORMAT_BC1_UNORM,
	CU_AD_FORMAT_BC1_UNORM_SRGB,
	CU_AD_FORMAT_BC2_UNORM,
	CU_AD_FORMAT_BC2_UNORM_SRGB,
	CU_AD_FORMAT_BC3_UNORM,
	CU_AD_FORMAT_BC3_UNORM_SRGB,
	CU_AD_FORMAT_BC4_UNORM,
	CU_AD_FORMAT_BC4_SNORM,
	CU_AD_FORMAT_BC5_UNORM,
	CU_AD_FORMAT_BC5_SNORM,
	CU_AD_FORMAT_BC6H_UF16,
	CU_AD_FORMAT_BC6H_SF16,
	CU_AD_FORMAT_BC7_UNORM,
	CU_AD_FORMAT_BC7_UNORM_SRGB,
	CU_AD_FORMAT_UNORM_INT_101010_2,
};

static bool format_of(const struct cudaChannelFormatDesc *d, CUarray_format *ret, unsigned int *n)
{
	const CUarray_format plain[3][3] = {
		{CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32},
		{CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16,
		 CU_AD_FORMAT_UNSIGNED_INT32},
		{(CUarray_format)0, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT}};
	unsigned int kind = (unsigned int)d->f;
	int width = d->x == 8 ? 0 : d->x == 16 ? 1 : d->x == 32 ? 2 : -1;

	*n = 1U + (d->y > 0) + (d->z > 0) + (d->w > 0);
	if (kind > 3 && kind < sizeof(named) / sizeof(named[0])) {
		*ret = named[kind];
		return true;
	}
	*ret = kind < 3 && width >= 0 ? plain[kind][width] : (CUarray_format)0;
	return *ret != 0;
}

static void channels_of(const CUDA_ARRAY3D_DESCRIPTOR *a, struct cudaChannelFormatDesc *ret)
{
	int bits = 0, n = (int)a->NumChannels;

	ret->f = cudaChannelFormatKindUnsigned;
	switch (a->Format) {
	case CU_AD_FORMAT_SIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT32:
		ret->f = cudaChannelFormatKindSigned;
		bits = 8 << ((int)a->Format - (int)CU_AD_FORMAT_SIGNED_INT8);
		break;
	case CU_AD_FORMAT_HALF:
	case CU_AD_FORMAT_FLOAT:
		ret->f = cudaChannelFormatKindFloat;
		bits = a->Format == CU_AD_FORMAT_HALF ? 16 : 32;
		break;
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_UNSIGNED_INT32:
		bits = 8 << ((int)a->Format - (int)CU_AD_FORMAT_UNSIGNED_INT8);
		break;
	default:
		bits = 8;
		for (size_t i = 4; i < sizeof(named) / sizeof(named[0]); i++) {
			if (named[i] == a->Format) {
				ret->f = (enum cudaChannelFormatKind)i;
			}
		}
	}
	ret->x = bits;
	ret->y = n > 1 ? bits : 0;
	ret->z = n > 2 ? bits : 0;
	ret->w = n > 3 ? bits : 0;
}

static bool describe(CUDA_ARRAY3D_DESCRIPTOR *d, const struct cudaChannelFormatDesc *desc,
		     struct cudaExtent e, unsigned int flags)
{
	*d = (CUDA_ARRAY3D_DESCRIPTOR){.Width = e.width, .Height = e.height, .Depth = e.depth,
				       .Flags = flags};
	return desc != NULL && format_of(desc, &d->Format, &d->NumChannels);
}

/* Plain 1D and 2D arrays come from the older driver function. */
static CUresult malloc_array(cudaArray_t *ret, const struct cudaChannelFormatDesc *desc,
			     size_t width, size_t height, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUDA_ARRAY_DESCRIPTOR flat;

	if (ret == NULL || !describe(&d, desc, (struct cudaExtent){width, height, 0}, flags)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (flags != 0) {
		return rt_drv.f_cuArray3DCreate((CUarray *)ret, &d);
	}
	flat = (CUDA_ARRAY_DESCRIPTOR){d.Width, d.Height, d.Format, d.NumChannels};
	return rt_drv.f_cuArrayCreate((CUarray *)ret, &flat);
}

static CUresult malloc_3d(cudaArray_t *ret, const struct cudaChannelFormatDesc *desc,
			  struct cudaExtent e, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR d;

	return ret != NULL && describe(&d, desc, e, flags)
		       ? rt_drv.f_cuArray3DCreate((CUarray *)ret, &d)
		       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult malloc_mip(cudaMipmappedArray_t *ret, const struct cudaChannelFormatDesc *desc,
			   struct cudaExtent e, unsigned int levels, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR d;

	return ret != NULL && describe(&d, desc, e, flags)
		       ? rt_drv.f_cuMipmappedArrayCreate((CUmipmappedArray *)ret, &d, levels)
		       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult array_info(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent,
			   unsigned int *flags, cudaArray_t a)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 0};
	CUresult r = rt_drv.f_cuArray3DGetDescriptor(&d, (CUarray)a);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (desc != NULL) {
		channels_of(&d, desc);
	}
	if (extent != NULL) {
		*extent = (struct cudaExtent){d.Width, d.Height, d.Depth};
	}
	if (flags != NULL) {
		*flags = d.Flags;
	}
	return r;
}

static CUresult external_mip(cudaMipmappedArray_t *ret, cudaExternalMemory_t m,
			     const struct cudaExternalMemoryMipmappedArrayDesc *desc)
{
	CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC d = {.offset = 0};

	if (ret == NULL || desc == NULL ||
	    !describe(&d.arrayDesc, &desc->formatDesc, desc->extent, desc->flags)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	d.offset = desc->offset;
	d.numLevels = desc->numLevels;
	return rt_drv.f_cuExternalMemoryGetMappedMipmappedArray(
		(CUmipmappedArray *)ret, (CUexternalMemory)m, &d);
}

static CUDA_MEMCPY2D rows(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			  size_t height)
{
	return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
			       .srcDevice = (CUdeviceptr)(uintptr_t)src,
			       .srcPitch = spitch,
			       .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
			       .dstDevice = (CUdeviceptr)(uintptr_t)dst,
			       .dstPitch = dpitch,
			       .WidthInBytes = width,
			       .Height = height};
}

static CUresult copy_2d(CUresult (*fn)(const CUDA_MEMCPY2D *), CUDA_MEMCPY2D c, cudaArray_t to,
			cudaArray_const_t from, size_t x, size_t y)
{
	if (to != NULL) {
		c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		c.dstArray = (CUarray)to;
		c.dstXInBytes = x;
		c.dstY = y;
	}
	if (from != NULL) {
		c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
		c.srcArray = (CUarray)(uintptr_t)from;
		c.srcXInBytes = x;
		c.srcY = y;
	}
	return fn(&c);
}

static CUresult copy_2d_async(CUresult (*fn)(const CUDA_MEMCPY2D *, CUstream), CUDA_MEMCPY2D c,
			      CUstream s)
{
	return fn(&c, s);
}

/* Extents are in elements where an array takes part; bytes of its element turn them to bytes. */
static CUresult box(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *ret)
{
	cudaArray_t a = p->srcArray != NULL ? p->srcArray : p->dstArray;
	CUDA_ARRAY3D_DESCRIPTOR d = {.NumChannels = 1};
	struct cudaChannelFormatDesc f;
	size_t element = 1;
	CUresult r;

	if (a != NULL) {
		r = rt_drv.f_cuArray3DGetDescriptor(&d, (CUarray)a);
		if (r != CUDA_SUCCESS) {
			return r;
		}
		channels_of(&d, &f);
		element = (size_t)(f.x + f.y + f.z + f.w) / 8;
	}
	*ret = (CUDA_MEMCPY3D){
		.srcMemoryType = p->srcArray ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
		.srcArray = (CUarray)p->srcArray,
		.srcDevice = (CUdeviceptr)(uintptr_t)p->srcPtr.ptr,
		.srcPitch = p->srcPtr.pitch,
		.srcHeight = p->srcPtr.ysize,
		.srcXInBytes = p->srcPos.x * (p->srcArray ? element : 1),
		.srcY = p->srcPos.y,
		.srcZ = p->srcPos.z,
		.dstMemoryType = p->dstArray ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
		.dstArray = (CUarray)p->dstArray,
		.dstDevice = (CUdeviceptr)(uintptr_t)p->dstPtr.ptr,
		.dstPitch = p->dstPtr.pitch,
		.dstHeight = p->dstPtr.ysize,
		.dstXInBytes = p->dstPos.x * (p->dstArray ? element : 1),
		.dstY = p->dstPos.y,
		.dstZ = p->dstPos.z,
		.WidthInBytes = p->extent.width * element,
		.Height = p->extent.height,
		.Depth = p->extent.depth};
	return CUDA_SUCCESS;
}

static CUresult copy_3d(CUresult (*fn)(const CUDA_MEMCPY3D *), const struct cudaMemcpy3DParms *p)
{
	CUDA_MEMCPY3D c;
	CUresult r = p == NULL ? CUDA_ERROR_INVALID_VALUE : box(p, &c);

	return r == CUDA_SUCCESS ? fn(&c) : r;
}

static CUresult copy_3d_async(CUresult (*fn)(const CUDA_MEMCPY3D *, CUstream),
			      const struct cudaMemcpy3DParms *p, CUstream s)
{
	CUDA_MEMCPY3D c;
	CUresult r = p == NULL ? CUDA_ERROR_INVALID_VALUE : box(p, &c);

	return r == CUDA_SUCCESS ? fn(&c, s) : r;
}

RT_API(cudaMallocArray,
       (cudaArray_t *a, const struct cudaChannelFormatDesc *desc, size_t width, size_t height,
	unsigned int flags),
       malloc_array(a, desc, width, height, flags))
RT_API(cudaMalloc3DArray,
       (cudaArray_t *a, const struct cudaChannelFormatDesc *desc, struct cudaExtent e,
	unsigned int flags),
       malloc_3d(a, desc, e, flags))
RT_API(cudaMallocMipmappedArray,
       (cudaMipmappedArray_t *m, const struct cudaChannelFormatDesc *desc, struct cudaExtent e,
	unsigned int levels, unsigned int flags),
       malloc_mip(m, desc, e, levels, flags))
RT_API(cudaFreeArray, (cudaArray_t a),
       a == NULL ? CUDA_SUCCESS : rt_drv.f_cuArrayDestroy((CUarray)a))
RT_API(cudaFreeMipmappedArray, (cudaMipmappedArray_t m),
       m == NULL ? CUDA_SUCCESS : rt_drv.f_cuMipmappedArrayDestroy((CUmipmappedArray)m))
RT_API(cudaGetMipmappedArrayLevel,
       (cudaArray_t *a, cudaMipmappedArray_const_t m, unsigned int level),
       rt_drv.f_cuMipmappedArrayGetLevel((CUarray *)a, (CUmipmappedArray)(uintptr_t)m, level))
RT_API(cudaArrayGetPlane, (cudaArray_t *plane, cudaArray_t a, unsigned int i),
       rt_drv.f_cuArrayGetPlane((CUarray *)plane, (CUarray)a, i))
RT_API(cudaArrayGetInfo,
       (struct cudaChannelFormatDesc *desc, struct cudaExtent *e, unsigned int *flags,
	cudaArray_t a),
       array_info(desc, e, flags, a))
RT_API(cudaExternalMemoryGetMappedMipmappedArray,
       (cudaMipmappedArray_t *ret, cudaExternalMemory_t m,
	const struct cudaExternalMemoryMipmappedArrayDesc *desc),
       external_mip(ret, m, desc))
RT_API_PTDS(cudaMemcpy2D,
	    (void *dst, size_t dpitch, const void *src, size_t spitch, size_t w, size_t h,
	     enum cudaMemcpyKind kind),
	    copy_2d(PT(cuMemcpy2D), rows(dst, dpitch, src, spitch, w, h), NULL, NULL, 0, 0))
RT_API_PTDS(cudaMemcpy2DToArray,
	    (cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch, size_t w,
	     size_t h, enum cudaMemcpyKind kind),
	    copy_2d(PT(cuMemcpy2D), rows(NULL, 0, src, spitch, w, h), dst, NULL, x, y))
RT_API_PTDS(cudaMemcpy2DFromArray,
	    (void *dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t w,
	     size_t h, enum cudaMemcpyKind kind),
	    copy_2d(PT(cuMemcpy2D), rows(dst, dpitch, NULL, 0, w, h), NULL, src, x, y))
RT_API_PTSZ(cudaMemcpy2DAsync,
	    (void *dst, size_t dpitch, const void *src, size_t spitch, size_t w, size_t h,
	     enum cudaMemcpyKind kind, cudaStream_t s),
	    copy_2d_async(PT(cuMemcpy2DAsync), rows(dst, dpitch, src, spitch, w, h), s))
RT_API_PTDS(cudaMemcpy3D, (const struct cudaMemcpy3DParms *p), copy_3d(PT(cuMemcpy3D), p))
RT_API_PTSZ(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *p, cudaStream_t s),
	    copy_3d_async(PT(cuMemcpy3DAsync), p, s))
RT_API_PTDS(cudaMemset2D, (void *p, size_t pitch, int value, size_t w, size_t h),
	    PT(cuMemsetD2D8)((CUdeviceptr)(uintptr_t)p, pitch, (unsigned char)value, w, h))
