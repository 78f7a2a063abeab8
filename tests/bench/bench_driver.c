/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 for measuring: every call costs the same, however many allocations are live,
 * and remembers nothing. Addresses are 512 bytes apart and never come twice before a thread
 * made 2^30 allocations. BENCH_SPIN=N adds N rounds of an empty loop to each call. What it
 * costs itself is measured by a run without any interposer.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define API __attribute__((visibility("default")))
#define FAST_TLS _Thread_local __attribute__((tls_model("initial-exec")))

typedef unsigned long long address;

enum { SUCCESS = 0, CONTEXT = 0x1000, PAIR_SHIFT = 9, THREAD_SHIFT = 39 };

static unsigned int spin;
static uint64_t threads;
static FAST_TLS uint64_t base;
static FAST_TLS uint64_t count;

__attribute__((constructor)) static void read_spin(void)
{
	const char *text = getenv("BENCH_SPIN");

	spin = text != NULL ? (unsigned int)strtoul(text, NULL, 10) : 0;
}

static inline void work(void)
{
	for (unsigned int i = spin; i != 0; i--) {
		__asm__ volatile("");
	}
}

static __attribute__((cold, noinline)) void begin_thread(void)
{
	uint64_t number = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);

	base = (UINT64_C(1) << 44) + (number << THREAD_SHIFT);
}

static inline address next_address(void)
{
	if (__builtin_expect(base == 0, 0)) {
		begin_thread();
	}
	return base + ((count++ & ((UINT64_C(1) << 30) - 1)) << PAIR_SHIFT);
}

API int cuMemAlloc_v2(address *ret, size_t bytes);
API int cuMemFree_v2(address memory);
API int cuMemAllocAsync(address *ret, size_t bytes, void *stream);
API int cuMemFreeAsync(address memory, void *stream);
API int cuInit(unsigned int flags);
API int cuDriverGetVersion(int *ret);
API int cuDeviceGet(int *ret, int ordinal);
API int cuDeviceGetCount(int *ret);
API int cuDevicePrimaryCtxRetain(void **ret, int device);
API int cuCtxSetCurrent(void *context);
API int cuCtxGetCurrent(void **ret);
API int cuCtxGetDevice(int *ret);
API int cuStreamIsCapturing(void *stream, int *ret);

int cuMemAlloc_v2(address *ret, size_t bytes)
{
	(void)bytes;
	work();
	*ret = next_address();
	return SUCCESS;
}

int cuMemFree_v2(address memory)
{
	(void)memory;
	work();
	return SUCCESS;
}

int cuMemAllocAsync(address *ret, size_t bytes, void *stream)
{
	(void)stream;
	return cuMemAlloc_v2(ret, bytes);
}

int cuMemFreeAsync(address memory, void *stream)
{
	(void)stream;
	return cuMemFree_v2(memory);
}

int cuInit(unsigned int flags)
{
	(void)flags;
	return SUCCESS;
}

int cuDriverGetVersion(int *ret)
{
	*ret = 13000;
	return SUCCESS;
}

int cuDeviceGet(int *ret, int ordinal)
{
	*ret = ordinal;
	return SUCCESS;
}

int cuDeviceGetCount(int *ret)
{
	*ret = 1;
	return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **ret, int device)
{
	(void)device;
	*ret = (void *)(uintptr_t)CONTEXT;
	return SUCCESS;
}

int cuCtxSetCurrent(void *context)
{
	(void)context;
	return SUCCESS;
}

int cuCtxGetCurrent(void **ret)
{
	*ret = (void *)(uintptr_t)CONTEXT;
	return SUCCESS;
}

int cuCtxGetDevice(int *ret)
{
	*ret = 0;
	return SUCCESS;
}

int cuStreamIsCapturing(void *stream, int *ret)
{
	(void)stream;
	*ret = 0;
	return SUCCESS;
}
