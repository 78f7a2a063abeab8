/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays recorded workloads (D-05, D-11): test_replay DIRECTORY, with the files of
 * google/minimalloc, "id,lower,upper,size". Frees come before allocations of the same time. A
 * limit of exactly the peak never refuses, one a byte lower does; a pool takes fewer calls.
 */
#include "serving.h"

#include <stdio.h>

enum { BUFFERS = 4096 };

struct step {
	unsigned long time;
	bool allocates;
	unsigned int buffer;
};

static struct step steps[2 * BUFFERS];
static uint64_t sizes[BUFFERS];
static CUdeviceptr memory[BUFFERS];
static unsigned int step_count, buffer_count;
static uint64_t own_peak;
static const char *directory;

static int compare(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	if (x->time != y->time) {
		return x->time < y->time ? -1 : 1;
	}
	if (x->allocates != y->allocates) {
		return x->allocates ? 1 : -1;
	}
	return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static void read_workload(const char *name)
{
	unsigned long lower, upper;
	unsigned long long size;
	char path[4096];
	char line[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "r");
	assert_non_null(file);
	step_count = buffer_count = 0;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "%*[^,],%lu,%lu,%llu", &lower, &upper, &size) != 3) {
			continue;
		}
		assert_true(buffer_count < BUFFERS);
		sizes[buffer_count] = size;
		steps[step_count++] = (struct step){ lower, true, buffer_count };
		steps[step_count++] = (struct step){ upper, false, buffer_count };
		buffer_count++;
	}
	fclose(file);
	qsort(steps, step_count, sizeof(steps[0]), compare);
}

/* How many allocations were refused. */
static unsigned int replay(void)
{
	unsigned int refused = 0;
	uint64_t live = 0;

	own_peak = 0;
	for (unsigned int i = 0; i < step_count; i++) {
		unsigned int buffer = steps[i].buffer;

		if (!steps[i].allocates) {
			if (memory[buffer] != 0) {
				assert_int_equal(cuMemFreeAsync(memory[buffer], NULL),
						 CUDA_SUCCESS);
				live -= sizes[buffer];
				memory[buffer] = 0;
			}
			continue;
		}
		if (cuMemAllocAsync(&memory[buffer], sizes[buffer], NULL) != CUDA_SUCCESS) {
			memory[buffer] = 0;
			refused++;
			continue;
		}
		live += sizes[buffer];
		own_peak = live > own_peak ? live : own_peak;
		assert_int_equal(total(), live);
	}
	check_books(0);
	return refused;
}

static const struct {
	const char *name;
	uint64_t peak;
} workloads[] = {
	{ "A.1048576.csv", 1048576 },
	{ "B.1048576.csv", 1048576 },
	{ "C.1048576.csv", 1039360 },
	{ "input.12.csv", 12 },
};

enum { WORKLOADS = sizeof(workloads) / sizeof(workloads[0]) };

static void peaks(void **state)
{
	(void)state;
	for (int i = 0; i < WORKLOADS; i++) {
		uint64_t peak = 0;

		read_workload(workloads[i].name);
		assert_int_equal(cuweir_reset_scoped_peak(0, CUWEIR_KIND_DEVICE, 0), 0);
		assert_int_equal(replay(), 0);
		assert_int_equal(cuweir_get_scoped_peak(0, CUWEIR_KIND_DEVICE, &peak), 0);
		assert_int_equal(peak, workloads[i].peak);
		assert_int_equal(own_peak, workloads[i].peak);
	}
}

static void limits(void **state)
{
	(void)state;
	for (int i = 0; i < WORKLOADS; i++) {
		read_workload(workloads[i].name);
		assert_int_equal(cuweir_set_budget(0, 0, workloads[i].peak), 0);
		assert_int_equal(replay(), 0);
		assert_int_equal(cuweir_set_budget(0, 0, workloads[i].peak - 1), 0);
		assert_true(replay() >= 1);
	}
	assert_int_equal(cuweir_set_budget(0, 0, UINT64_MAX), 0);
}

static void pooled(void **state)
{
	(void)state;
	for (int i = 0; i < WORKLOADS; i++) {
		unsigned long long before, calls;
		CUdeviceptr none = 0;

		read_workload(workloads[i].name);
		/* Begins with an empty pool: what nothing can hold is tried once more without. */
		assert_int_equal(cuMemAlloc(&none, (size_t)3 << 60), CUDA_ERROR_OUT_OF_MEMORY);
		before = cuweir_sim_calls("cuMemAlloc_v2");
		calls = cuweir_sim_calls(NULL);
		assert_int_equal(replay(), 0);
		calls = cuweir_sim_calls(NULL) - calls;
		before = cuweir_sim_calls("cuMemAlloc_v2") - before;
		printf("%s: %u allocations, %llu blocks, %llu driver calls in place of %u\n",
		       workloads[i].name, buffer_count, before, calls, step_count);
		assert_true(before <= buffer_count);
		assert_true(calls < step_count);
		/* A second round, as training steps are: nearly nothing is new. */
		calls = cuweir_sim_calls(NULL);
		assert_int_equal(replay(), 0);
		assert_int_equal(cuweir_sim_calls(NULL) - calls, 1); /* check_books */
	}
}

static int setup(void **state)
{
	(void)state;
	start_cuda();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(peaks), cmocka_unit_test(limits) };
	const struct CMUnitTest with_pool[] = { cmocka_unit_test(peaks),
						cmocka_unit_test(pooled) };
	FILE *file;
	char path[4096];

	directory = argc > 1 ? argv[1] : ".";
	snprintf(path, sizeof(path), "%s/%s", directory, workloads[0].name);
	file = fopen(path, "r");
	if (file == NULL) {
		printf("skipped: no recorded workloads in %s\n", directory);
		return 77;
	}
	fclose(file);
	return getenv("CUWEIR_POLICY") != NULL
		       ? cmocka_run_group_tests(with_pool, setup, NULL)
		       : cmocka_run_group_tests(tests, setup, NULL);
}
