/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory, by value. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define G (2 * MiB)

static CUcontext ctx;
static const CUmemAccessDesc rw = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
				   .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static CUmemAllocationProp prop(CUmemLocationType type, int id, CUmemAllocationHandleType share)
{
	return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .requestedHandleTypes = share,
				     .location = {.type = type, .id = id}};
}

static int setup(void **state)
{
	(void)state;
	return cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&ctx, NULL, 0, 0) != CUDA_SUCCESS;
}

static void test_arguments(void **state)
{
	CUmemAllocationProp p = prop(CU_MEM_LOCATION_TYPE_DEVICE, 0, 0), q;
	CUmemGenericAllocationHandle h = 7;
	size_t g = 0;

	(void)state;
	OK(cuMemGetAllocationGranularity(&g, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	assert_int_equal(g, G);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&h, G + 4096, &p, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&h, 0, &p, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&h, G, &p, 1));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&h, G, NULL, 0));
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&h, 2048 * MiB, &p, 0));
	assert_int_equal(h, 7);
	p.location.id = 2;
	FAILS(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&h, G, &p, 0));
	p = prop(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, 0);
	OK(cuMemCreate(&h, 2 * G, &p, 0));
	assert_int_equal(cuweir_sim_used(-1, CUWEIR_SIM_HOST), 2 * G);
	assert_int_equal(D_USED(0), 0);
	OK(cuMemGetAllocationPropertiesFromHandle(&q, h));
	assert_int_equal(q.location.type, CU_MEM_LOCATION_TYPE_HOST_NUMA);
	OK(cuMemRelease(h));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemRelease(h));
	assert_int_equal(cuweir_sim_used(-1, CUWEIR_SIM_HOST), 0);
}

/* C-90, C-91, C-94: bytes go with the last reference and the last mapping. */
static void test_lifetime(void **state)
{
	CUmemAllocationProp p = prop(CU_MEM_LOCATION_TYPE_DEVICE, 0, 0);
	CUmemGenericAllocationHandle h, again;
	unsigned long long flags = 9;
	CUdeviceptr va;
	char text[] = "mapped", back[8] = "";
	size_t free_bytes;

	(void)state;
	OK(cuMemAddressReserve(&va, 8 * G, 0, 0, 0));
	assert_int_equal(va % G, 0);
	assert_int_equal(cuweir_sim_used(-1, CUWEIR_SIM_VA), 8 * G);
	OK(cuMemCreate(&h, G, &p, 0));
	assert_int_equal(D_USED(0), G);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemMap(va, 2 * G, 0, h, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemMap(va + 4096, G, 0, h, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemMap(va + 8 * G, G, 0, h, 0));
	OK(cuMemMap(va, G, 0, h, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemMap(va, G, 0, h, 0));
	OK(cuMemMap(va + G, G, 0, h, 0));
	assert_int_equal(D_USED(0), G);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(va, text, sizeof(text)));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(va, 3 * G, &rw, 1));
	OK(cuMemSetAccess(va, 2 * G, &rw, 1));
	OK(cuMemGetAccess(&flags, &rw.location, va + 5));
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemcpyHtoD(va + 100, text, sizeof(text)));
	OK(cuMemcpyDtoH(back, va + G + 100, sizeof(text))); /* the same bytes */
	assert_string_equal(back, text);
	OK(cuMemsetD8(va, 1, 2 * G));
	OK(cuMemRelease(h));
	assert_int_equal(D_USED(0), G);
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(va + G + 77)));
	assert_int_equal(again, h);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(va, G / 2));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(va, 3 * G));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(va, 8 * G));
	OK(cuMemUnmap(va, 2 * G));
	assert_int_equal(D_USED(0), G);
	OK(cuMemRelease(again));
	assert_int_equal(D_USED(0), 0);
	OK(cuMemGetInfo(&free_bytes, NULL));
	assert_int_equal(free_bytes, 1024 * MiB);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(va, text, sizeof(text)));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(va, 4 * G));
	OK(cuMemAddressFree(va, 8 * G));
	assert_int_equal(cuweir_sim_used(-1, CUWEIR_SIM_VA), 0);
}

/* Many small pieces in one reservation larger than the device, as PyTorch does it. */
static void test_expandable(void **state)
{
	CUmemAllocationProp p = prop(CU_MEM_LOCATION_TYPE_DEVICE, 1, 0);
	CUmemGenericAllocationHandle h[64];
	CUmemAccessDesc desc = rw;
	CUdeviceptr va;
	int ordinal = -1;

	(void)state;
	desc.location.id = 1;
	OK(cuMemAddressReserve(&va, 2048 * MiB, 0, 0, 0));
	for (size_t i = 0; i < 64; i++) {
		OK(cuMemCreate(&h[i], G, &p, 0));
		OK(cuMemMap(va + i * G, G, 0, h[i], 0));
	}
	OK(cuMemSetAccess(va, 64 * G, &desc, 1));
	assert_int_equal(D_USED(1), 64 * G);
	OK(cuMemsetD32(va, 0x01020304, 64 * G / 4));
	OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, va + 9 * G));
	assert_int_equal(ordinal, 1);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(va));
	for (size_t i = 0; i < 64; i++) {
		OK(cuMemRelease(h[i]));
	}
	assert_int_equal(D_USED(1), 64 * G);
	OK(cuMemUnmap(va + 8 * G, 16 * G));
	assert_int_equal(D_USED(1), 48 * G);
	OK(cuMemUnmap(va, 8 * G));
	OK(cuMemUnmap(va + 24 * G, 40 * G));
	assert_int_equal(D_USED(1), 0);
	OK(cuMemAddressFree(va, 2048 * MiB));
}

static void test_reimport(void **state)
{
	CUmemAllocationProp p = prop(CU_MEM_LOCATION_TYPE_DEVICE, 0,
				     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	CUmemAllocationProp closed = prop(CU_MEM_LOCATION_TYPE_DEVICE, 0, 0);
	CUmemGenericAllocationHandle h, other, private_one;
	int fd = -1;

	(void)state;
	OK(cuMemCreate(&h, G, &p, 0));
	OK(cuMemCreate(&private_one, G, &closed, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      cuMemExportToShareableHandle(&fd, private_one,
					   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemRelease(private_one));
	OK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemImportFromShareableHandle(&other, (void *)(intptr_t)fd,
					  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	assert_int_equal(D_USED(0), G);
	assert_int_equal(cuweir_sim_used(0, CUWEIR_SIM_IMPORTED), 0);
	OK(cuMemRelease(h));
	assert_int_equal(D_USED(0), G);
	OK(cuMemRelease(other));
	assert_int_equal(D_USED(0), 0);
}

/* The importing side, in a process of its own: argv[1] is the number of an inherited descriptor. */
static int importer(int fd)
{
	CUmemGenericAllocationHandle h;
	CUdeviceptr va;
	char back[8] = "";

	if (cuInit(0) != 0 || cuCtxCreate(&ctx, NULL, 0, 0) != 0 ||
	    cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd,
					   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
		return 1;
	}
	if (cuweir_sim_used(0, CUWEIR_SIM_IMPORTED) != G || D_USED(0) != 0) {
		return 2;
	}
	if (cuMemAddressReserve(&va, G, 0, 0, 0) != 0 || cuMemMap(va, G, 0, h, 0) != 0 ||
	    cuMemSetAccess(va, G, &rw, 1) != 0 || cuMemcpyDtoH(back, va, 7) != 0) {
		return 3;
	}
	if (strcmp(back, "shared") != 0 || cuMemcpyHtoD(va, "answer", 7) != 0 ||
	    cuMemRelease(h) != 0 || cuMemUnmap(va, G) != 0) {
		return 4;
	}
	return cuweir_sim_used(0, CUWEIR_SIM_IMPORTED) == 0 ? 0 : 5;
}

static void test_two_processes(void **state)
{
	CUmemAllocationProp p = prop(CU_MEM_LOCATION_TYPE_DEVICE, 0,
				     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	CUmemGenericAllocationHandle h;
	CUdeviceptr va;
	char number[16], back[8] = "";
	int fd = -1, status = -1, passed;
	pid_t pid;

	(void)state;
	OK(cuMemCreate(&h, G, &p, 0));
	OK(cuMemAddressReserve(&va, G, 0, 0, 0));
	OK(cuMemMap(va, G, 0, h, 0));
	OK(cuMemSetAccess(va, G, &rw, 1));
	OK(cuMemcpyHtoD(va, "shared", 7));
	OK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	passed = dup(fd); /* inherited, as a passed one would be received */
	snprintf(number, sizeof(number), "%d", passed);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "test_sim_vmm", number, (char *)NULL);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	OK(cuMemcpyDtoH(back, va, 7));
	assert_string_equal(back, "answer");
	close(fd);
	close(passed);
	OK(cuMemUnmap(va, G));
	OK(cuMemRelease(h));
	OK(cuMemAddressFree(va, G));
	assert_int_equal(D_USED(0), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arguments),  cmocka_unit_test(test_lifetime),
		cmocka_unit_test(test_expandable), cmocka_unit_test(test_reimport),
		cmocka_unit_test(test_two_processes),
	};

	if (argc > 1) {
		return importer(atoi(argv[1]));
	}
	return cmocka_run_group_tests(tests, setup, NULL);
}
