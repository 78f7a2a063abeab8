/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: sizes by format and shape, copies, ends. */
#include <string.h>

#include "test.h"

static CUcontext ctx;

static int setup(void **state)
{
	(void)state;
	return cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&ctx, NULL, 0, 0) != CUDA_SUCCESS;
}

static void test_sizes(void **state)
{
	const struct {
		CUDA_ARRAY3D_DESCRIPTOR d;
		unsigned long long bytes;
	} rows[] = {
		{{100, 50, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 80000},
		{{1000, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, 1000},
		{{10, 20, 30, CU_AD_FORMAT_HALF, 2, 0}, 24000},
		{{64, 0, 5, CU_AD_FORMAT_SIGNED_INT32, 1, CUDA_ARRAY3D_LAYERED}, 1280},
		{{16, 16, 6, CU_AD_FORMAT_UNSIGNED_INT16, 1, CUDA_ARRAY3D_CUBEMAP}, 3072},
		{{16, 16, 12, CU_AD_FORMAT_UNSIGNED_INT16, 1,
		  CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
		 6144},
		{{10, 10, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0}, 72},
		{{10, 10, 0, CU_AD_FORMAT_BC7_UNORM, 4, 0}, 144},
		{{16, 8, 0, CU_AD_FORMAT_NV12, 3, 0}, 192},
		{{16, 8, 0, CU_AD_FORMAT_P016, 3, 0}, 384},
		{{16, 8, 0, CU_AD_FORMAT_UNORM_INT8X4, 4, 0}, 512},
		{{16, 8, 0, CU_AD_FORMAT_UNORM_INT_101010_2, 4, 0}, 512},
		{{16, 8, 0, CU_AD_FORMAT_Y444_PLANAR10, 3, 0}, 768},
		{{16, 8, 0, CU_AD_FORMAT_Y416, 4, 0}, 1024},
		{{64, 64, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE}, 0},
		{{64, 64, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_DEFERRED_MAPPING}, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CUDA_ARRAY3D_DESCRIPTOR back;
		CUarray a;

		OK(cuArray3DCreate(&a, &rows[i].d));
		assert_int_equal(D_USED(0), rows[i].bytes);
		OK(cuArray3DGetDescriptor(&back, a));
		assert_memory_equal(&back, &rows[i].d, sizeof(back));
		OK(cuArrayDestroy(a));
		assert_int_equal(D_USED(0), 0);
		FAILS(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(a));
	}
}

static void test_refused(void **state)
{
	CUDA_ARRAY_DESCRIPTOR d = {100, 50, CU_AD_FORMAT_FLOAT, 4};
	CUDA_ARRAY3D_DESCRIPTOR cube = {16, 8, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP};
	CUarray a = (CUarray)0x77;

	(void)state;
	d.Width = 0;
	FAILS(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(&a, &d));
	d.Width = (size_t)1 << 30;
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuArrayCreate(&a, &d));
	d.Width = SIZE_MAX;
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuArrayCreate(&a, &d));
	d.Width = 1;
	d.Format = (CUarray_format)0x7f;
	FAILS(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(&a, &d));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(&a, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&a, &cube));
	assert_ptr_equal(a, (CUarray)0x77);
}

static void test_mipmap(void **state)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {64, 64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0}, l;
	CUmipmappedArray m;
	CUarray a, b;

	(void)state;
	OK(cuMipmappedArrayCreate(&m, &d, 100)); /* clamped to 7 */
	assert_int_equal(D_USED(0), 21844);
	assert_int_equal(cuweir_sim_live(0, CUWEIR_SIM_DEVICE), 1);
	OK(cuMipmappedArrayGetLevel(&a, m, 2));
	OK(cuMipmappedArrayGetLevel(&b, m, 2));
	assert_ptr_equal(a, b);
	OK(cuArray3DGetDescriptor(&l, a));
	assert_int_equal(l.Width, 16);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&a, m, 7));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(b));
	assert_int_equal(D_USED(0), 21844);
	OK(cuMipmappedArrayDestroy(m));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor(&l, b));
	assert_int_equal(D_USED(0), 0);
	d.Depth = 3;
	d.Flags = CUDA_ARRAY3D_LAYERED;
	OK(cuMipmappedArrayCreate(&m, &d, 2));
	assert_int_equal(D_USED(0), 3 * 4 * (4096 + 1024));
	OK(cuMipmappedArrayDestroy(m));
}

static void test_planes(void **state)
{
	CUDA_ARRAY_DESCRIPTOR d = {16, 8, CU_AD_FORMAT_NV12, 3}, p;
	CUarray a, y, uv;

	(void)state;
	OK(cuArrayCreate(&a, &d));
	OK(cuArrayGetPlane(&y, a, 0));
	OK(cuArrayGetPlane(&uv, a, 1));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(&uv, a, 2));
	OK(cuArrayGetDescriptor(&p, uv));
	assert_true(p.Width == 8 && p.Height == 4 && p.NumChannels == 2 &&
		    p.Format == CU_AD_FORMAT_UNSIGNED_INT8);
	assert_int_equal(D_USED(0), 192);
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(y));
	OK(cuArrayDestroy(a));
	assert_int_equal(D_USED(0), 0);
}

static void test_copies(void **state)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {8, 4, 2, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
	unsigned char in[64], out[64] = {0};
	CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			   .srcHost = in,
			   .srcPitch = 8,
			   .srcHeight = 4,
			   .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			   .WidthInBytes = 8,
			   .Height = 4,
			   .Depth = 2};
	CUDA_MEMCPY2D row = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
			     .dstMemoryType = CU_MEMORYTYPE_HOST,
			     .dstHost = out,
			     .dstPitch = 2,
			     .srcXInBytes = 3,
			     .srcY = 1,
			     .WidthInBytes = 2,
			     .Height = 3};
	CUarray a;

	(void)state;
	for (int i = 0; i < 64; i++) {
		in[i] = (unsigned char)i;
	}
	OK(cuArray3DCreate(&a, &d));
	c.dstArray = row.srcArray = a;
	OK(cuMemcpy3D(&c));
	OK(cuMemcpy2D(&row));
	assert_true(out[0] == 11 && out[1] == 12 && out[2] == 19 && out[5] == 28);
	row.Height = 4;
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&row));
	OK(cuMemcpyAtoH(out, a, 5, 3));
	assert_int_equal(out[0], 5);
	OK(cuArrayDestroy(a));
}

/* C-97 and C-111: an array goes with its context; one without memory takes a handle's. */
static void test_context_end_and_deferred(void **state)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1,
				     CUDA_ARRAY3D_DEFERRED_MAPPING};
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUDA_ARRAY_MEMORY_REQUIREMENTS need;
	CUDA_ARRAY_SPARSE_PROPERTIES tile;
	CUmemGenericAllocationHandle h;
	CUarrayMapInfo map = {.resourceType = CU_RESOURCE_TYPE_ARRAY,
			      .memOperationType = CU_MEM_OPERATION_TYPE_MAP,
			      .memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
			      .deviceBitMask = 1};
	CUcontext other;
	CUarray a;

	(void)state;
	OK(cuCtxCreate(&other, NULL, 0, 0));
	OK(cuArray3DCreate(&a, &d));
	OK(cuArrayGetMemoryRequirements(&need, a, 0));
	assert_int_equal(need.size, 4 * MiB);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(&tile, a));
	OK(cuMemCreate(&h, 4 * MiB, &prop, 0));
	map.resource.array = a;
	map.memHandle.memHandle = h;
	OK(cuMemMapArrayAsync(&map, 1, NULL));
	OK(cuMemRelease(h));
	assert_int_equal(D_USED(0), 4 * MiB);
	OK(cuArrayDestroy(a));
	assert_int_equal(D_USED(0), 0);
	d.Flags = CUDA_ARRAY3D_SPARSE;
	OK(cuArray3DCreate(&a, &d));
	OK(cuArrayGetSparseProperties(&tile, a));
	assert_true(tile.tileExtent.width == 128 && tile.tileExtent.height == 128);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(&need, a, 0));
	d.Flags = 0;
	OK(cuArray3DCreate(&a, &d));
	assert_int_equal(D_USED(0), 4 * MiB);
	OK(cuCtxDestroy(other));
	assert_int_equal(D_USED(0), 0);
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_mipmap), cmocka_unit_test(test_planes),
		cmocka_unit_test(test_copies), cmocka_unit_test(test_context_end_and_deferred),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
