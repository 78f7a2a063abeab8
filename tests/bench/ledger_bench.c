/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the ledger: bytes for each live allocation, the cost of a pair at any number of
 * live ones, threads. What a whole call costs is measured by measure.py.
 *
 *   ledger_bench memory                   bytes at 1 and 10 million live; fails above 40
 *   ledger_bench churn LIVE TURNOVERS     bytes after that many turnovers of all records
 *   ledger_bench same LIVE PAIRS          a new record comes and goes beside LIVE others
 *   ledger_bench turnover LIVE PAIRS      a new record comes, the oldest goes
 *   ledger_bench grow LIVE                inserts only
 *   ledger_bench threads COUNT PAIRS      pairs in COUNT threads, and contended locks
 */
#include "../../shim/ledger.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIMIT_BYTES 40.0

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* 512 bytes apart, as a driver hands out small blocks; within 48 bits. */
static uint64_t address_of(uint64_t n)
{
	return 0x7f0000000000 + ((n & 0x3fffffff) << 9);
}

static void must(bool condition, const char *what)
{
	if (!condition) {
		fprintf(stderr, "ledger_bench: %s\n", what);
		exit(1);
	}
}

static void fill(uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		must(cw_ledger_replace(address_of(i), 512, 1, NULL) == 0, "insert failed");
	}
}

static double bytes_each(void)
{
	return (double)cw_ledger_bytes_mapped() / (double)cw_ledger_live();
}

static int memory(void)
{
	double worst = 0;

	for (uint64_t live = 0; live < 10000000;) {
		fill(live, live + 10000);
		live += 10000;
		if (live >= 1000000 && bytes_each() > worst) {
			worst = bytes_each();
		}
		if (live == 100000 || live == 1000000 || live == 10000000) {
			printf("live %8llu: %.2f bytes each\n", (unsigned long long)live,
				bytes_each());
		}
	}
	printf("worst from 1 to 10 million: %.2f bytes each\n", worst);
	return worst <= LIMIT_BYTES ? 0 : 1;
}

static int churn(uint64_t live, uint64_t turnovers)
{
	fill(0, live);
	printf("live %llu: %.2f bytes each\n", (unsigned long long)live, bytes_each());
	for (uint64_t i = 0; i < live * turnovers; i++) {
		must(cw_ledger_replace(address_of(i + live), 512, 1, NULL) == 0, "insert failed");
		must(cw_ledger_remove(address_of(i), NULL), "remove failed");
	}
	printf("after %llu turnovers: %.2f bytes each\n", (unsigned long long)turnovers,
		bytes_each());
	return bytes_each() <= LIMIT_BYTES ? 0 : 1;
}

static int pairs(uint64_t live, uint64_t count, bool oldest)
{
	double start;

	fill(0, live);
	start = seconds();
	for (uint64_t i = 0; i < count; i++) {
		uint64_t new = address_of(live + i);
		struct cw_record record;

		must(cw_ledger_replace(new, 512, 1, NULL) == 0, "insert failed");
		must(cw_ledger_remove(oldest ? address_of(i) : new, &record), "remove failed");
	}
	printf("live %8llu: %.1f ns a pair\n", (unsigned long long)live,
		(seconds() - start) * 1e9 / (double)count);
	return 0;
}

struct worker {
	pthread_t thread;
	uint64_t first, count;
};

static void *work(void *arg)
{
	const struct worker *worker = arg;

	for (uint64_t i = 0; i < worker->count; i++) {
		uint64_t address = address_of(worker->first + i);

		must(cw_ledger_replace(address, 512, 1, NULL) == 0, "insert failed");
		must(cw_ledger_remove(address, NULL), "remove failed");
	}
	return NULL;
}

static int threads(uint64_t count, uint64_t each)
{
	struct worker *workers = calloc(count, sizeof(*workers));
	uint64_t contended = 0;
	unsigned worst = 0;
	double start = seconds();

	must(workers != NULL, "no memory");
	for (uint64_t i = 0; i < count; i++) {
		workers[i] = (struct worker){.first = i << 26, .count = each};
		must(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "no thread");
	}
	for (uint64_t i = 0; i < count; i++) {
		pthread_join(workers[i].thread, NULL);
	}
	for (unsigned i = 0; i < CW_LEDGER_SHARDS; i++) {
		contended += cw_ledger_contended(i);
		worst = cw_ledger_contended(i) > worst ? cw_ledger_contended(i) : worst;
	}
	printf("%llu threads: %.1f million pairs/s, %llu of %llu acquisitions contended, "
		"at most %u in one shard\n", (unsigned long long)count,
		(double)(count * each) / (seconds() - start) / 1e6, (unsigned long long)contended,
		(unsigned long long)(2 * count * each), worst);
	free(workers);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	uint64_t second = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;

	if (strcmp(what, "memory") == 0) {
		return memory();
	} else if (strcmp(what, "churn") == 0 && argc == 4) {
		return churn(first, second);
	} else if (strcmp(what, "same") == 0 && argc == 4) {
		return pairs(first, second, false);
	} else if (strcmp(what, "turnover") == 0 && argc == 4) {
		return pairs(first, second, true);
	} else if (strcmp(what, "grow") == 0 && argc == 3) {
		fill(0, first);
		return 0;
	} else if (strcmp(what, "threads") == 0 && argc == 4) {
		return threads(first, second);
	}
	fprintf(stderr, "usage: ledger_bench memory | grow LIVE | churn LIVE TURNOVERS | "
		"same LIVE PAIRS | turnover LIVE PAIRS | threads COUNT PAIRS\n");
	return 2;
}
