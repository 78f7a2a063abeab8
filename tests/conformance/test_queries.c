/* SPDX-License-Identifier: Apache-2.0 */
/* Memory queries that a policy answers: rows P-12, P-28, P-33; C-104 to C-106. */
#include "harness.h"

#include <stdlib.h>

#define CAPACITY "CUWEIR_SIM_CAPACITY=3GiB"

static void driver_queries(void **state)
{
	static const struct run runs[] = {
		{ .row = "nobody answers: the driver's figures",
		  .ways = DRIVER_WAYS, .program = "queries", .script = "info",
		  .environment = { CAPACITY }, .out = "info 0 3221225472 3221225472\n" },
		{ .row = "a policy lowers both figures",
		  .ways = DRIVER_WAYS, .program = "queries", .script = "info", .plugin = "meter",
		  .environment = { CAPACITY }, .policies = { "total=2G,free=1G" },
		  .shown = "query",
		  .events = { "query call=cuMemGetInfo device=0 free=3221225472 "
			      "total=3221225472\n" },
		  .out = "info 0 1073741824 2147483648\n" },
		{ .row = "innermost first, each sees what the one behind it said",
		  .ways = DRIVER_WAYS, .program = "queries", .script = "info", .plugin = "meter",
		  .environment = { CAPACITY }, .policies = { "free=1G", "total=2G" },
		  .shown = "query",
		  .events = { "query free=2147483648 total=2147483648\n",
			      "query free=3221225472 total=3221225472\n" },
		  .out = "info 0 1073741824 2147483648\n" },
		{ .row = "a question within a callback is the driver's to answer",
		  .ways = DRIVER_WAYS, .program = "queries", .script = "info", .plugin = "meter",
		  .environment = { CAPACITY }, .policies = { "free=1G", "total=2G,nested=1" },
		  .shown = "query nested",
		  .events = { "query free=2147483648 total=2147483648\n",
			      "query free=3221225472\n"
			      "nested status=0 free=3221225472 total=3221225472\n" },
		  .out = "info 0 1073741824 2147483648\n" },
		{ .row = "never above the real card",
		  .ways = DRIVER_WAYS, .program = "queries", .script = "info", .plugin = "meter",
		  .environment = { CAPACITY }, .policies = { "raise=1" }, .shown = "",
		  .out = "info 0 3221225472 3221225472\n" },
		{ .row = "P-12: a NULL is the driver's to judge",
		  .ways = DRIVER_WAYS, .program = "queries", .script = "nulls",
		  .plugin = "meter", .environment = { CAPACITY },
		  .policies = { "total=2G,free=1G" }, .shown = "query",
		  .events = { "query free=0 total=3221225472\nquery free=3221225472 total=0\n"
			      "query free=0 total=0\n" },
		  .out = "info 0 - 2147483648\ninfo 0 1073741824 -\ninfo 0 - -\ntotal 1 - -\n" },
		{ .row = "the size of a device, of one that is there and of one that is not",
		  .ways = DRIVER_WAYS, .program = "queries", .script = "totals",
		  .plugin = "meter", .environment = { CAPACITY, "CUWEIR_SIM_DEVICES=2" },
		  .policies = { "device=1,total=2G" }, .shown = "query",
		  .events = { "query call=cuDeviceTotalMem device=0 free=0 total=3221225472\n"
			      "query call=cuDeviceTotalMem device=1 free=0 total=3221225472\n" },
		  .out = "total 0 - 3221225472\ntotal 0 - 2147483648\ntotal 101 - 7\n" },
		{ .row = "P-28: the device is the current context's, by CUDA's ordinal",
		  .ways = DRIVER_WAYS, .program = "queries", .script = "devices",
		  .plugin = "meter", .environment = { CAPACITY, "CUWEIR_SIM_DEVICES=4" },
		  .policies = { "device=1,total=1G" }, .shown = "query",
		  .events = { "query device=0\nquery device=1\n" },
		  .out = "info 0 3221225472 3221225472\ninfo 0 1073741824 1073741824\n" },
		{ .row = "C-106: without a context the driver refuses, and nobody is asked",
		  .ways = DRIVER_WAYS, .program = "queries", .script = "no_context",
		  .plugin = "meter", .policies = { "total=1G" }, .shown = "query",
		  .events = { "" }, .out = "info 201 7 7\n" },
		{ .row = "the first versions, of 32 bits",
		  .ways = DRIVER_WAYS, .program = "queries", .script = "v1", .plugin = "meter",
		  .environment = { CAPACITY }, .policies = { "total=2G,free=1G" },
		  .shown = "query", .events = { "query\nquery\nquery\n" },
		  .out = "info 0 1073741824 2147483648\ninfo 0 - 2147483648\n"
			 "total 0 - 2147483648\n" },
		{ .row = "P-33: who sizes himself by the answer fits",
		  .ways = DRIVER_WAYS, .program = "queries", .script = "arena",
		  .plugin = "meter", .environment = { "CUWEIR_SIM_CAPACITY=24GiB" },
		  .policies = { "total=8G" }, .shown = "query",
		  .events = { "query used=0\nquery used=6442450944\n" },
		  .out = "arena 6442450944\ninfo 0 8589934592 8589934592\n" },
	};

	(void)state;
	RUN_ALL(runs);
}

static void runtime_queries(void **state)
{
	static const struct run runs[] = {
		{ .row = "once for each call of the program, under its name",
		  .ways = SHARED | FOREIGN, .program = "queries", .script = "first_call",
		  .plugin = "meter", .environment = { CAPACITY },
		  .policies = { "total=2G,free=1G" }, .shown = "query",
		  .events = { "query call=cudaMemGetInfo device=0 total=3221225472\n"
			      "query call=cudaMemGetInfo device=0 total=3221225472\n" },
		  .out = "info 0 1073741824 2147483648\ninfo 0 1073741824 2147483648\n" },
		{ .row = "the static runtime is heard at the driver door",
		  .ways = STATIC, .program = "queries", .script = "first_call",
		  .plugin = "meter", .environment = { CAPACITY },
		  .policies = { "total=2G,free=1G" }, .shown = "query",
		  .events = { "query call=cuMemGetInfo total=3221225472\n"
			      "query call=cuMemGetInfo total=3221225472\n" },
		  .out = "info 0 1073741824 2147483648\ninfo 0 1073741824 2147483648\n" },
		{ .row = "P-12, C-105: NULL",
		  .ways = RUNTIME_WAYS, .program = "queries", .script = "nulls",
		  .plugin = "meter", .environment = { CAPACITY },
		  .policies = { "total=2G,free=1G" }, .shown = "",
		  .out = "info 0 - 2147483648\ninfo 0 1073741824 -\ninfo 0 - -\n" },
		{ .row = "P-28: devices",
		  .ways = RUNTIME_WAYS, .program = "queries", .script = "devices",
		  .plugin = "meter", .environment = { CAPACITY, "CUWEIR_SIM_DEVICES=2" },
		  .policies = { "device=1,total=1G" }, .shown = "",
		  .out = "info 0 3221225472 3221225472\ninfo 0 1073741824 1073741824\n" },
		{ .row = "the total of cudaDeviceProp, and nothing else in it",
		  .ways = RUNTIME_WAYS, .program = "queries", .script = "properties",
		  .plugin = "meter", .environment = { CAPACITY, "CUWEIR_SIM_DEVICES=2" },
		  .policies = { "device=1,total=1G" }, .shown = "query",
		  .events = { "query device=0 free=0 total=3221225472\n"
			      "query device=1 free=0 total=3221225472\n" },
		  .out = "properties 3221225472 bus 1 memory pools 1\n"
			 "properties 1073741824 bus 2 memory pools 1\nproperties 1\n" },
		{ .row = "driver functions that the runtime hands out are heard",
		  .ways = RUNTIME_WAYS, .program = "queries", .script = "entry_points",
		  .policies = { "debug=1" }, .shown = "allocated deallocated",
		  .events = { "allocated size=1000 call=cuMemAlloc\ndeallocated size=1000\n"
			      "allocated size=2000 call=cuMemAllocAsync flags=12\n"
			      "deallocated size=2000\n" },
		  .out = "found 1 1\n" },
	};

	(void)state;
	RUN_ALL(runs);
}

static void nvml(void **state)
{
	static const struct run runs[] = {
		{ .row = "P-28: NVML's device 3 is CUDA's 0; one that CUDA hides is nobody's",
		  .ways = LINKED | DLSYM, .program = "nvml/nvml", .script = "", .plugin = "meter",
		  .environment = { "CUWEIR_SIM_DEVICES=2" },
		  .policies = { "device=0,total=4G,free=2G" }, .shown = "query",
		  .events = { "query call=nvmlDeviceGetMemoryInfo device=0 free=6979321856 "
			      "total=8589934592\n"
			      "query call=nvmlDeviceGetMemoryInfo device=0\n"
			      "query call=nvmlDeviceGetMemoryInfo device=1\n"
			      "query call=nvmlDeviceGetMemoryInfo device=1\n" },
		  .out = "3 v1 0 total 8192 free 6656 used 1536\n"
			 "3 v2 0 total 8192 free 6656 used 1024 reserved 512\n2 25 5\n"
			 "3 v1 0 total 4096 free 2048 used 2048\n"
			 "3 v2 0 total 4096 free 2048 used 1536 reserved 512\n2 25 5\n"
			 "2 v1 0 total 8192 free 6656 used 1536\n"
			 "2 v2 0 total 8192 free 6656 used 1024 reserved 512\n"
			 "1 v1 0 total 8192 free 6656 used 1536\n"
			 "1 v2 0 total 8192 free 6656 used 1024 reserved 512\n" },
		{ .row = "P-33: before cuInit, too, where the machine has one device and it is not hidden",
		  .ways = LINKED | DLSYM, .program = "nvml/nvml", .script = "", .plugin = "meter",
		  .environment = { "CUWEIR_SIM_DEVICES=2", "CUWEIR_TEST_NVML_ONE=1",
				   "CUDA_VISIBLE_DEVICES=0" },
		  .policies = { "device=0,total=4G,free=2G" }, .shown = "query",
		  .events = { "query call=nvmlDeviceGetMemoryInfo device=0 free=6979321856 "
			      "total=8589934592\n"
			      "query call=nvmlDeviceGetMemoryInfo device=0\n"
			      "query call=nvmlDeviceGetMemoryInfo device=0\n"
			      "query call=nvmlDeviceGetMemoryInfo device=0\n"
			      "query call=nvmlDeviceGetMemoryInfo device=1\n"
			      "query call=nvmlDeviceGetMemoryInfo device=1\n" },
		  .out = "3 v1 0 total 4096 free 2048 used 2048\n"
			 "3 v2 0 total 4096 free 2048 used 1536 reserved 512\n2 25 5\n"
			 "3 v1 0 total 4096 free 2048 used 2048\n"
			 "3 v2 0 total 4096 free 2048 used 1536 reserved 512\n2 25 5\n"
			 "2 v1 0 total 8192 free 6656 used 1536\n"
			 "2 v2 0 total 8192 free 6656 used 1024 reserved 512\n"
			 "1 v1 0 total 8192 free 6656 used 1536\n"
			 "1 v2 0 total 8192 free 6656 used 1024 reserved 512\n" },
		{ .row = "the used figure agrees with the lowered ones",
		  .ways = LINKED | DLSYM, .program = "nvml/nvml", .script = "", .plugin = "meter",
		  .policies = { "total=7G" }, .shown = "",
		  .out = "3 v1 0 total 8192 free 6656 used 1536\n"
			 "3 v2 0 total 8192 free 6656 used 1024 reserved 512\n2 25 5\n"
			 "3 v1 0 total 7168 free 6656 used 512\n"
			 "3 v2 0 total 7168 free 6656 used 0 reserved 512\n2 25 5\n"
			 "2 v1 0 total 8192 free 6656 used 1536\n"
			 "2 v2 0 total 8192 free 6656 used 1024 reserved 512\n"
			 "1 v1 0 total 8192 free 6656 used 1536\n"
			 "1 v2 0 total 8192 free 6656 used 1024 reserved 512\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct run one = runs[i];

		/* Through a sanitizer's dlopen the program's RUNPATH finds nothing. */
		if (getenv("CUWEIR_TEST_PRELOAD_FIRST") != NULL) {
			one.ways = LINKED;
		}
		run(&one);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(driver_queries),
		cmocka_unit_test(runtime_queries),
		cmocka_unit_test(nvml),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
