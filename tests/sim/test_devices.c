/* SPDX-License-Identifier: Apache-2.0 */
/* More than one device: peers, multicast; and parts of one: green contexts. */
#include "test.h"

static CUcontext ctx, second;

static int setup(void **state)
{
	(void)state;
	return cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&second, NULL, 0, 1) != CUDA_SUCCESS ||
	       cuCtxCreate(&ctx, NULL, 0, 0) != CUDA_SUCCESS;
}

static void test_peers(void **state)
{
	CUdeviceptr p, q;
	char text[8] = "";
	int can = -1;

	(void)state;
	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	assert_int_equal(can, 1);
	OK(cuDeviceCanAccessPeer(&can, 1, 1));
	assert_int_equal(can, 0);
	FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&can, 0, 2));
	FAILS(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(second));
	OK(cuCtxEnablePeerAccess(second, 0));
	FAILS(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(second, 0));
	FAILS(CUDA_ERROR_INVALID_DEVICE, cuCtxEnablePeerAccess(ctx, 0));
	OK(cuMemAlloc(&p, 100));
	OK(cuCtxPushCurrent(second));
	OK(cuMemAlloc(&q, 100));
	OK(cuCtxPopCurrent(NULL));
	OK(cuMemcpyHtoD(p, "across", 7));
	OK(cuMemcpyPeer(q, second, p, ctx, 7));
	OK(cuMemcpyDtoH(text, q, 7));
	assert_string_equal(text, "across");
	OK(cuMemFree(q)); /* C-49: its device counts, not the current one */
	assert_int_equal(D_USED(1), 0);
	OK(cuMemFree(p));
	OK(cuCtxDisablePeerAccess(second));
}

static void test_multicast(void **state)
{
	CUmulticastObjectProp prop = {.numDevices = 2, .size = 2 * MiB};
	CUmemAllocationProp mem = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				   .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};
	CUmemGenericAllocationHandle mc, h;
	CUdeviceptr va;
	size_t g = 0;

	(void)state;
	OK(cuMulticastGetGranularity(&g, &prop, CU_MULTICAST_GRANULARITY_MINIMUM));
	assert_int_equal(g, 2 * MiB);
	OK(cuMulticastCreate(&mc, &prop));
	OK(cuMemCreate(&h, 2 * MiB, &mem, 0));
	OK(cuMulticastAddDevice(mc, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMulticastBindMem(mc, 0, h, 0, 2 * MiB, 0));
	OK(cuMulticastAddDevice(mc, 1));
	OK(cuMulticastBindMem(mc, 0, h, 0, 2 * MiB, 0));
	assert_int_equal(D_USED(0), 0);
	assert_int_equal(D_USED(1), 2 * MiB);
	OK(cuMemAddressReserve(&va, 2 * MiB, 0, 0, 0));
	OK(cuMemMap(va, 2 * MiB, 0, mc, 0));
	OK(cuMemUnmap(va, 2 * MiB));
	OK(cuMemAddressFree(va, 2 * MiB));
	OK(cuMulticastUnbind(mc, 1, 0, 2 * MiB));
	OK(cuMemRelease(mc));
	OK(cuMemRelease(h));
	assert_int_equal(D_USED(1), 0);
}

static void test_green_contexts(void **state)
{
	CUdevResource all, part[2], rest;
	CUdevResourceDesc desc;
	unsigned int n = 2;
	CUgreenCtx green;
	CUcontext own;
	CUdeviceptr p, q;
	CUstream s;

	(void)state;
	OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	assert_int_equal(all.sm.smCount, 132);
	OK(cuDevSmResourceSplitByCount(part, &n, &all, &rest, 0, 20));
	assert_true(n == 2 && part[0].sm.smCount == 24 && rest.sm.smCount == 84);
	OK(cuDevResourceGenerateDesc(&desc, part, 1));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(&green, desc, 0, 0));
	OK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	OK(cuCtxFromGreenCtx(&own, green));
	OK(cuGreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
	OK(cuCtxPushCurrent(own));
	OK(cuMemAlloc(&p, 1000));
	OK(cuMemAllocAsync(&q, 50, s));
	OK(cuCtxPopCurrent(NULL));
	assert_int_equal(D_USED(0), 1050);
	FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(own));
	OK(cuDevicePrimaryCtxRetain(&own, 0));
	OK(cuGreenCtxDestroy(green));
	assert_int_equal(D_USED(0), 1050); /* the primary context's */
	OK(cuDevicePrimaryCtxRelease(0));
	assert_int_equal(D_USED(0), 50);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	OK(cuMemFree(q));
}

static void test_graphics(void **state)
{
	CUgraphicsResource none = (CUgraphicsResource)(uintptr_t)1;

	(void)state;
	OK(cuGraphicsMapResources(0, NULL, NULL));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuGraphicsMapResources(1, &none, NULL));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuGraphicsUnregisterResource(none));
}

/* Functions of the interoperability headers, which want those of GL, EGL and VDPAU. */
static void *named(const char *base, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult found;
	void *entry = NULL;

	OK(cuGetProcAddress(base, &entry, version, flags, &found));
	assert_int_equal(found, CU_GET_PROC_ADDRESS_SUCCESS);
	assert_non_null(entry);
	return entry;
}

static void test_no_gl(void **state)
{
	typedef CUresult (*devices_fn)(unsigned int *, CUdevice *, unsigned int, unsigned int);
	typedef CUresult (*context_fn)(CUcontext *, unsigned int, CUdevice);
	typedef CUresult (*image_fn)(CUgraphicsResource *, unsigned int, unsigned int, unsigned int);
	typedef CUresult (*buffer_fn)(CUgraphicsResource *, unsigned int, unsigned int);
	typedef CUresult (*map_fn)(CUdeviceptr *, size_t *, unsigned int);
	typedef CUresult (*name_fn)(unsigned int);
	devices_fn devices = (devices_fn)named("cuGLGetDevices", 6050, 0);
	context_fn create = (context_fn)named("cuGLCtxCreate", 3020, 0);
	image_fn image = (image_fn)named("cuGraphicsGLRegisterImage", 3000, 0);
	buffer_fn buffer = (buffer_fn)named("cuGraphicsGLRegisterBuffer", 3000, 0);
	map_fn map = (map_fn)named("cuGLMapBufferObject", 7000, 0);
	CUgraphicsResource resource = NULL;
	CUcontext now, below, none = NULL;
	CUdevice device = -1;
	unsigned int n = 7;
	CUdeviceptr p = 0;
	size_t size = 0;

	(void)state;
	FAILS(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, devices(&n, &device, 1, 1));
	FAILS(CUDA_ERROR_INVALID_VALUE, devices(NULL, &device, 1, 1));
	assert_true(n == 7 && device == -1);
	FAILS(CUDA_ERROR_OPERATING_SYSTEM, image(&resource, 1, 0x0de1, 0));
	FAILS(CUDA_ERROR_OPERATING_SYSTEM, buffer(&resource, 1, 0));
	FAILS(CUDA_ERROR_INVALID_CONTEXT, create(&none, 0, 0));
	FAILS(CUDA_ERROR_INVALID_DEVICE, create(&none, 0, 2));
	FAILS(CUDA_ERROR_UNKNOWN, ((CUresult (*)(void))named("cuGLInit", 2000, 0))());
	FAILS(CUDA_ERROR_INVALID_CONTEXT,
	      ((name_fn)named("cuGLRegisterBufferObject", 2000, 0))(1));
	FAILS(CUDA_ERROR_INVALID_CONTEXT, map(&p, &size, 1));
	assert_true(named("cuGLMapBufferObject", 7000, 2) != (void *)map);
	assert_true(resource == NULL && none == NULL && p == 0 && size == 0);
	OK(cuCtxPopCurrent(&now));
	OK(cuCtxPopCurrent(&below));
	FAILS(CUDA_ERROR_INVALID_CONTEXT, image(&resource, 1, 0x0de1, 0));
	FAILS(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, devices(&n, &device, 1, 1));
	OK(cuCtxPushCurrent(below));
	OK(cuCtxPushCurrent(now));
}

static void test_no_egl_no_vdpau(void **state)
{
	typedef CUresult (*image_fn)(CUgraphicsResource *, void *, unsigned int);
	typedef CUresult (*frame_fn)(void *, CUgraphicsResource, unsigned int, unsigned int);
	typedef CUresult (*connect_fn)(void **, void *);
	typedef CUresult (*event_fn)(CUevent *, void *, unsigned int);
	typedef CUresult (*device_fn)(CUdevice *, uint32_t, void *);
	typedef CUresult (*surface_fn)(CUgraphicsResource *, uint32_t, unsigned int);
	image_fn image = (image_fn)named("cuGraphicsEGLRegisterImage", 7000, 0);
	frame_fn frame = (frame_fn)named("cuGraphicsResourceGetMappedEglFrame", 7000, 0);
	connect_fn connect = (connect_fn)named("cuEGLStreamConsumerConnect", 7000, 0);
	event_fn event = (event_fn)named("cuEventCreateFromEGLSync", 9000, 0);
	device_fn device = (device_fn)named("cuVDPAUGetDevice", 3010, 0);
	surface_fn surface = (surface_fn)named("cuGraphicsVDPAURegisterVideoSurface", 3010, 0);
	CUgraphicsResource resource = NULL;
	void *connection = NULL;
	CUdevice found = -1;
	CUevent made = NULL;
	char room[64];

	(void)state;
	FAILS(CUDA_ERROR_INVALID_HANDLE, image(&resource, room, 0));
	FAILS(CUDA_ERROR_NOT_MAPPED, frame(room, resource, 0, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, frame(NULL, resource, 0, 0));
	FAILS(CUDA_ERROR_INVALID_HANDLE, connect(&connection, room));
	FAILS(CUDA_ERROR_INVALID_VALUE, event(&made, room, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, device(&found, 1, NULL));
	FAILS(CUDA_ERROR_INVALID_HANDLE, surface(&resource, 1, 0));
	assert_true(resource == NULL && connection == NULL && made == NULL && found == -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peers),
		cmocka_unit_test(test_multicast),
		cmocka_unit_test(test_green_contexts),
		cmocka_unit_test(test_graphics),
		cmocka_unit_test(test_no_gl),
		cmocka_unit_test(test_no_egl_no_vdpau),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
