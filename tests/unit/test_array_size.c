/* SPDX-License-Identifier: Apache-2.0 */
/* D-03, C-111: the size rule of arrays, by value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../shim/array_size.h"

/* CUarray_format and CUDA_ARRAY3D_... as numbers: a header of another CUDA may lack some. */
enum {
	UINT8 = 0x01, UINT16 = 0x02, UINT32 = 0x03, INT8 = 0x08, INT16 = 0x09, INT32 = 0x0a,
	HALF = 0x10, FLOAT = 0x20, RGB10A2 = 0x50,
	BC1 = 0x91, BC1_SRGB, BC2, BC2_SRGB, BC3, BC3_SRGB, BC4, BC4_SNORM, BC5, BC5_SNORM,
	BC6H, BC6H_SIGNED, BC7, BC7_SRGB,
	P010 = 0x9f, P016 = 0xa1, NV16, P210, P216, YUY2, Y210, Y216, AYUV, Y410,
	NV12 = 0xb0, Y416, PLANAR8, PLANAR10, SEMI8, SEMI16,
	UNORM8X1 = 0xc0, UNORM8X2, UNORM8X4, UNORM16X1, UNORM16X2, UNORM16X4,
	SNORM8X1, SNORM8X2, SNORM8X4, SNORM16X1, SNORM16X2, SNORM16X4,
	LAYERED = 0x01, SURFACE = 0x02, CUBEMAP = 0x04, GATHER = 0x08, SPARSE = 0x40,
	DEFERRED = 0x80,
};

struct row {
	struct cw_array_shape shape; /* width, height, depth, format, channels, flags, levels */
	uint64_t bytes;
};

static void check(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t bytes = cw_array_bytes(&rows[i].shape);

		if (bytes != rows[i].bytes) {
			print_error("row %zu: %llu instead of %llu\n", i,
				    (unsigned long long)bytes,
				    (unsigned long long)rows[i].bytes);
		}
		assert_true(bytes == rows[i].bytes);
	}
}

#define CHECK(rows) check(rows, sizeof(rows) / sizeof((rows)[0]))

static void dimensions(void **state)
{
	static const struct row rows[] = {
		{ { 100, 50, 0, FLOAT, 4, 0, 1 }, 80000 },
		{ { 2048, 0, 0, FLOAT, 1, 0, 1 }, 8192 },
		{ { 64, 64, 0, FLOAT, 1, SURFACE, 1 }, 16384 },
		{ { 64, 64, 0, FLOAT, 1, GATHER, 1 }, 16384 },
		{ { 16, 8, 4, HALF, 4, 0, 1 }, 4096 },
		{ { 1, 1, 1, UINT8, 1, 0, 1 }, 1 },
		{ { 100, 0, 7, UINT16, 2, LAYERED, 1 }, 2800 },
		{ { 100, 50, 7, UINT16, 2, LAYERED, 1 }, 140000 },
		{ { 32, 32, 6, UINT8, 4, CUBEMAP, 1 }, 24576 },
		{ { 32, 32, 18, UINT8, 4, CUBEMAP | LAYERED, 1 }, 73728 },
	};

	(void)state;
	CHECK(rows);
}

static void levels(void **state)
{
	static const struct row rows[] = {
		{ { 64, 64, 0, UINT8, 4, 0, 7 }, 21844 },
		{ { 64, 64, 0, UINT8, 4, 0, 1 }, 16384 },
		{ { 64, 64, 0, UINT8, 4, 0, 2 }, 20480 },
		/* More than fit: 1 + log2 of the largest extent. */
		{ { 64, 64, 0, UINT8, 4, 0, 8 }, 21844 },
		{ { 64, 64, 0, UINT8, 4, 0, 0xffffffff }, 21844 },
		{ { 64, 0, 0, UINT8, 1, 0, 99 }, 127 },
		/* No extent goes below 1: 5x3, 2x1, 1x1. */
		{ { 5, 3, 0, UINT8, 1, 0, 9 }, 18 },
		{ { 1, 16, 0, UINT8, 1, 0, 9 }, 31 },
		/* A third dimension shrinks too, and may be the largest. */
		{ { 2, 2, 2, UINT8, 1, 0, 9 }, 9 },
		{ { 1, 1, 16, UINT8, 1, 0, 9 }, 31 },
		/* Layers and faces do neither. */
		{ { 4, 4, 10, UINT8, 1, LAYERED, 9 }, 210 },
		{ { 4, 4, 6, UINT8, 1, CUBEMAP, 9 }, 126 },
		{ { 1, 1, 16, UINT8, 1, LAYERED, 9 }, 16 },
		{ { 4, 4, 12, UINT8, 1, CUBEMAP | LAYERED, 9 }, 252 },
		/* Blocks stay whole: 16, 4 and 1 of them, then one each for 2x2 and 1x1 pixels. */
		{ { 16, 16, 0, BC1, 4, 0, 5 }, 8 * (16 + 4 + 1 + 1 + 1) },
	};

	(void)state;
	CHECK(rows);
}

/* 20 x 12 elements of each format; the channels where the format does not say. */
static void formats(void **state)
{
	static const struct {
		unsigned int format;
		unsigned int channels;
		uint64_t bytes;
	} all[] = {
		{ UINT8, 1, 240 }, { UINT8, 2, 480 }, { UINT8, 4, 960 }, { INT8, 1, 240 },
		{ UINT16, 1, 480 }, { UINT16, 4, 1920 }, { INT16, 2, 960 }, { HALF, 1, 480 },
		{ HALF, 4, 1920 }, { UINT32, 1, 960 }, { INT32, 2, 1920 }, { FLOAT, 1, 960 },
		{ FLOAT, 4, 3840 }, { RGB10A2, 4, 960 },
		{ UNORM8X1, 1, 240 }, { UNORM8X2, 2, 480 }, { UNORM8X4, 4, 960 },
		{ UNORM16X1, 1, 480 }, { UNORM16X2, 2, 960 }, { UNORM16X4, 4, 1920 },
		{ SNORM8X1, 1, 240 }, { SNORM8X2, 2, 480 }, { SNORM8X4, 4, 960 },
		{ SNORM16X1, 1, 480 }, { SNORM16X2, 2, 960 }, { SNORM16X4, 4, 1920 },
		{ BC1, 4, 120 }, { BC1_SRGB, 4, 120 }, { BC4, 1, 120 }, { BC4_SNORM, 1, 120 },
		{ BC2, 4, 240 }, { BC2_SRGB, 4, 240 }, { BC3, 4, 240 }, { BC3_SRGB, 4, 240 },
		{ BC5, 2, 240 }, { BC5_SNORM, 2, 240 }, { BC6H, 3, 240 },
		{ BC6H_SIGNED, 3, 240 }, { BC7, 4, 240 }, { BC7_SRGB, 4, 240 },
		{ NV12, 3, 360 }, { P010, 3, 720 }, { P016, 3, 720 }, { NV16, 3, 480 },
		{ P210, 3, 960 }, { P216, 3, 960 }, { YUY2, 2, 480 }, { Y210, 2, 960 },
		{ Y216, 2, 960 }, { AYUV, 4, 960 }, { Y410, 4, 960 }, { Y416, 4, 1920 },
		{ PLANAR8, 3, 720 }, { SEMI8, 3, 720 }, { PLANAR10, 3, 1440 },
		{ SEMI16, 3, 1440 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct row row = {
			{ 20, 12, 0, all[i].format, all[i].channels, 0, 1 }, all[i].bytes
		};

		check(&row, 1);
		row.shape.depth = 3;
		row.bytes *= 3;
		check(&row, 1);
	}
}

static void edges(void **state)
{
	static const struct row rows[] = {
		/* Own nothing until something is mapped (C-111). */
		{ { 4096, 4096, 0, FLOAT, 4, SPARSE, 1 }, 0 },
		{ { 4096, 4096, 0, FLOAT, 4, DEFERRED, 1 }, 0 },
		{ { 4096, 4096, 0, FLOAT, 4, SPARSE, 5 }, 0 },
		/* Blocks and pairs of pixels that are not whole. */
		{ { 1, 1, 0, BC1, 4, 0, 1 }, 8 },
		{ { 5, 9, 0, BC7, 4, 0, 1 }, 96 },
		{ { 1, 1, 0, NV12, 3, 0, 1 }, 2 },
		{ { 3, 3, 0, NV12, 3, 0, 1 }, 14 },
		/* Not known. */
		{ { 16, 16, 0, 0, 1, 0, 1 }, 0 },
		{ { 16, 16, 0, 0xa0, 1, 0, 1 }, 0 },
		{ { 16, 16, 0, 0xcc, 1, 0, 1 }, 0 },
		{ { 16, 16, 0, 0x7fffffff, 1, 0, 1 }, 0 },
		{ { 0, 16, 0, FLOAT, 1, 0, 1 }, 0 },
		/* Too large for any number. */
		{ { UINT64_MAX, 2, 0, UINT8, 1, 0, 1 }, UINT64_MAX },
		{ { UINT64_MAX, 0, 0, FLOAT, 4, 0, 1 }, UINT64_MAX },
		{ { UINT64_MAX, 0, 0, BC7, 4, 0, 1 }, UINT64_MAX },
		{ { UINT64_MAX, 0, 0, NV12, 4, 0, 1 }, UINT64_MAX },
		{ { UINT64_MAX, 0, 0, UINT8, 1, 0, 64 }, UINT64_MAX },
		{ { UINT64_C(1) << 40, 1 << 20, 1 << 20, UINT8, 1, LAYERED, 1 }, UINT64_MAX },
		{ { UINT64_C(1) << 62, 0, 0, UINT8, 1, 0, 1 }, UINT64_C(1) << 62 },
	};
	struct cw_array_shape shape = { .flags = SPARSE };

	(void)state;
	CHECK(rows);
	assert_false(cw_array_owns_memory(&shape));
	shape.flags = DEFERRED;
	assert_false(cw_array_owns_memory(&shape));
	shape.flags = LAYERED | SURFACE | CUBEMAP | GATHER;
	assert_true(cw_array_owns_memory(&shape));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dimensions),
		cmocka_unit_test(levels),
		cmocka_unit_test(formats),
		cmocka_unit_test(edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
