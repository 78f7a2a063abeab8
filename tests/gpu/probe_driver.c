/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the driver what its documentation leaves open (cases C-02 to C-15, C-42, C-43, C-82,
 * C-85 to C-87, C-105). Takes every function by dlsym.
 */
#include "probe.h"

#include <cuda.h>

#undef cuMemGetInfo
#undef cuMemAlloc
#undef cuMemFree
#undef cuMemAllocPitch
#undef cuStreamBeginCapture

#define CALLS(CALL)                                                                          \
	CALL(cuInit, (unsigned int))                                                         \
	CALL(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                              \
	CALL(cuDevicePrimaryCtxGetState, (CUdevice, unsigned int *, int *))                  \
	CALL(cuDeviceGetUuid_v2, (CUuuid *, CUdevice))                                       \
	CALL(cuCtxSetCurrent, (CUcontext))                                                   \
	CALL(cuCtxGetCurrent, (CUcontext *))                                                 \
	CALL(cuCtxGetDevice, (CUdevice *))                                                   \
	CALL(cuCtxSynchronize, (void))                                                       \
	CALL(cuStreamCreate, (CUstream *, unsigned int))                                     \
	CALL(cuStreamGetCtx, (CUstream, CUcontext *))                                        \
	CALL(cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus *))                       \
	CALL(cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode))                       \
	CALL(cuStreamEndCapture, (CUstream, CUgraph *))                                      \
	CALL(cuMemGetInfo_v2, (size_t *, size_t *))                                          \
	CALL(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                         \
	CALL(cuMemAllocPitch_v2, (CUdeviceptr *, size_t *, size_t, size_t, unsigned int))    \
	CALL(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned int))                       \
	CALL(cuMemAllocHost_v2, (void **, size_t))                                           \
	CALL(cuMemHostAlloc, (void **, size_t, unsigned int))                                \
	CALL(cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream))                             \
	CALL(cuMemFree_v2, (CUdeviceptr))                                                    \
	CALL(cuMemFreeAsync, (CUdeviceptr, CUstream))                                        \
	CALL(cuMemFreeHost, (void *))                                                        \
	CALL(cuArrayDestroy, (CUarray))                                                      \
	CALL(cuGraphClone, (CUgraph *, CUgraph))                                             \
	CALL(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))      \
	CALL(cuGraphExecUpdate_v2, (CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *))    \
	CALL(cuGraphLaunch, (CUgraphExec, CUstream))                                         \
	CALL(cuGraphExecDestroy, (CUgraphExec))                                              \
	CALL(cuGraphDestroy, (CUgraph))                                                      \
	CALL(cuGetProcAddress_v2,                                                            \
	     (const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *))

static struct {
#define MEMBER(symbol, parameters) CUresult(*symbol) parameters;
	CALLS(MEMBER)
} cu;

static void *libcuda;
static CUstream stream;

static void need(CUresult status, const char *what)
{
	if (status != CUDA_SUCCESS) {
		fprintf(stderr, "probe: %s: %d\n", what, (int)status);
		exit(status == CUDA_ERROR_NO_DEVICE ? 77 : 1);
	}
}

static void begin(void)
{
	CUcontext context;

	libcuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (libcuda == NULL) {
		fprintf(stderr, "probe: %s\n", dlerror());
		exit(77);
	}
#define TAKE(symbol, parameters) *(void **)&cu.symbol = dlsym(libcuda, #symbol);
	CALLS(TAKE)
	need(cu.cuInit(0), "cuInit");
	need(cu.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	need(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
	need(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

/* Does a look-up give what the library exports? What it gives with us is ours in both cases. */
static void lookups(const char *name)
{
	static const struct {
		const char *base, *symbol;
		int version;
		cuuint64_t flags;
	} rows[] = {
		{ "cuMemAlloc", "cuMemAlloc_v2", 3020, 0 },
		{ "cuMemAlloc", "cuMemAlloc", 2000, 0 },
		{ "cuMemFree", "cuMemFree_v2", 3020, 0 },
		{ "cuMemAllocAsync", "cuMemAllocAsync", 11020, 0 },
		{ "cuMemAllocAsync", "cuMemAllocAsync_ptsz", 11020, 2 },
		{ "cuMemHostAlloc", "cuMemHostAlloc", 2020, 0 },
		{ "cuMemCreate", "cuMemCreate", 10020, 0 },
		{ "cuGetProcAddress", "cuGetProcAddress_v2", 12000, 0 },
	};
	size_t same = 0, count = sizeof(rows) / sizeof(rows[0]);

	for (size_t i = 0; i < count; i++) {
		void *found = NULL;

		if (cu.cuGetProcAddress_v2(rows[i].base, &found, rows[i].version, rows[i].flags,
					   NULL) == CUDA_SUCCESS) {
			same += found == dlsym(libcuda, rows[i].symbol);
		}
	}
	answer(name, "%zu of %zu", same, count);
}

static void zero_sizes(const char *name)
{
	unsigned long p[8];
	size_t pitch;
	int status[8];
	static const char *const calls[] = { "cuMemAlloc", "cuMemAllocManaged", "cuMemAllocHost",
					     "cuMemHostAlloc", "cuMemAllocAsync",
					     "cuMemAllocPitch width", "cuMemAllocPitch height" };

	for (int i = 0; i < 8; i++) {
		p[i] = SENTINEL;
	}
	status[0] = (int)cu.cuMemAlloc_v2((CUdeviceptr *)&p[0], 0);
	status[1] = (int)cu.cuMemAllocManaged((CUdeviceptr *)&p[1], 0, CU_MEM_ATTACH_GLOBAL);
	status[2] = (int)cu.cuMemAllocHost_v2((void **)&p[2], 0);
	status[3] = (int)cu.cuMemHostAlloc((void **)&p[3], 0, 0);
	status[4] = (int)cu.cuMemAllocAsync((CUdeviceptr *)&p[4], 0, stream);
	status[5] = (int)cu.cuMemAllocPitch_v2((CUdeviceptr *)&p[5], &pitch, 0, 4, 4);
	status[6] = (int)cu.cuMemAllocPitch_v2((CUdeviceptr *)&p[6], &pitch, 4, 0, 4);
	for (int i = 0; i < 7; i++) {
		char line[128];

		snprintf(line, sizeof(line), "%s, %s", name, calls[i]);
		answer(line, "%d, pointer %s", status[i], became(p[i]));
	}
}

static void too_much(const char *name)
{
	unsigned long p = SENTINEL;
	CUresult status = cu.cuMemAlloc_v2((CUdeviceptr *)&p, (size_t)1 << 50);

	answer(name, "%d, pointer %s", (int)status, became(p));
}

static void no_pointer(const char *name)
{
	if (strstr(name, "Managed") != NULL) {
		answer(name, "%d", (int)cu.cuMemAllocManaged(NULL, 4096, CU_MEM_ATTACH_GLOBAL));
	} else if (strstr(name, "Host") != NULL) {
		answer(name, "%d", (int)cu.cuMemAllocHost_v2(NULL, 4096));
	} else if (strstr(name, "Async") != NULL) {
		answer(name, "%d", (int)cu.cuMemAllocAsync(NULL, 4096, stream));
	} else {
		answer(name, "%d", (int)cu.cuMemAlloc_v2(NULL, 4096));
	}
}

static void free_nothing(const char *name)
{
	if (strstr(name, "Host") != NULL) {
		answer(name, "%d", (int)cu.cuMemFreeHost(NULL));
	} else if (strstr(name, "Async") != NULL) {
		answer(name, "%d", (int)cu.cuMemFreeAsync(0, stream));
	} else if (strstr(name, "Array") != NULL) {
		answer(name, "%d", (int)cu.cuArrayDestroy(NULL));
	} else {
		answer(name, "%d", (int)cu.cuMemFree_v2(0));
	}
}

static void wrong_frees(const char *name)
{
	CUdeviceptr p = 0;
	int local = 0, twice, inside;

	(void)cu.cuMemAlloc_v2(&p, 8192);
	inside = (int)cu.cuMemFree_v2(p + 512);
	(void)cu.cuMemFree_v2(p);
	twice = (int)cu.cuMemFree_v2(p);
	answer(name, "twice %d, inside %d, stack %d, never given out %d", twice, inside,
	       (int)cu.cuMemFree_v2((CUdeviceptr)(unsigned long)&local),
	       (int)cu.cuMemFree_v2(0xdead0000));
}

static void memory_info(const char *name)
{
	size_t figure = 0;
	CUresult status = strstr(name, "free alone") != NULL ? cu.cuMemGetInfo_v2(&figure, NULL)
			  : strstr(name, "total alone") != NULL
				  ? cu.cuMemGetInfo_v2(NULL, &figure)
				  : cu.cuMemGetInfo_v2(NULL, NULL);

	answer(name, "%d, %s", (int)status, figure != 0 ? "written" : "nothing written");
}

static void no_context(const char *name)
{
	CUcontext context;
	CUdeviceptr p = 0;
	size_t a, b;

	(void)cu.cuMemAlloc_v2(&p, 4096);
	(void)cu.cuCtxGetCurrent(&context);
	(void)cu.cuCtxSetCurrent(NULL);
	answer(name, "cuMemFree %d, cuMemAlloc %d, cuMemGetInfo %d", (int)cu.cuMemFree_v2(p),
	       (int)cu.cuMemAlloc_v2(&p, 4096), (int)cu.cuMemGetInfo_v2(&a, &b));
	(void)cu.cuCtxSetCurrent(context);
}

static CUresult allocate(int how, CUdeviceptr *p)
{
	size_t pitch;

	switch (how) {
	case 0:
		return cu.cuMemAlloc_v2(p, 4096);
	case 1:
		return cu.cuMemAllocPitch_v2(p, &pitch, 100, 10, 4);
	case 2:
		return cu.cuMemAllocManaged(p, 4096, CU_MEM_ATTACH_GLOBAL);
	case 3:
		return cu.cuMemAllocAsync(p, 4096, stream);
	default:
		return cu.cuMemAllocHost_v2((void **)p, 4096);
	}
}

static CUresult release(int how, CUdeviceptr p)
{
	return how == 0   ? cu.cuMemFree_v2(p)
	       : how == 1 ? cu.cuMemFreeAsync(p, stream)
			  : cu.cuMemFreeHost((void *)p);
}

static void families(const char *name)
{
	static const char *const made[] = { "cuMemAlloc", "cuMemAllocPitch", "cuMemAllocManaged",
					    "cuMemAllocAsync", "cuMemAllocHost" };

	for (int a = 0; a < 5; a++) {
		char line[128];
		int status[3] = { -1, -1, -1 };

		for (int f = 0; f < 3; f++) {
			CUdeviceptr p = 0;

			if (allocate(a, &p) == CUDA_SUCCESS) {
				status[f] = (int)release(f, p);
				if (status[f] != 0) {
					(void)release(a == 4 ? 2 : 0, p);
				}
			}
		}
		snprintf(line, sizeof(line), "%s, %s", name, made[a]);
		answer(line, "cuMemFree %d, cuMemFreeAsync %d, cuMemFreeHost %d", status[0],
		       status[1], status[2]);
	}
}

/* ---- captures ------------------------------------------------------------------------- */

static CUdeviceptr before; /* allocated before the capture */

#define IN_CAPTURE(ASK)                                                                      \
	ASK(cuMemAlloc, cu.cuMemAlloc_v2(&p, 4096))                                          \
	ASK(cuMemFree, cu.cuMemFree_v2(before))                                              \
	ASK(cuMemAllocManaged, cu.cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL))         \
	ASK(cuMemAllocHost, cu.cuMemAllocHost_v2((void **)&p, 4096))                         \
	ASK(cuMemAllocAsync, cu.cuMemAllocAsync(&p, 4096, stream))                           \
	ASK(cuMemFreeAsync_of_other_memory, cu.cuMemFreeAsync(before, stream))               \
	ASK(cuMemGetInfo, cu.cuMemGetInfo_v2(&a, &b))                                        \
	ASK(cuCtxGetCurrent, cu.cuCtxGetCurrent(&context))                                   \
	ASK(cuCtxGetDevice, cu.cuCtxGetDevice(&device))                                      \
	ASK(cuStreamGetCtx, cu.cuStreamGetCtx(stream, &context))                             \
	ASK(cuStreamIsCapturing, cu.cuStreamIsCapturing(stream, &state))                     \
	ASK(cuDevicePrimaryCtxGetState, cu.cuDevicePrimaryCtxGetState(0, &flags, &active))   \
	ASK(cuDeviceGetUuid, cu.cuDeviceGetUuid_v2(&uuid, 0))                                \
	ASK(cuCtxSynchronize, cu.cuCtxSynchronize())

static CUresult in_capture(int which)
{
	CUstreamCaptureStatus state;
	CUcontext context;
	CUdevice device;
	CUdeviceptr p;
	CUuuid uuid;
	unsigned int flags;
	int active, number = 0;
	size_t a, b;

#define ASK(what, call)                                                                      \
	if (number++ == which) {                                                             \
		return call;                                                                 \
	}
	IN_CAPTURE(ASK)
#undef ASK
	return CUDA_ERROR_UNKNOWN;
}

static void captures(const char *name)
{
	static const char *const modes[] = { "global", "thread local", "relaxed" };
	static const char *const calls[] = {
#define ASK(what, call) #what,
		IN_CAPTURE(ASK)
	};

	for (int mode = 0; mode < 3; mode++) {
		for (int i = 0; i < (int)(sizeof(calls) / sizeof(calls[0])); i++) {
			CUgraph graph = NULL;
			char line[160];
			int status, ended;

			(void)cu.cuMemAlloc_v2(&before, 4096);
			(void)cu.cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)mode);
			status = (int)in_capture(i);
			ended = (int)cu.cuStreamEndCapture(stream, &graph);
			if (graph != NULL) {
				(void)cu.cuGraphDestroy(graph);
			}
			(void)cu.cuMemFree_v2(before);
			snprintf(line, sizeof(line), "%s, %s, %s", name, modes[mode], calls[i]);
			answer(line, "%d, the capture ends with %d", status, ended);
		}
	}
}

static void graphs(const char *name)
{
	CUgraphExecUpdateResultInfo info;
	CUgraphExec exec = NULL, second = NULL;
	CUgraph graph, copy;
	CUdeviceptr p = 0;
	int cloned, again, updated, relaunched, freed;

	need(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "capture");
	need(cu.cuMemAllocAsync(&p, 65536, stream), "cuMemAllocAsync");
	need(cu.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
	cloned = (int)cu.cuGraphClone(&copy, graph);
	need(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
	again = (int)cu.cuGraphInstantiateWithFlags(&second, graph, 0);
	updated = (int)cu.cuGraphExecUpdate_v2(exec, graph, &info);
	need(cu.cuGraphLaunch(exec, stream), "cuGraphLaunch");
	relaunched = (int)cu.cuGraphLaunch(exec, stream);
	(void)cu.cuCtxSynchronize();
	freed = (int)cu.cuMemFree_v2(p);
	answer(name, "clone %d, second instance %d, update with itself %d, relaunch %d, free %d",
	       cloned, again, updated, relaunched, freed);
	(void)cu.cuGraphExecDestroy(exec);
	(void)cu.cuGraphDestroy(graph);
}

int main(int argc, char **argv)
{
	static const struct question questions[] = {
		{ "~exported addresses from cuGetProcAddress", lookups, 0 },
		{ "C-02 C-05 C-06 size 0", zero_sizes, 0 },
		{ "C-01 C-09 more than there is", too_much, 0 },
		{ "C-08 no pointer, cuMemAlloc", no_pointer, 1 },
		{ "C-08 no pointer, cuMemAllocManaged", no_pointer, 1 },
		{ "C-08 no pointer, cuMemAllocHost", no_pointer, 1 },
		{ "C-08 no pointer, cuMemAllocAsync", no_pointer, 1 },
		{ "C-11 NULL, cuMemFree", free_nothing, 1 },
		{ "C-12 NULL, cuMemFreeHost", free_nothing, 1 },
		{ "C-12 NULL, cuMemFreeAsync", free_nothing, 1 },
		{ "C-12 NULL, cuArrayDestroy", free_nothing, 1 },
		{ "C-13 wrong frees", wrong_frees, 1 },
		{ "C-15 C-106 without a context", no_context, 0 },
		{ "C-42 C-43 allocated by and freed by", families, 1 },
		{ "C-105 cuMemGetInfo, free alone", memory_info, 1 },
		{ "C-105 cuMemGetInfo, total alone", memory_info, 1 },
		{ "C-105 cuMemGetInfo, neither", memory_info, 1 },
		{ "C-82 C-85 in a capture", captures, 1 },
		{ "C-86 C-87 a graph with memory", graphs, 1 },
	};

	begin();
	return ask_all(questions, sizeof(questions) / sizeof(questions[0]), argv[0], "ask",
		       argc > 2 ? argv[2] : NULL);
}
