/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the driver how much memory there is: queries WAY CASE, for WAY see way_driver.c, for
 * CASE the table at the end. Each answer is a line: the question, the status, the figures; "-"
 * for a figure not asked for.
 */
#include "apps.h"
#include "lookup.h"

#include <cuda.h>

#define CALLS(CALL)                                                                          \
	CALL(cuInit, cuInit, 2000, (unsigned int))                                           \
	CALL(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (CUcontext *, CUdevice)) \
	CALL(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (CUcontext))                            \
	CALL(cuMemGetInfo, cuMemGetInfo, 2000, (unsigned int *, unsigned int *))             \
	CALL(cuMemGetInfo_v2, cuMemGetInfo, 3020, (size_t *, size_t *))                      \
	CALL(cuDeviceTotalMem, cuDeviceTotalMem, 2000, (unsigned int *, CUdevice))           \
	CALL(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020, (size_t *, CUdevice))              \
	CALL(cuMemAlloc_v2, cuMemAlloc, 3020, (CUdeviceptr *, size_t))

/* Written out, since cuda.h makes macros of the names without suffix. */
#undef cuMemGetInfo
#undef cuDeviceTotalMem
#undef cuMemAlloc

#ifdef WAY_LINKED
#define DECLARE(symbol, base, version, parameters)                                           \
	CUresult linked_##symbol parameters __asm__(#symbol);
CALLS(DECLARE)
#define TAKE(symbol, base, version, parameters) driver.symbol = linked_##symbol;
#else
#define TAKE(symbol, base, version, parameters) \
	*(void **)&driver.symbol = take(how, #symbol, #base, version, 0);
#endif

static struct {
#define MEMBER(symbol, base, version, parameters) CUresult(*symbol) parameters;
	CALLS(MEMBER)
} driver;

static void make_current(int device)
{
	CUcontext context;

	CHECK(driver.cuDevicePrimaryCtxRetain(&context, device));
	CHECK(driver.cuCtxSetCurrent(context));
}

static void show(const char *question, CUresult status, const size_t *free_bytes,
		 const size_t *total_bytes)
{
	printf("%s %d", question, (int)status);
	if (free_bytes != NULL) {
		printf(" %zu", *free_bytes);
	} else {
		printf(" -");
	}
	if (total_bytes != NULL) {
		printf(" %zu\n", *total_bytes);
	} else {
		printf(" -\n");
	}
	fflush(stdout);
}

static void ask_info(bool wants_free, bool wants_total)
{
	size_t free_bytes = 7, total_bytes = 7;
	CUresult status = driver.cuMemGetInfo_v2(wants_free ? &free_bytes : NULL,
						 wants_total ? &total_bytes : NULL);

	show("info", status, wants_free ? &free_bytes : NULL, wants_total ? &total_bytes : NULL);
}

static void ask_total(int device)
{
	size_t total_bytes = 7;
	CUresult status = driver.cuDeviceTotalMem_v2(&total_bytes, device);

	show("total", status, NULL, &total_bytes);
}

static void info(void)
{
	ask_info(true, true);
}

/* P-12 */
static void nulls(void)
{
	ask_info(false, true);
	ask_info(true, false);
	ask_info(false, false);
	show("total", driver.cuDeviceTotalMem_v2(NULL, 0), NULL, NULL);
}

static void totals(void)
{
	ask_total(0);
	ask_total(1);
	ask_total(99);
}

static void devices(void)
{
	info();
	make_current(1);
	info();
}

static void no_context(void)
{
	CHECK(driver.cuCtxSetCurrent(NULL));
	info();
}

/* The 32-bit forms of the oldest CUDA, which nobody renames the newest to. */
static void first_versions(void)
{
	unsigned int small_free = 7, small_total = 7;
	size_t figures[2];
	CUresult status = driver.cuMemGetInfo(&small_free, &small_total);

	figures[0] = small_free;
	figures[1] = small_total;
	show("info", status, &figures[0], &figures[1]);
	small_total = 7;
	status = driver.cuMemGetInfo(NULL, &small_total);
	figures[1] = small_total;
	show("info", status, NULL, &figures[1]);
	status = driver.cuDeviceTotalMem(&small_total, 0);
	figures[1] = small_total;
	show("total", status, NULL, &figures[1]);
}

/* P-33: takes three quarters of what there is said to be. */
static void arena(void)
{
	size_t free_bytes, total_bytes;
	CUdeviceptr p = 0;

	CHECK(driver.cuMemGetInfo_v2(&free_bytes, &total_bytes));
	printf("arena %zu\n", total_bytes / 4 * 3);
	CHECK(driver.cuMemAlloc_v2(&p, total_bytes / 4 * 3));
	info();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "info", info },	  { "nulls", nulls },		{ "totals", totals },
		{ "devices", devices },	  { "no_context", no_context }, { "v1", first_versions },
		{ "arena", arena },
	};
	const char *how = argc > 1 ? argv[1] : "linked";

	(void)how;
	(void)take;
	CALLS(TAKE)
	CHECK(driver.cuInit(0));
	make_current(0);
	for (size_t i = 0; argc > 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[2]) == 0) {
			cases[i].run();
			return 0;
		}
	}
	fprintf(stderr, "queries WAY CASE\n");
	return 2;
}
