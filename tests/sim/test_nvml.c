/* SPDX-License-Identifier: Apache-2.0 */
/* NVML before the driver is in the process, and after. */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "nvml/nvml.h"
#include "test.h"

static void *nvml;

/* By name, as programs find it. */
#define N(fn) ((__typeof__(&fn))dlsym(nvml, #fn))

static int setup(void **state)
{
	(void)state;
	nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	return nvml == NULL;
}

static void test_devices(void **state)
{
	char uuid[96], name[96];
	nvmlDevice_t dev, same;
	unsigned int n = 0;

	(void)state;
	assert_int_equal(N(nvmlDeviceGetCount)(&n), NVML_ERROR_UNINITIALIZED);
	assert_int_equal(N(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(N(nvmlDeviceGetCount_v2)(&n), NVML_SUCCESS);
	assert_int_equal(n, 2);
	assert_int_equal(N(nvmlDeviceGetHandleByIndex_v2)(2, &dev), NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(N(nvmlDeviceGetHandleByIndex_v2)(1, &dev), NVML_SUCCESS);
	assert_int_equal(N(nvmlDeviceGetUUID)(dev, uuid, 4), NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(N(nvmlDeviceGetUUID)(dev, uuid, sizeof(uuid)), NVML_SUCCESS);
	assert_string_equal(uuid, "GPU-63757765-6972-2d73-696d-2d6770750002");
	assert_int_equal(N(nvmlDeviceGetHandleByUUID)(uuid, &same), NVML_SUCCESS);
	assert_ptr_equal(dev, same);
	assert_int_equal(N(nvmlDeviceGetHandleByPciBusId_v2)("00000000:02:00.0", &same),
			 NVML_SUCCESS);
	assert_ptr_equal(dev, same);
	assert_int_equal(N(nvmlDeviceGetHandleByPciBusId)("0000:03:00.0", &same),
			 NVML_ERROR_NOT_FOUND);
	assert_int_equal(N(nvmlDeviceGetGpuFabricInfoV)(dev, uuid), NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(N(nvmlDeviceGetName)(dev, name, sizeof(name)), NVML_SUCCESS);
	assert_string_equal(name, "cuweir simulated GPU 1");
	assert_string_equal(N(nvmlErrorString)(NVML_ERROR_UNINITIALIZED), "Uninitialized");
}

static void test_memory(void **state)
{
	struct nvml_memory m;
	struct nvml_memory_v2 m2 = {.version = 1};
	struct nvml_process_v2 p[2];
	CUresult (*init)(unsigned int);
	CUresult (*create)(CUcontext *, unsigned int, CUdevice);
	CUresult (*alloc)(CUdeviceptr *, size_t);
	nvmlDevice_t dev;
	CUdeviceptr d;
	CUcontext ctx;
	unsigned int n = 2;
	void *driver;

	(void)state;
	assert_int_equal(N(nvmlDeviceGetHandleByIndex)(0, &dev), NVML_SUCCESS);
	assert_int_equal(N(nvmlDeviceGetMemoryInfo)(dev, &m), NVML_SUCCESS);
	assert_true(m.total == 1024 * MiB && m.free == m.total && m.used == 0);
	assert_int_equal(N(nvmlDeviceGetComputeRunningProcesses_v3)(dev, &n, p), NVML_SUCCESS);
	assert_int_equal(n, 0);
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	assert_non_null(driver);
	*(void **)&init = dlsym(driver, "cuInit");
	*(void **)&create = dlsym(driver, "cuCtxCreate_v2");
	*(void **)&alloc = dlsym(driver, "cuMemAlloc_v2");
	OK(init(0));
	OK(create(&ctx, 0, 0));
	OK(alloc(&d, 3000));
	assert_int_equal(N(nvmlDeviceGetMemoryInfo)(dev, &m), NVML_SUCCESS);
	assert_int_equal(m.used, 3000);
	assert_int_equal(N(nvmlDeviceGetMemoryInfo_v2)(dev, &m2),
			 NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	m2.version = NVML_MEMORY_V2;
	assert_int_equal(N(nvmlDeviceGetMemoryInfo_v2)(dev, &m2), NVML_SUCCESS);
	assert_true(m2.used == 3000 && m2.free == 1024 * MiB - 3000 && m2.reserved == 0);
	n = 0;
	assert_int_equal(N(nvmlDeviceGetComputeRunningProcesses_v2)(dev, &n, NULL),
			 NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(n, 1);
	assert_int_equal(N(nvmlDeviceGetComputeRunningProcesses_v2)(dev, &n, p), NVML_SUCCESS);
	assert_true(p[0].pid == (unsigned int)getpid() && p[0].used == 3000);
	assert_int_equal(N(nvmlShutdown)(), NVML_SUCCESS);
	assert_int_equal(N(nvmlShutdown)(), NVML_ERROR_UNINITIALIZED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
