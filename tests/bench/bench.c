/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that is measured: pairs of cuMemAlloc and cuMemFree, by an ordinary link.
 *
 *   bench same LIVE PAIRS [BYTES]    a new allocation comes and goes beside LIVE others
 *   bench turnover LIVE PAIRS        a new one comes, the oldest goes
 *   bench grow LIVE                  allocations only
 *   bench memory LIVE                bytes of the process before and after LIVE allocations
 *   bench threads COUNT PAIRS        nanoseconds of CPU a pair, pairs in COUNT threads; with
 *                                    BENCH_SHARDS=OFFSET,COUNT in libcuweir.so: contended locks
 */
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long address;

int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **ret, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(address *ret, size_t bytes);
int cuMemFree_v2(address memory);

enum { BYTES = 512, SHARD_BYTES = 128, CONTENDED = 4 };

static void *context;

static void must(int result, const char *what)
{
	if (result != 0) {
		fprintf(stderr, "bench: %s gave %d\n", what, result);
		exit(1);
	}
}

static address take(size_t bytes)
{
	address memory = 0;

	must(cuMemAlloc_v2(&memory, bytes), "cuMemAlloc_v2");
	return memory;
}

/* The first of them; the driver's addresses are BYTES apart. */
static address fill(uint64_t count)
{
	address first = 0;

	for (uint64_t i = 0; i < count; i++) {
		address memory = take(BYTES);

		first = i == 0 ? memory : first;
	}
	return first;
}

static void same(uint64_t live, uint64_t pairs, size_t bytes)
{
	fill(live);
	for (uint64_t i = 0; i < pairs; i++) {
		must(cuMemFree_v2(take(bytes)), "cuMemFree_v2");
	}
}

static void turnover(uint64_t live, uint64_t pairs)
{
	address oldest = fill(live);

	for (uint64_t i = 0; i < pairs; i++) {
		take(BYTES);
		must(cuMemFree_v2(oldest), "cuMemFree_v2");
		oldest += BYTES;
	}
}

/* Of /proc/self/smaps_rollup: what this process alone has in memory. */
static uint64_t private_bytes(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	unsigned long long kib, sum = 0;
	char line[256];

	must(file == NULL, "smaps_rollup");
	while (fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "Private_Dirty: %llu", &kib) == 1) {
			sum += kib * 1024;
		}
	}
	fclose(file);
	return sum;
}

static void memory(uint64_t live)
{
	uint64_t before = private_bytes();

	fill(live);
	printf("%llu %llu\n", (unsigned long long)before, (unsigned long long)private_bytes());
}

static void *work(void *argument)
{
	const uint64_t *pairs = argument;

	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	for (uint64_t i = 0; i < *pairs; i++) {
		must(cuMemFree_v2(take(BYTES)), "cuMemFree_v2");
	}
	return NULL;
}

static int add_contended(struct dl_phdr_info *info, size_t size, void *sum)
{
	unsigned long long offset, count;

	(void)size;
	if (strstr(info->dlpi_name, "libcuweir.so") == NULL ||
	    sscanf(getenv("BENCH_SHARDS"), "%llx,%llu", &offset, &count) != 2) {
		return 0;
	}
	for (unsigned long long i = 0; i < count; i++) {
		const char *shard = (const char *)info->dlpi_addr + offset + i * SHARD_BYTES;
		uint32_t contended;

		memcpy(&contended, shard + CONTENDED, sizeof(contended));
		*(uint64_t *)sum += contended;
	}
	return 1;
}

static void threads(uint64_t count, uint64_t pairs)
{
	pthread_t *thread = calloc(count, sizeof(*thread));
	struct timespec cpu;
	uint64_t contended = 0;

	must(thread == NULL, "calloc");
	for (uint64_t i = 0; i < count; i++) {
		must(pthread_create(&thread[i], NULL, work, &pairs), "pthread_create");
	}
	for (uint64_t i = 0; i < count; i++) {
		pthread_join(thread[i], NULL);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	if (getenv("BENCH_SHARDS") != NULL) {
		dl_iterate_phdr(add_contended, &contended);
	}
	printf("%.2f %llu\n",
	       ((double)cpu.tv_sec * 1e9 + (double)cpu.tv_nsec) / (double)(count * pairs),
	       (unsigned long long)contended);
	free(thread);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t second = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;

	must(cuInit(0), "cuInit");
	must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	if (strcmp(what, "same") == 0) {
		same(first, second, argc > 4 ? strtoull(argv[4], NULL, 10) : BYTES);
	} else if (strcmp(what, "turnover") == 0) {
		turnover(first, second);
	} else if (strcmp(what, "grow") == 0) {
		fill(first);
	} else if (strcmp(what, "memory") == 0) {
		memory(first);
	} else if (strcmp(what, "threads") == 0) {
		threads(first, second);
	} else {
		fprintf(stderr, "usage: bench same|turnover|grow|memory|threads NUMBERS\n");
		return 2;
	}
	return 0;
}
