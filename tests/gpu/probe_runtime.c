/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the runtime what its documentation leaves open (cases C-03, C-04, C-10, C-12, C-13,
 * C-30, C-98, C-105), and, as "watch", whether cudaSetDevice comes to the driver by functions
 * that were looked up.
 */
#include "probe.h"

#include <cuda_runtime_api.h>

static void zero_sizes(const char *name)
{
	static const char *const calls[] = { "cudaMalloc", "cudaMallocManaged", "cudaMallocHost",
					     "cudaHostAlloc", "cudaMallocAsync",
					     "cudaMallocPitch", "cudaMalloc3D" };
	struct cudaPitchedPtr pitched = { .ptr = (void *)SENTINEL };
	unsigned long p[7];
	size_t pitch;
	int status[7];

	for (int i = 0; i < 7; i++) {
		p[i] = SENTINEL;
	}
	status[0] = (int)cudaMalloc((void **)&p[0], 0);
	status[1] = (int)cudaMallocManaged((void **)&p[1], 0, cudaMemAttachGlobal);
	status[2] = (int)cudaMallocHost((void **)&p[2], 0);
	status[3] = (int)cudaHostAlloc((void **)&p[3], 0, 0);
	status[4] = (int)cudaMallocAsync((void **)&p[4], 0, NULL);
	status[5] = (int)cudaMallocPitch((void **)&p[5], &pitch, 0, 4);
	status[6] = (int)cudaMalloc3D(&pitched, (struct cudaExtent){ 0, 4, 4 });
	p[6] = (unsigned long)pitched.ptr;
	for (int i = 0; i < 7; i++) {
		char line[128];

		snprintf(line, sizeof(line), "%s, %s", name, calls[i]);
		answer(line, "%d, pointer %s", status[i], became(p[i]));
	}
	(void)cudaGetLastError();
}

static void free_nothing(const char *name)
{
	if (strstr(name, "Host") != NULL) {
		answer(name, "%d", (int)cudaFreeHost(NULL));
	} else if (strstr(name, "Async") != NULL) {
		answer(name, "%d", (int)cudaFreeAsync(NULL, NULL));
	} else if (strstr(name, "Array") != NULL) {
		answer(name, "%d", (int)cudaFreeArray(NULL));
	} else {
		answer(name, "%d", (int)cudaFree(NULL));
	}
}

static void wrong_frees(const char *name)
{
	char *p = NULL;
	int local = 0, inside, twice;

	(void)cudaMalloc((void **)&p, 8192);
	inside = (int)cudaFree(p + 512);
	(void)cudaFree(p);
	twice = (int)cudaFree(p);
	answer(name, "twice %d, inside %d, stack %d, last error %d", twice, inside,
	       (int)cudaFree(&local), (int)cudaGetLastError());
}

static void last_error(const char *name)
{
	void *p = NULL;
	int failed = (int)cudaMalloc(&p, (size_t)1 << 50);
	int peeked = (int)cudaPeekAtLastError();
	int worked = (int)cudaMalloc(&p, 4096);
	int got = (int)cudaGetLastError();

	answer(name, "%d, peek %d, then a success %d leaves %d, then %d", failed, peeked, worked,
	       got, (int)cudaGetLastError());
	(void)cudaFree(p);
}

static void reset(const char *name)
{
	cudaStream_t stream;
	void *pooled = NULL, *linear = NULL;
	int ended, first, second;

	(void)cudaStreamCreate(&stream);
	(void)cudaMallocAsync(&pooled, 4096, stream);
	(void)cudaMalloc(&linear, 4096);
	(void)cudaStreamSynchronize(stream);
	ended = (int)cudaDeviceReset();
	first = (int)cudaFree(pooled);
	second = (int)cudaFree(linear);
	answer(name, "%d, free of pool memory %d, of linear %d", ended, first, second);
}

static void memory_info(const char *name)
{
	size_t figure = 0;
	cudaError_t status = strstr(name, "free alone") != NULL ? cudaMemGetInfo(&figure, NULL)
			     : strstr(name, "total alone") != NULL
				     ? cudaMemGetInfo(NULL, &figure)
				     : cudaMemGetInfo(NULL, NULL);

	answer(name, "%d, %s", (int)status, figure != 0 ? "written" : "nothing written");
}

/* ---- watching a runtime's look-ups: the program's own dlsym stands before libc's -------- */

#ifdef WATCH
typedef int (*find_fn)(const char *, void **, int, unsigned long long, void *);
typedef int (*one_fn)(void *);
typedef int (*retain_fn)(void **, int);

static find_fn real_find;
static one_fn real_set;
static retain_fn real_retain;
static int sets, retains;

static int watched_set(void *context)
{
	sets++;
	return real_set(context);
}

static int watched_retain(void **context, int device)
{
	retains++;
	return real_retain(context, device);
}

static int watched_find(const char *name, void **function, int version, unsigned long long flags,
			void *result)
{
	int status = real_find(name, function, version, flags, result);

	if (status == 0 && name != NULL && function != NULL && *function != NULL) {
		if (strcmp(name, "cuCtxSetCurrent") == 0) {
			*(void **)&real_set = *function;
			*function = (void *)watched_set;
		} else if (strcmp(name, "cuDevicePrimaryCtxRetain") == 0) {
			*(void **)&real_retain = *function;
			*function = (void *)watched_retain;
		} else if (strcmp(name, "cuGetProcAddress") == 0 && version >= 12000) {
			*(void **)&real_find = *function;
			*function = (void *)watched_find;
		}
	}
	return status;
}

/* No look-up of a name that depends on the caller is made here. */
void *dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);

	if (real == NULL) {
		*(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	}
	if (real == NULL) {
		*(void **)&real = dlvsym(RTLD_NEXT, "dlsym",
#ifdef __x86_64__
					 "GLIBC_2.2.5"
#else
					 "GLIBC_2.17"
#endif
		);
	}
	if (strcmp(name, "cuGetProcAddress_v2") == 0) {
		*(void **)&real_find = real(handle, name);
		return real_find != NULL ? (void *)watched_find : NULL;
	}
	return real(handle, name);
}

static int watch(void)
{
	int first, devices = 0;

	(void)cudaSetDevice(0);
	first = sets + retains;
	(void)cudaGetDeviceCount(&devices);
	sets = 0;
	(void)cudaSetDevice(devices - 1);
	answer("~cudaSetDevice is heard at the driver", "first %s, another %s%s",
	       first != 0 ? "yes" : "no", sets != 0 ? "yes" : "no",
	       devices > 1 ? "" : " (one device alone)");
	return 0;
}
#endif

int main(int argc, char **argv)
{
	static const struct question questions[] = {
		{ "C-10 NULL, cudaFree", free_nothing, 0 },
		{ "C-03 C-04 C-05 size 0", zero_sizes, 0 },
		{ "C-12 NULL, cudaFreeHost", free_nothing, 1 },
		{ "C-12 NULL, cudaFreeAsync", free_nothing, 1 },
		{ "C-12 NULL, cudaFreeArray", free_nothing, 1 },
		{ "C-13 wrong frees", wrong_frees, 1 },
		{ "C-30 the last error", last_error, 0 },
		{ "C-98 after cudaDeviceReset", reset, 1 },
		{ "C-105 cudaMemGetInfo, free alone", memory_info, 1 },
		{ "C-105 cudaMemGetInfo, total alone", memory_info, 1 },
		{ "C-105 cudaMemGetInfo, neither", memory_info, 1 },
	};

#ifdef WATCH
	(void)questions;
	(void)argc;
	(void)argv;
	return watch();
#else
	return ask_all(questions, sizeof(questions) / sizeof(questions[0]), argv[0], "ask",
		       argc > 2 ? argv[2] : NULL);
#endif
}
