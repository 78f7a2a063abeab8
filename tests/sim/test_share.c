/* SPDX-License-Identifier: Apache-2.0 */
/* Memory between processes: IPC handles, shared pools; external memory. The second process is this
 * program again: argv[1] says which side it plays, argv[2] is the file of what it is handed. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define POSIX_FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

struct handed {
	CUipcMemHandle mem;
	CUipcEventHandle event;
	CUmemPoolPtrExportData pointer;
	int pool_fd;
};

static CUcontext ctx;
static CUstream s;

static int setup(void **state)
{
	(void)state;
	return cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&ctx, NULL, 0, 0) != CUDA_SUCCESS ||
	       cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
}

static unsigned long long imported(void)
{
	return cuweir_sim_used(0, CUWEIR_SIM_IMPORTED);
}

#define MUST(x)                                                                                    \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "other process: %s\n", #x);                                \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static int other_ipc(const struct handed *h)
{
	const unsigned int lazy = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
	CUdeviceptr p = 0, again = 0, base = 0;
	CUipcMemHandle bad = {{0}};
	char text[8] = "";
	size_t size = 0;
	CUevent e;

	MUST(cuIpcOpenMemHandle(&p, bad, lazy) == CUDA_ERROR_MAP_FAILED);
	MUST(cuIpcOpenMemHandle(&p, h->mem, 0) == CUDA_ERROR_INVALID_VALUE);
	MUST(cuIpcOpenMemHandle(&p, h->mem, lazy) == 0);
	MUST(imported() == 100000 && D_USED(0) == 0);
	MUST(cuIpcOpenMemHandle(&again, h->mem, lazy) == 0);
	MUST(again == p && imported() == 100000);
	MUST(cuMemGetAddressRange(&base, &size, p + 9) == 0 && base == p && size == 100000);
	MUST(cuMemcpyDtoH(text, p + 99990, 7) == 0 && strcmp(text, "parent") == 0);
	MUST(cuMemcpyHtoD(p + 99990, "child!", 7) == 0);
	MUST(cuMemFree(p) == CUDA_ERROR_INVALID_VALUE);
	MUST(cuIpcCloseMemHandle(p) == 0 && imported() == 100000);
	MUST(cuIpcCloseMemHandle(p) == 0 && imported() == 0);
	MUST(cuIpcCloseMemHandle(p) == CUDA_ERROR_INVALID_VALUE);
	MUST(cuIpcOpenEventHandle(&e, h->event) == 0 && cuEventSynchronize(e) == 0);
	MUST(cuIpcOpenMemHandle(&p, h->mem, lazy) == 0);
	MUST(cuCtxDestroy(ctx) == 0 && imported() == 0);
	return 0;
}

static int other_pool(const struct handed *h)
{
	CUmemoryPool pool;
	CUdeviceptr p = 0, q = 0;
	char text[8] = "";

	MUST(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)h->pool_fd, POSIX_FD,
						0) == 0);
	MUST(cuMemAllocFromPoolAsync(&p, 1, pool, s) == CUDA_ERROR_INVALID_VALUE);
	MUST(cuDeviceSetMemPool(0, pool) == CUDA_ERROR_INVALID_VALUE);
	MUST(cuMemPoolImportPointer(&p, pool, (CUmemPoolPtrExportData *)&h->pointer) == 0);
	MUST(imported() == 3000 && D_USED(0) == 0);
	MUST(cuMemcpyDtoH(text, p, 7) == 0 && strcmp(text, "pooled") == 0);
	MUST(cuMemcpyHtoD(p, "edited", 7) == 0);
	MUST(cuMemFreeAsync(p, s) == 0 && imported() == 0);
	MUST(cuMemPoolImportPointer(&q, pool, (CUmemPoolPtrExportData *)&h->pointer) == 0);
	MUST(cuMemFree(q) == 0 && imported() == 0);
	MUST(cuMemPoolDestroy(pool) == 0);
	return 0;
}

static int other(const char *side, int fd)
{
	struct handed h;

	MUST(setup(NULL) == 0);
	MUST(pread(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h));
	return strcmp(side, "ipc") == 0 ? other_ipc(&h) : other_pool(&h);
}

static void run_other(const char *side, const struct handed *h)
{
	int fd = memfd_create("handed", 0), status = -1;
	char number[16];
	pid_t pid;

	assert_int_equal(write(fd, h, sizeof(*h)), sizeof(*h));
	snprintf(number, sizeof(number), "%d", fd);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "test_sim_share", side, number, (char *)NULL);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
}

static void test_ipc(void **state)
{
	struct handed h = {.pool_fd = -1};
	CUipcMemHandle inner;
	CUdeviceptr before, p, async, q;
	char text[8] = "";
	CUevent e;

	(void)state;
	OK(cuMemAlloc(&before, 700)); /* so that p begins inside a page */
	OK(cuMemAlloc(&p, 100000));
	OK(cuMemcpyHtoD(before, "mine", 5));
	OK(cuMemcpyHtoD(p + 99990, "parent", 7));
	OK(cuIpcGetMemHandle(&h.mem, p));
	OK(cuIpcGetMemHandle(&inner, p + 5000));
	assert_memory_equal(&inner, &h.mem, sizeof(inner));
	FAILS(CUDA_ERROR_INVALID_CONTEXT,
	      cuIpcOpenMemHandle(&q, h.mem, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuMemAllocAsync(&async, 100, s));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&inner, async));
	OK(cuMemFree(async));
	OK(cuEventCreate(&e, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuIpcGetEventHandle(&h.event, e));
	OK(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuIpcGetEventHandle(&h.event, e));
	run_other("ipc", &h);
	OK(cuMemcpyDtoH(text, p + 99990, 7));
	assert_string_equal(text, "child!");
	OK(cuMemcpyDtoH(text, before, 5));
	assert_string_equal(text, "mine");
	OK(cuMemFree(p));
	OK(cuMemAlloc(&q, 100000));
	OK(cuIpcGetMemHandle(&inner, q)); /* unique, even at the same address */
	assert_memory_not_equal(&inner, &h.mem, sizeof(inner));
	OK(cuMemFree(q));
	OK(cuMemFree(before));
	assert_int_equal(D_USED(0), 0);
}

static void test_pool(void **state)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.handleTypes = POSIX_FD,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	struct handed h = {.pool_fd = -1};
	CUmemoryPool pool, closed;
	CUdeviceptr p;
	char text[8] = "";
	int fd = -1;

	(void)state;
	OK(cuDeviceGetDefaultMemPool(&closed, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, closed, POSIX_FD, 0));
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemPoolExportToShareableHandle(&fd, pool, POSIX_FD, 0));
	h.pool_fd = dup(fd);
	OK(cuMemAllocFromPoolAsync(&p, 3000, pool, s));
	OK(cuMemcpyHtoD(p, "pooled", 7));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&h.pointer, p + 512));
	OK(cuMemPoolExportPointer(&h.pointer, p));
	run_other("pool", &h);
	OK(cuMemcpyDtoH(text, p, 7));
	assert_string_equal(text, "edited");
	OK(cuMemFreeAsync(p, s));
	OK(cuMemPoolDestroy(pool));
	close(fd);
	close(h.pool_fd);
}

/* 13.0: pools of places, and what they count as. */
static void test_pool_places(void **state)
{
	const CUmemAllocationType pinned = CU_MEM_ALLOCATION_TYPE_PINNED,
				  managed = CU_MEM_ALLOCATION_TYPE_MANAGED;
	CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST},
		      none = {.type = CU_MEM_LOCATION_TYPE_NONE},
		      dev1 = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
	CUmemPoolProps props = {.allocType = pinned, .location = host, .maxSize = 10000};
	CUmemoryPool pool, own, same;
	CUdeviceptr p, q = 7;

	(void)state;
	OK(cuMemGetDefaultMemPool(&pool, &host, pinned));
	OK(cuMemGetMemPool(&same, &host, pinned));
	assert_ptr_equal(pool, same);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemGetDefaultMemPool(&pool, &none, pinned));
	OK(cuMemAllocFromPoolAsync(&p, 5000, pool, s));
	assert_int_equal(cuweir_sim_used(-1, CUWEIR_SIM_HOST), 5000);
	OK(cuMemFreeAsync(p, s));
	OK(cuMemPoolCreate(&own, &props));
	OK(cuMemSetMemPool(&host, pinned, own));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemSetMemPool(&host, managed, own));
	OK(cuMemGetMemPool(&same, &host, pinned));
	assert_ptr_equal(own, same);
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&q, 10001, own, s));
	assert_int_equal(q, 7);
	OK(cuMemPoolDestroy(own));
	OK(cuMemGetMemPool(&same, &host, pinned));
	assert_ptr_equal(pool, same);
	OK(cuMemGetDefaultMemPool(&pool, &none, managed));
	OK(cuMemAllocFromPoolAsync(&p, 6000, pool, s));
	assert_int_equal(cuweir_sim_used(0, CUWEIR_SIM_MANAGED), 6000);
	OK(cuMemFree(p));
	OK(cuMemGetDefaultMemPool(&pool, &dev1, pinned));
	OK(cuDeviceGetDefaultMemPool(&same, 1));
	assert_ptr_equal(pool, same);
	assert_int_equal(cuweir_sim_used(-1, CUWEIR_SIM_HOST) + D_USED(0), 0);
}

static void test_external(void **state)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC d = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
					      .size = 1 << 20};
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC b = {.offset = 4096, .size = 8192};
	CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC a = {
		.arrayDesc = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0}, .numLevels = 2};
	int fd = memfd_create("external", 0);
	CUexternalMemory m;
	CUcontext other;
	CUmipmappedArray mip;
	CUdeviceptr p, q;
	char text[8] = "";

	(void)state;
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	d.handle.fd = dup(fd); /* the import takes it */
	OK(cuImportExternalMemory(&m, &d));
	assert_int_equal(imported(), 1 << 20);
	OK(cuExternalMemoryGetMappedBuffer(&p, m, &b));
	OK(cuMemcpyHtoD(p + 10, "outside", 8));
	assert_int_equal(pread(fd, text, 8, 4106), 8);
	assert_string_equal(text, "outside");
	b.size = 1 << 20;
	FAILS(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedBuffer(&q, m, &b));
	OK(cuExternalMemoryGetMappedMipmappedArray(&mip, m, &a));
	assert_int_equal(imported() + D_USED(0), 1 << 20);
	OK(cuMipmappedArrayDestroy(mip));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(p + 512));
	OK(cuMemFree(p));
	OK(cuDestroyExternalMemory(m));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalMemory(m));
	assert_int_equal(imported(), 0);
	assert_int_equal(fcntl(d.handle.fd, F_GETFD), -1);
	OK(cuCtxCreate(&other, NULL, 0, 0));
	d.handle.fd = fd;
	OK(cuImportExternalMemory(&m, &d));
	assert_int_equal(imported(), 1 << 20);
	OK(cuCtxDestroy(other));
	assert_int_equal(imported(), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ipc),	    cmocka_unit_test(test_pool),
		cmocka_unit_test(test_pool_places), cmocka_unit_test(test_external),
	};

	if (argc > 2) {
		return other(argv[1], atoi(argv[2]));
	}
	return cmocka_run_group_tests(tests, setup, NULL);
}
