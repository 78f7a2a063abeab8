/* SPDX-License-Identifier: Apache-2.0 */
#include "array_size.h"

/* CUDA_ARRAY3D_..., by value: headers before 11.4 lack some. */
enum {
	LAYERED = 0x01,
	CUBEMAP = 0x04,
	SPARSE = 0x40,
	DEFERRED_MAPPING = 0x80,
};

/* What the bytes of a format are for. Half bytes, since 4:2:0 takes one and a half a pixel. */
enum unit {
	UNKNOWN,
	CHANNEL,
	PIXEL_HALVES,
	BLOCK, /* 4 x 4 pixels */
};

enum { FORMATS = 0xcc, BLOCK_EDGE = 4 };

/* CUarray_format by value, since older headers lack many. */
static const struct {
	uint8_t unit;
	uint8_t bytes;
} formats[FORMATS] = {
	[0x01] = { CHANNEL, 1 },       /* UNSIGNED_INT8 */
	[0x02] = { CHANNEL, 2 },       /* UNSIGNED_INT16 */
	[0x03] = { CHANNEL, 4 },       /* UNSIGNED_INT32 */
	[0x08] = { CHANNEL, 1 },       /* SIGNED_INT8 */
	[0x09] = { CHANNEL, 2 },       /* SIGNED_INT16 */
	[0x0a] = { CHANNEL, 4 },       /* SIGNED_INT32 */
	[0x10] = { CHANNEL, 2 },       /* HALF */
	[0x20] = { CHANNEL, 4 },       /* FLOAT */
	[0x50] = { PIXEL_HALVES, 8 },  /* UNORM_INT_101010_2 */
	[0x91] = { BLOCK, 8 },         /* BC1_UNORM */
	[0x92] = { BLOCK, 8 },         /* BC1_UNORM_SRGB */
	[0x93] = { BLOCK, 16 },        /* BC2_UNORM */
	[0x94] = { BLOCK, 16 },        /* BC2_UNORM_SRGB */
	[0x95] = { BLOCK, 16 },        /* BC3_UNORM */
	[0x96] = { BLOCK, 16 },        /* BC3_UNORM_SRGB */
	[0x97] = { BLOCK, 8 },         /* BC4_UNORM */
	[0x98] = { BLOCK, 8 },         /* BC4_SNORM */
	[0x99] = { BLOCK, 16 },        /* BC5_UNORM */
	[0x9a] = { BLOCK, 16 },        /* BC5_SNORM */
	[0x9b] = { BLOCK, 16 },        /* BC6H_UF16 */
	[0x9c] = { BLOCK, 16 },        /* BC6H_SF16 */
	[0x9d] = { BLOCK, 16 },        /* BC7_UNORM */
	[0x9e] = { BLOCK, 16 },        /* BC7_UNORM_SRGB */
	[0x9f] = { PIXEL_HALVES, 6 },  /* P010 */
	[0xa1] = { PIXEL_HALVES, 6 },  /* P016 */
	[0xa2] = { PIXEL_HALVES, 4 },  /* NV16 */
	[0xa3] = { PIXEL_HALVES, 8 },  /* P210 */
	[0xa4] = { PIXEL_HALVES, 8 },  /* P216 */
	[0xa5] = { PIXEL_HALVES, 4 },  /* YUY2 */
	[0xa6] = { PIXEL_HALVES, 8 },  /* Y210 */
	[0xa7] = { PIXEL_HALVES, 8 },  /* Y216 */
	[0xa8] = { PIXEL_HALVES, 8 },  /* AYUV */
	[0xa9] = { PIXEL_HALVES, 8 },  /* Y410 */
	[0xb0] = { PIXEL_HALVES, 3 },  /* NV12 */
	[0xb1] = { PIXEL_HALVES, 16 }, /* Y416 */
	[0xb2] = { PIXEL_HALVES, 6 },  /* Y444_PLANAR8 */
	[0xb3] = { PIXEL_HALVES, 12 }, /* Y444_PLANAR10 */
	[0xb4] = { PIXEL_HALVES, 6 },  /* YUV444_8bit_SemiPlanar */
	[0xb5] = { PIXEL_HALVES, 12 }, /* YUV444_16bit_SemiPlanar */
	[0xc0] = { PIXEL_HALVES, 2 },  /* UNORM_INT8X1 */
	[0xc1] = { PIXEL_HALVES, 4 },  /* UNORM_INT8X2 */
	[0xc2] = { PIXEL_HALVES, 8 },  /* UNORM_INT8X4 */
	[0xc3] = { PIXEL_HALVES, 4 },  /* UNORM_INT16X1 */
	[0xc4] = { PIXEL_HALVES, 8 },  /* UNORM_INT16X2 */
	[0xc5] = { PIXEL_HALVES, 16 }, /* UNORM_INT16X4 */
	[0xc6] = { PIXEL_HALVES, 2 },  /* SNORM_INT8X1 */
	[0xc7] = { PIXEL_HALVES, 4 },  /* SNORM_INT8X2 */
	[0xc8] = { PIXEL_HALVES, 8 },  /* SNORM_INT8X4 */
	[0xc9] = { PIXEL_HALVES, 4 },  /* SNORM_INT16X1 */
	[0xca] = { PIXEL_HALVES, 8 },  /* SNORM_INT16X2 */
	[0xcb] = { PIXEL_HALVES, 16 }, /* SNORM_INT16X4 */
};

static uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t result;

	return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	uint64_t result;

	return __builtin_add_overflow(a, b, &result) ? UINT64_MAX : result;
}

static uint64_t at_least_1(uint64_t extent)
{
	return extent > 0 ? extent : 1;
}

/* The third extent is a number of pictures, which no mipmap level shrinks. */
static bool is_stack(const struct cw_array_shape *shape)
{
	return (shape->flags & (LAYERED | CUBEMAP)) != 0;
}

static uint64_t slice_bytes(const struct cw_array_shape *shape, uint64_t width, uint64_t height)
{
	uint64_t bytes = formats[shape->format].bytes;
	uint64_t all;

	switch (formats[shape->format].unit) {
	case CHANNEL:
		return product(product(width, height), bytes * shape->channels);
	case PIXEL_HALVES:
		all = product(product(width, height), bytes);
		return all == UINT64_MAX ? all : all / 2 + all % 2;
	case BLOCK:
		return product(product((width - 1) / BLOCK_EDGE + 1, (height - 1) / BLOCK_EDGE + 1),
			       bytes);
	default:
		return 0;
	}
}

static uint64_t level_bytes(const struct cw_array_shape *shape, unsigned int level)
{
	uint64_t slice = slice_bytes(shape, at_least_1(shape->width >> level),
				     at_least_1(shape->height >> level));
	uint64_t slices = is_stack(shape) ? shape->depth : shape->depth >> level;

	return product(slice, at_least_1(slices));
}

static unsigned int level_count(const struct cw_array_shape *shape)
{
	uint64_t edge = shape->width | shape->height | (is_stack(shape) ? 0 : shape->depth);
	unsigned int whole = 1;

	/* The highest bit of the largest extent is the highest of all. */
	while (edge > 1) {
		edge >>= 1;
		whole++;
	}
	return shape->levels < whole ? shape->levels : whole;
}

bool cw_array_owns_memory(const struct cw_array_shape *shape)
{
	return (shape->flags & (SPARSE | DEFERRED_MAPPING)) == 0;
}

uint64_t cw_array_bytes(const struct cw_array_shape *shape)
{
	unsigned int levels = level_count(shape);
	uint64_t bytes = 0;

	if (!cw_array_owns_memory(shape) || shape->format >= FORMATS || shape->width == 0) {
		return 0;
	}
	for (unsigned int level = 0; level < levels; level++) {
		bytes = sum(bytes, level_bytes(shape, level));
	}
	return bytes;
}
