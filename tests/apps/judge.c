/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is linked to libcuda and to a runtime, and takes functions by dlsym and by
 * cuGetProcAddress besides: judge WAY CASE[,SEED], for CASE the table at the end. Built for each
 * runtime, as the scenario is.
 */
#include "judge.h"

#include <sys/wait.h>
#include <unistd.h>

static struct {
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*free)(CUdeviceptr);
} by_dlsym, by_gpa;

void judge_use(int device)
{
	CUcontext context;

	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
}

static void look_up(void)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*get)(const char *, void **, int, cuuint64_t, void *) = NULL;
	void *found = NULL;

	REQUIRE(libcuda != NULL);
	*(void **)&by_dlsym.alloc = dlsym(libcuda, "cuMemAlloc_v2");
	*(void **)&by_dlsym.free = dlsym(libcuda, "cuMemFree_v2");
	*(void **)&get = dlsym(libcuda, "cuGetProcAddress_v2");
	CHECK(get("cuMemAlloc", &found, 12000, 0, NULL));
	*(void **)&by_gpa.alloc = found;
	CHECK(get("cuMemFree", &found, 12000, 0, NULL));
	*(void **)&by_gpa.free = found;
}

/* ---- every way of allocating with every way of freeing -------------------------------- */

enum { MIXED_WAYS = 6 };

static CUdeviceptr take(int way, size_t size)
{
	CUdeviceptr p = 0;

	switch (way) {
	case 0:
		CHECK(cuMemAlloc(&p, size));
		break;
	case 1:
		CHECK(by_dlsym.alloc(&p, size));
		break;
	case 2:
		CHECK(by_gpa.alloc(&p, size));
		break;
	case 3:
		CHECK(cudaMalloc((void **)&p, size));
		break;
	case 4:
		CHECK(cuMemAllocAsync(&p, size, NULL));
		break;
	default:
		CHECK(cudaMallocAsync((void **)&p, size, NULL));
		break;
	}
	return p;
}

static void give(int way, CUdeviceptr p)
{
	switch (way) {
	case 0:
		CHECK(cuMemFree(p));
		break;
	case 1:
		CHECK(by_dlsym.free(p));
		break;
	case 2:
		CHECK(by_gpa.free(p));
		break;
	case 3:
		CHECK(cudaFree((void *)p));
		break;
	case 4:
		CHECK(cuMemFreeAsync(p, NULL));
		break;
	default:
		CHECK(cudaFreeAsync((void *)p, NULL));
		break;
	}
}

/* The sizes tell the pairs apart: 1000 x the one way + the other + 1. */
static void mixed(unsigned int seed)
{
	CHECK(cuInit(0));
	look_up();
	judge_use(0);
	CHECK(cudaSetDevice(0));
	for (int from = 0; from < MIXED_WAYS; from++) {
		for (int to = 0; to < MIXED_WAYS; to++) {
			give(to, take(from, (size_t)(1000 * from + to + 1)));
		}
	}
	(void)seed;
	CHECK(cuCtxSynchronize());
	print_truth();
}

/* ---- a second runtime in one process ----------------------------------------------------- */

static void two_runtimes(unsigned int seed)
{
	const char *name = getenv("CUWEIR_TEST_SECOND");
	void *second = name != NULL ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*second_alloc)(void **, size_t) = NULL;
	int (*second_free)(void *) = NULL;
	int (*second_error)(void) = NULL;
	void *first = NULL;
	void *other = NULL;

	(void)seed;
	if (second == NULL) {
		fprintf(stderr, "no second runtime: %s\n", dlerror());
		exit(1);
	}
	*(void **)&second_alloc = dlsym(second, "second_alloc");
	*(void **)&second_free = dlsym(second, "second_free");
	*(void **)&second_error = dlsym(second, "second_error");
	CHECK(cudaMalloc(&first, 1000));
	CHECK(second_alloc(&other, 2000));
	CHECK(second_free(first));
	CHECK(cudaFree(other));
	/* Each has a last error of its own. */
	REQUIRE(second_alloc(&other, (size_t)1 << 60) == 2);
	printf("errors %d %d\n", (int)cudaPeekAtLastError(), second_error());
	REQUIRE(cudaMalloc(&other, (size_t)1 << 60) == 2);
	printf("errors %d %d\n", (int)cudaGetLastError(), second_error());
	print_truth();
}

/* ---- look-ups, then a child that uses CUDA (P-62) ----------------------------------------- */

static void lookups_then_fork(unsigned int seed)
{
	int status = -1;
	pid_t child;

	(void)seed;
	for (int i = 0; i < 250; i++) {
		look_up();
	}
	child = fork();
	if (child == 0) {
		CHECK(cuInit(0));
		judge_use(0);
		give(3, take(0, 5000));
		give(1, take(3, 6000));
		exit(0);
	}
	REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
	printf("child %d\n", WEXITSTATUS(status));
}

static void odd(unsigned int seed)
{
	(void)seed;
	judge_odd();
}

static void wants(unsigned int seed)
{
	(void)seed;
	judge_wants();
}

static void starved(unsigned int seed)
{
	(void)seed;
	judge_starved();
}

static void matrix(unsigned int seed)
{
	(void)seed;
	judge_matrix();
}

static void captures(unsigned int seed)
{
	(void)seed;
	judge_captures();
}

static const struct {
	const char *name;
	void (*run)(unsigned int seed);
} cases[] = {
	{ "mixed", mixed },	  { "two", two_runtimes }, { "fork", lookups_then_fork },
	{ "contexts", judge_contexts },
	{ "crowd", judge_crowd },
	{ "fuzz", judge_fuzz },
	{ "odd", odd },		  { "matrix", matrix },	   { "captures", captures },
	{ "wants", wants },	  { "starved", starved },
};

int main(int argc, char **argv)
{
	char *comma = argc > 2 ? strchr(argv[2], ',') : NULL;

	if (comma != NULL) {
		*comma = '\0';
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc > 2 && strcmp(argv[2], cases[i].name) == 0) {
			cases[i].run(comma != NULL ? (unsigned int)atoi(comma + 1) : 0);
			fflush(stdout);
			return 0;
		}
	}
	fprintf(stderr, "judge: no such case\n");
	return 2;
}
