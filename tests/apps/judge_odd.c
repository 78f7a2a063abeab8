/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Odd calls, each with its status and what it left in the out pointer; every free of every
 * allocation; and memory calls of one thread while another captures.
 */
#include "judge.h"

#include <pthread.h>

static void show(const char *what, int status)
{
	printf("%s %d\n", what, status);
}

static void zero_and_null(void)
{
	CUdeviceptr p = 0xdead;
	size_t pitch = 7;
	void *host = (void *)0xdead;

	show("alloc NULL", (int)cuMemAlloc(NULL, 4096));
	show("alloc NULL 0", (int)cuMemAlloc(NULL, 0));
	show("managed NULL", (int)cuMemAllocManaged(NULL, 4096, CU_MEM_ATTACH_GLOBAL));
	show("managed flags", (int)cuMemAllocManaged(&p, 4096, 77));
	show("async NULL", (int)cuMemAllocAsync(NULL, 4096, NULL));
	show("async 0", (int)cuMemAllocAsync(&p, 0, NULL));
	show("host NULL", (int)cuMemAllocHost(NULL, 4096));
	show("hostalloc flags", (int)cuMemHostAlloc(&host, 4096, 0x800));
	show("pitch 0", (int)cuMemAllocPitch(&p, &pitch, 0, 4, 4));
	show("pitch 0 high", (int)cuMemAllocPitch(&p, &pitch, 4, 0, 4));
	show("pitch NULL", (int)cuMemAllocPitch(&p, NULL, 4, 4, 4));
	show("pitch element", (int)cuMemAllocPitch(&p, &pitch, 4, 4, 5));
	show("runtime NULL", (int)cudaMalloc(NULL, 4096));
	show("runtime NULL async", (int)cudaMallocAsync(NULL, 4096, NULL));
	show("runtime NULL host", (int)cudaMallocHost(NULL, 4096));
	show("runtime NULL pitch", (int)cudaMallocPitch(NULL, &pitch, 4, 4));
	show("last", (int)cudaGetLastError());
	printf("left %llx %zu %p\n", (unsigned long long)p, pitch, host);
}

static void wrong_frees(void)
{
	CUdeviceptr p = 0;
	void *host = NULL;
	int local = 0;

	show("cudaFree NULL", (int)cudaFree(NULL));
	show("cudaFreeHost NULL", (int)cudaFreeHost(NULL));
	show("cudaFreeAsync NULL", (int)cudaFreeAsync(NULL, NULL));
	show("cuMemFree 0", (int)cuMemFree(0));
	show("cuMemFreeHost NULL", (int)cuMemFreeHost(NULL));
	show("cuMemFreeAsync 0", (int)cuMemFreeAsync(0, NULL));
	CHECK(cuMemAlloc(&p, 4096));
	show("interior", (int)cuMemFree(p + 16));
	show("interior async", (int)cuMemFreeAsync(p + 16, NULL));
	show("interior runtime", (int)cudaFree((void *)(p + 16)));
	show("as host", (int)cuMemFreeHost((void *)p));
	show("as host runtime", (int)cudaFreeHost((void *)p));
	show("right", (int)cuMemFree(p));
	show("twice", (int)cuMemFree(p));
	show("twice runtime", (int)cudaFree((void *)p));
	show("stack", (int)cuMemFree((CUdeviceptr)(void *)&local));
	show("stack host", (int)cuMemFreeHost(&local));
	CHECK(cuMemAllocHost(&host, 4096));
	show("host as device", (int)cuMemFree((CUdeviceptr)host));
	show("host as device runtime", (int)cudaFree(host));
	show("host right", (int)cuMemFreeHost(host));
	show("host twice", (int)cuMemFreeHost(host));
	show("last", (int)cudaGetLastError());
}

static void without_context(void)
{
	CUdeviceptr p = 0xdead;
	CUdeviceptr q = 0;
	CUcontext context;
	CUstream stream;

	CHECK(cuMemAlloc(&q, 4096));
	CHECK(cuCtxGetCurrent(&context));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuCtxSetCurrent(NULL));
	show("no context", (int)cuMemAlloc(&p, 4096));
	show("no context, managed", (int)cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
	show("no context, async 0", (int)cuMemAllocAsync(&p, 4096, NULL));
	printf("left %llx\n", (unsigned long long)p);
	show("no context, free", (int)cuMemFree(q));
	show("no context, stream", (int)cuMemAllocAsync(&p, 3000, stream));
	show("no context, free on stream", (int)cuMemFreeAsync(p, stream));
	CHECK(cuCtxSetCurrent(context));
	show("free after that", (int)cuMemFree(q));
	CHECK(cuCtxSynchronize());
}

void judge_odd(void)
{
	show("before init", (int)cuMemFree(0x1000));
	CHECK(cuInit(0));
	judge_use(0);
	zero_and_null();
	wrong_frees();
	without_context();
	print_truth();
}

/* ---- what is no allocation, and wants memory ----------------------------------------------- */

/* Each is made to fail twice by the settings; a second time it may do what it does. */
void judge_wants(void)
{
	CUresult (*launch)(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
			   unsigned int, unsigned int, unsigned int, CUstream, void **, void **);
	CUcontext context;
	CUmodule module;
	CUstream made;

	CHECK(cuInit(0));
	judge_use(0);
	*(void **)&launch = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel");
	for (int i = 0; i < 2; i++) {
		show("module", (int)cuModuleLoadData(&module, "image"));
		show("launch", (int)launch(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		show("context", (int)cuCtxCreate_v2(&context, 0, 0));
		show("stream", (int)cuStreamCreate(&made, 0));
	}
}

/* ---- P-26: when nobody else gets memory ---------------------------------------------------- */

enum { MANY = 200000 };

void judge_starved(void)
{
	static CUdeviceptr blocks[MANY];
	void (*starve)(bool) = NULL;
	unsigned long long sum = 0;

	*(void **)&starve = dlsym(RTLD_DEFAULT, "starve");
	REQUIRE(starve != NULL);
	CHECK(cuInit(0));
	judge_use(0);
	CHECK(cuMemAlloc(&blocks[0], 1));
	starve(true);
	for (int i = 1; i < MANY; i++) {
		CHECK(cuMemAlloc(&blocks[i], 16));
		REQUIRE(blocks[i] != 0);
	}
	for (int i = 0; i < MANY; i++) {
		sum += blocks[i] != 0;
		CHECK(cuMemFree(blocks[i]));
	}
	starve(false);
	CHECK(cuMemAlloc(&blocks[0], 4096));
	printf("all %llu\n", sum);
}

/* ---- P-22 ------------------------------------------------------------------------------- */

static CUmemoryPool pool;
static CUstream stream;

static CUdeviceptr graph_memory(void)
{
	CUdeviceptr p = 0;
	CUgraphExec exec;
	CUgraph graph;

	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(cuMemAllocAsync(&p, 512, stream));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
	return p;
}

/* Memory that came by a way that nobody hears. */
static CUdeviceptr unheard_memory(void)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
	void *(*entry)(const char *, int, unsigned long long) = NULL;
	CUresult (*alloc)(CUdeviceptr *, size_t) = NULL;
	CUdeviceptr p = 0;

	*(void **)&entry = dlsym(libcuda, "cuweir_sim_private_entry");
	REQUIRE(entry != NULL);
	*(void **)&alloc = entry("cuMemAlloc", 3020, 0);
	CHECK(alloc(&p, 600));
	return p;
}

static CUdeviceptr matrix_memory(int way)
{
	CUdeviceptr p = 0;
	size_t pitch;

	switch (way) {
	case 0:
		CHECK(cuMemAlloc(&p, 100));
		break;
	case 1:
		CHECK(cuMemAllocAsync(&p, 200, stream));
		break;
	case 2:
		CHECK(cuMemAllocFromPoolAsync(&p, 300, pool, stream));
		break;
	case 3:
		CHECK(cuMemAllocManaged(&p, 400, CU_MEM_ATTACH_GLOBAL));
		break;
	case 4:
		CHECK(cuMemAllocPitch(&p, &pitch, 100, 5, 4));
		break;
	case 5:
		p = graph_memory();
		break;
	default:
		p = unheard_memory();
		break;
	}
	return p;
}

void judge_matrix(void)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
	};

	CHECK(cuInit(0));
	judge_use(0);
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemPoolCreate(&pool, &props));
	for (int way = 0; way < 7; way++) {
		CHECK(cuMemFree(matrix_memory(way)));
		/* Whether managed memory may be freed on a stream is the driver's to say. */
		if (way != 3) {
			CHECK(cuMemFreeAsync(matrix_memory(way), stream));
		}
		CHECK(cuStreamSynchronize(stream));
	}
	CHECK(cuMemPoolDestroy(pool));
	CHECK(cuStreamSynchronize(stream));
}

/* ---- captures ------------------------------------------------------------------------------ */

static struct {
	CUcontext context;
	int statuses[6];
} other;

static void *other_thread(void *argument)
{
	CUdeviceptr p = 0, q = 0, r = 0;
	void *host = NULL;

	CHECK(cuCtxSetCurrent(other.context));
	other.statuses[0] = (int)cuMemAlloc(&p, 1000);
	other.statuses[1] = (int)cuMemAllocAsync(&q, 2000, argument);
	other.statuses[2] = (int)cuMemAllocHost(&host, 3000);
	other.statuses[3] = p != 0 ? (int)cuMemFree(p) : -1;
	other.statuses[4] = q != 0 ? (int)cuMemFreeAsync(q, argument) : -1;
	other.statuses[5] = (int)cuMemAllocManaged(&r, 4000, CU_MEM_ATTACH_GLOBAL);
	return NULL;
}

static void capture_once(CUstreamCaptureMode mode, int own)
{
	CUdeviceptr p = 0, q = 0;
	CUgraph graph = NULL;
	CUstream second;
	pthread_t thread;

	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamBeginCapture(stream, mode));
	show("captured", (int)cuMemAllocAsync(&p, 700, stream));
	CHECK(pthread_create(&thread, NULL, other_thread, second));
	CHECK(pthread_join(thread, NULL));
	for (int i = 0; i < 6; i++) {
		show("other thread", other.statuses[i]);
	}
	if (own != 0) {
		show("own", (int)(own == 1 ? cuMemAlloc(&q, 500)
					   : cuMemAllocAsync(&q, 500, second)));
	}
	show("captured free", (int)cuMemFreeAsync(p, stream));
	show("end", (int)cuStreamEndCapture(stream, &graph));
	printf("graph %d\n", graph != NULL);
	if (q != 0) {
		show("own free", (int)cuMemFree(q));
	}
	CHECK(cuStreamSynchronize(second));
	CHECK(cuStreamDestroy(second));
	CHECK(cuStreamDestroy(stream));
}

void judge_captures(void)
{
	static const CUstreamCaptureMode modes[] = {
		CU_STREAM_CAPTURE_MODE_GLOBAL,
		CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
		CU_STREAM_CAPTURE_MODE_RELAXED,
	};

	CHECK(cuInit(0));
	judge_use(0);
	CHECK(cuCtxGetCurrent(&other.context));
	for (int mode = 0; mode < 3; mode++) {
		for (int own = 0; own < 3; own++) {
			printf("mode %d, own %d\n", mode, own);
			capture_once(modes[mode], own);
		}
	}
	print_truth();
}
