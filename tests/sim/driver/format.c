/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of array formats: per channel, per pixel whatever the channels, or per 4x4 block. */
#include "internal.h"
#include "array.h"

enum unit { CHANNEL, HALF_BYTES, BLOCK };

static const struct {
	CUarray_format format;
	enum unit unit;
	unsigned int n;
} formats[] = {
	{CU_AD_FORMAT_UNSIGNED_INT8, CHANNEL, 1},
	{CU_AD_FORMAT_UNSIGNED_INT16, CHANNEL, 2},
	{CU_AD_FORMAT_UNSIGNED_INT32, CHANNEL, 4},
	{CU_AD_FORMAT_SIGNED_INT8, CHANNEL, 1},
	{CU_AD_FORMAT_SIGNED_INT16, CHANNEL, 2},
	{CU_AD_FORMAT_SIGNED_INT32, CHANNEL, 4},
	{CU_AD_FORMAT_HALF, CHANNEL, 2},
	{CU_AD_FORMAT_FLOAT, CHANNEL, 4},
	{CU_AD_FORMAT_NV12, HALF_BYTES, 3},
	{CU_AD_FORMAT_P010, HALF_BYTES, 6},
	{CU_AD_FORMAT_P016, HALF_BYTES, 6},
	{CU_AD_FORMAT_NV16, HALF_BYTES, 4},
	{CU_AD_FORMAT_P210, HALF_BYTES, 8},
	{CU_AD_FORMAT_P216, HALF_BYTES, 8},
	{CU_AD_FORMAT_YUY2, HALF_BYTES, 4},
	{CU_AD_FORMAT_Y210, HALF_BYTES, 8},
	{CU_AD_FORMAT_Y216, HALF_BYTES, 8},
	{CU_AD_FORMAT_AYUV, HALF_BYTES, 8},
	{CU_AD_FORMAT_Y410, HALF_BYTES, 8},
	{CU_AD_FORMAT_Y416, HALF_BYTES, 16},
	{CU_AD_FORMAT_Y444_PLANAR8, HALF_BYTES, 6},
	{CU_AD_FORMAT_Y444_PLANAR10, HALF_BYTES, 12},
	{CU_AD_FORMAT_YUV444_8bit_SemiPlanar, HALF_BYTES, 6},
	{CU_AD_FORMAT_YUV444_16bit_SemiPlanar, HALF_BYTES, 12},
	{CU_AD_FORMAT_UNORM_INT_101010_2, HALF_BYTES, 8},
	{CU_AD_FORMAT_UNORM_INT8X1, HALF_BYTES, 2},
	{CU_AD_FORMAT_UNORM_INT8X2, HALF_BYTES, 4},
	{CU_AD_FORMAT_UNORM_INT8X4, HALF_BYTES, 8},
	{CU_AD_FORMAT_UNORM_INT16X1, HALF_BYTES, 4},
	{CU_AD_FORMAT_UNORM_INT16X2, HALF_BYTES, 8},
	{CU_AD_FORMAT_UNORM_INT16X4, HALF_BYTES, 16},
	{CU_AD_FORMAT_SNORM_INT8X1, HALF_BYTES, 2},
	{CU_AD_FORMAT_SNORM_INT8X2, HALF_BYTES, 4},
	{CU_AD_FORMAT_SNORM_INT8X4, HALF_BYTES, 8},
	{CU_AD_FORMAT_SNORM_INT16X1, HALF_BYTES, 4},
	{CU_AD_FORMAT_SNORM_INT16X2, HALF_BYTES, 8},
	{CU_AD_FORMAT_SNORM_INT16X4, HALF_BYTES, 16},
	{CU_AD_FORMAT_BC1_UNORM, BLOCK, 8},
	{CU_AD_FORMAT_BC1_UNORM_SRGB, BLOCK, 8},
	{CU_AD_FORMAT_BC2_UNORM, BLOCK, 16},
	{CU_AD_FORMAT_BC2_UNORM_SRGB, BLOCK, 16},
	{CU_AD_FORMAT_BC3_UNORM, BLOCK, 16},
	{CU_AD_FORMAT_BC3_UNORM_SRGB, BLOCK, 16},
	{CU_AD_FORMAT_BC4_UNORM, BLOCK, 8},
	{CU_AD_FORMAT_BC4_SNORM, BLOCK, 8},
	{CU_AD_FORMAT_BC5_UNORM, BLOCK, 16},
	{CU_AD_FORMAT_BC5_SNORM, BLOCK, 16},
	{CU_AD_FORMAT_BC6H_UF16, BLOCK, 16},
	{CU_AD_FORMAT_BC6H_SF16, BLOCK, 16},
	{CU_AD_FORMAT_BC7_UNORM, BLOCK, 16},
	{CU_AD_FORMAT_BC7_UNORM_SRGB, BLOCK, 16},
};

static int row_of(CUarray_format f)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (formats[i].format == f) {
			return (int)i;
		}
	}
	return -1;
}

/* Bytes of an element, for tiles and strides; of a block for compressed formats; 0: unknown. */
uint64_t sim_format_element(CUarray_format format, unsigned int channels)
{
	int i = row_of(format);

	if (i < 0) {
		return 0;
	}
	return formats[i].unit == CHANNEL	? (uint64_t)formats[i].n * channels
	       : formats[i].unit == HALF_BYTES ? (formats[i].n + 1) / 2
					       : formats[i].n;
}

/* False: no such format, no width, or more bytes than there are. */
bool sim_format_layout(const CUDA_ARRAY3D_DESCRIPTOR *d, struct sim_layout *ret)
{
	uint64_t w = d->Width, h = d->Height > 0 ? d->Height : 1;
	uint64_t halves;
	int i = row_of(d->Format);

	if (i < 0 || w == 0 || (w | h | d->Depth) >> 40 != 0) {
		return false;
	}
	ret->rows = h;
	ret->slices = d->Depth > 0 ? d->Depth : 1;
	switch (formats[i].unit) {
	case BLOCK:
		ret->row = (w + 3) / 4 * formats[i].n;
		ret->rows = (h + 3) / 4;
		break;
	case CHANNEL:
		ret->row = w * formats[i].n * d->NumChannels;
		break;
	case HALF_BYTES:
	default:
		/* A planar picture has no rows of its own; this is for its size alone. */
		halves = w * h * formats[i].n;
		ret->row = halves % (2 * h) == 0 ? halves / (2 * h) : 0;
		if (ret->row == 0) {
			ret->row = (halves + 1) / 2;
			ret->rows = 1;
		}
	}
	return !__builtin_mul_overflow(ret->row, ret->rows, &ret->bytes) &&
	       !__builtin_mul_overflow(ret->bytes, ret->slices, &ret->bytes);
}

/* A plane of a planar format: its description, and where it begins. */
bool sim_format_plane(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int plane,
		      CUDA_ARRAY3D_DESCRIPTOR *ret, uint64_t *ret_offset)
{
	bool half_w = false, half_h = false, wide = false;
	unsigned int planes = 2;
	uint64_t full;

	switch (d->Format) {
	case CU_AD_FORMAT_P010:
	case CU_AD_FORMAT_P016:
		wide = true;
		/* fall through */
	case CU_AD_FORMAT_NV12:
		half_w = half_h = true;
		break;
	case CU_AD_FORMAT_P210:
	case CU_AD_FORMAT_P216:
		wide = true;
		/* fall through */
	case CU_AD_FORMAT_NV16:
		half_w = true;
		break;
	case CU_AD_FORMAT_Y444_PLANAR10:
		wide = true;
		/* fall through */
	case CU_AD_FORMAT_Y444_PLANAR8:
		planes = 3;
		break;
	case CU_AD_FORMAT_YUV444_16bit_SemiPlanar:
		wide = true;
		break;
	case CU_AD_FORMAT_YUV444_8bit_SemiPlanar:
		break;
	default:
		return false;
	}
	if (plane >= planes) {
		return false;
	}
	*ret = *d;
	ret->Format = wide ? CU_AD_FORMAT_UNSIGNED_INT16 : CU_AD_FORMAT_UNSIGNED_INT8;
	ret->NumChannels = plane > 0 && planes == 2 ? 2 : 1;
	full = (uint64_t)d->Width * (d->Height > 0 ? d->Height : 1) * (wide ? 2 : 1);
	*ret_offset = full * plane;
	if (plane > 0) {
		ret->Width = half_w ? d->Width / 2 : d->Width;
		ret->Height = half_h ? d->Height / 2 : d->Height;
	}
	return true;
}
