/* SPDX-License-Identifier: Apache-2.0 */
/* The settings by value: what is said, where, and what of the program is heard. */
#include "lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLUGINS "BUILD/tests/plugins/"
#define SAID "cuweir[P]: "
#define ALLOCATED SAID "allocated 8.0 KiB (8192 B) device by cuMemAlloc, device 0, 0xA, " \
		       "total 8.0 KiB (8192 B)\n"
#define FREED SAID "freed 8.0 KiB (8192 B) device by cuMemFree, device 0, 0xA, total 0 B (0 B)\n"
#define PAIR "alloc a 8192; free a"

#define EVERY_SCRIPT                                                                               \
	"alloc a 8192; pitch b 100 10; managed c 4096; host d 1000; hostalloc e 2000; "            \
	"async f 3000 s; expect 2 alloc z 100G; free a; free b; free c; free d; free e; "          \
	"freeasync f s"
#define EVERY_LINE                                                                                 \
	ALLOCATED SAID                                                                             \
	"allocated 1000 B (1000 B) device by cuMemAllocPitch, device 0, charged 5120 B, 0xA, "     \
	"total 13.0 KiB (13312 B)\n" SAID                                                          \
	"allocated 4.0 KiB (4096 B) managed by cuMemAllocManaged, device 0, 0xA, "                 \
	"total 4.0 KiB (4096 B)\n" SAID                                                            \
	"allocated 1000 B (1000 B) host by cuMemAllocHost, device 0, 0xA, "                        \
	"total 1000 B (1000 B)\n" SAID                                                             \
	"allocated 1.9 KiB (2000 B) host by cuMemHostAlloc, device 0, 0xA, "                       \
	"total 2.9 KiB (3000 B)\n" SAID                                                            \
	"allocated 2.9 KiB (3000 B) device by cuMemAllocAsync, device 0, 0xA, "                    \
	"total 15.9 KiB (16312 B)\n" SAID                                                          \
	"failed 100.0 GiB (107374182400 B) device by cuMemAlloc, device 0: "                       \
	"CUDA_ERROR_OUT_OF_MEMORY (2)\n" SAID                                                      \
	"freed 8.0 KiB (8192 B) device by cuMemFree, device 0, 0xA, total 7.9 KiB (8120 B)\n" SAID \
	"freed 1000 B (1000 B) device by cuMemFree, device 0, charged 5120 B, 0xA, "               \
	"total 2.9 KiB (3000 B)\n" SAID                                                            \
	"freed 4.0 KiB (4096 B) managed by cuMemFree, device 0, 0xA, total 0 B (0 B)\n" SAID       \
	"freed 1000 B (1000 B) host by cuMemFreeHost, device 0, 0xA, "                             \
	"total 1.9 KiB (2000 B)\n" SAID                                                            \
	"freed 1.9 KiB (2000 B) host by cuMemFreeHost, device 0, 0xA, total 0 B (0 B)\n" SAID      \
	"freed 2.9 KiB (3000 B) device by cuMemFreeAsync, device 0, 0xA, total 0 B (0 B)\n"

static void debug_and_log(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "CUWEIR_DEBUG=1 and no policy: a line for everything",
		    .environment = { "CUWEIR_DEBUG=1" }, .script = EVERY_SCRIPT },
		  .err = EVERY_LINE },
		{ { .row = "CUWEIR_DEBUG=1: policies without debug events leave the lines to us",
		    .environment = { "CUWEIR_DEBUG=1", "CUWEIR_POLICY=limit:8GiB;retry;spill" },
		    .script = PAIR },
		  .err = ALLOCATED FREED },
		{ { .row = "also the sixteenth of them, and where one does not open",
		    .environment = { "CUWEIR_DEBUG=1", "CUWEIR_VERBOSE=0",
				     "CUWEIR_POLICY=retry;retry;retry;retry;retry;retry;retry;"
				     "retry;retry;retry;retry;retry;retry;retry;retry;nobody;retry" },
		    .script = PAIR },
		  .err = ALLOCATED FREED },
		{ { .row = "a policy that has the events shows them itself: no lines of ours",
		    .environment = { "CUWEIR_DEBUG=1", "CUWEIR_LOG=FILE",
				     "CUWEIR_POLICY=retry;log:format=csv,file=/dev/null" },
		    .script = PAIR },
		  .err = "", .file = "" },
		{ { .row = "CUWEIR_LOG: the same lines in the file, and none elsewhere",
		    .environment = { "CUWEIR_DEBUG=1", "CUWEIR_LOG=FILE" },
		    .script = EVERY_SCRIPT },
		  .err = "", .file = EVERY_LINE },
		{ { .row = "CUWEIR_LOG that cannot be written: told, and the lines go to stderr",
		    .environment = { "CUWEIR_DEBUG=1", "CUWEIR_LOG=/no/such/place/x" },
		    .script = PAIR },
		  .err = SAID "CUWEIR_LOG=\"/no/such/place/x\": cannot open /no/such/place/x for "
			      "writing (error 2); want a file name in a directory that exists, "
			      "%p for the process id; lines go to stderr\n" ALLOCATED FREED },
		{ { .row = "CUWEIR_LOG alone has nothing to say",
		    .environment = { "CUWEIR_LOG=FILE" }, .script = PAIR },
		  .err = "", .file = "" },
		{ { .row = "nothing is set, nothing is said", .script = EVERY_SCRIPT }, .err = "" },
		{ { .row = "CUWEIR_DISABLE=1: nothing is heard, nothing is said",
		    .environment = { "CUWEIR_DISABLE=1", "CUWEIR_DEBUG=1", "CUWEIR_REPORT=1",
				     "CUWEIR_LOG=FILE", "CUWEIR_LIMT=1", "CUWEIR_STRICT=1",
				     "CUWEIR_POLICY=nobody" },
		    .script = EVERY_SCRIPT },
		  .err = "" },
		{ { .row = "D-16: look-ups and cuInit open nothing, write nothing",
		    .ways = LINKED, .program = "habits", .script = "idle",
		    .environment = { "CUWEIR_DEBUG=1", "CUWEIR_REPORT=1", "CUWEIR_LOG=FILE",
				     "CUWEIR_STRICT=1", "CUWEIR_POLICY=nobody" } },
		  .err = "" },
	};

	(void)state;
	RUN_LINES(rows);
}

/* The process id's file, by the name that the setting's %p makes. */
static void log_of_process(void **state)
{
	static struct result result;
	char directory[] = "/tmp/cuweir-log-XXXXXX";
	char setting[128];
	char path[128];
	const struct run one = {
		.ways = LINKED, .script = PAIR,
		.environment = { "CUWEIR_POLICY=example", "CUWEIR_VERBOSE=2", setting },
	};
	int pid;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(setting, sizeof(setting), "CUWEIR_LOG=%s/a%%%%%%p.log", directory);
	run_once(&one, LINKED, &result);
	assert_int_equal(sscanf(result.err, "cuweir[%d]: policy example is", &pid), 1);
	snprintf(path, sizeof(path), "%s/a%%%d.log", directory, pid);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
}

static void report(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "CUWEIR_REPORT=1: totals, peaks, counts, and what is left",
		    .environment = { "CUWEIR_REPORT=1" },
		    .script = "alloc a 8192; alloc b 100; free b; managed m 4096; free m; "
			      "host h 1000; free h" },
		  .err = "",
		  .report = {
			  "device 0, device memory: 8192 B (8.0 KiB) in use, peak 8292 B (8.0 "
			  "KiB), 2 allocations, 1 frees\ncuweir[P]:   its peak came after T s, by "
			  "cuMemAlloc from PROGRAM+0xA",
			  "device 0, managed memory: 0 B (0 B) in use, peak 4096 B (4.0 KiB), "
			  "1 allocations, 1 frees\ncuweir[P]:   its peak came after T s, by "
			  "cuMemAllocManaged from PROGRAM+0xA",
			  "device 0, host memory: 0 B (0 B) in use, peak 1000 B (1000 B), "
			  "1 allocations, 1 frees\ncuweir[P]:   its peak came after T s, by "
			  "cuMemAllocHost from PROGRAM+0xA",
			  "0 frees of unknown addresses, 0 allocations without a record\n"
			  "cuweir[P]: 1 allocations still live\n"
			  "cuweir[P]:   8192 B (8.0 KiB) in 1 of 8192 B, device memory of device "
			  "0, by cuMemAlloc from PROGRAM+0xA\n"
			  "cuweir[P]: still allocated: 0xA, 8192 B, device 0, by cuMemAlloc, "
			  "called from PROGRAM+0xA",
			  "module PROGRAM is BUILD/tests/apps/PROGRAM" } },
		{ { .row = "CUWEIR_VERBOSE=0 silences messages, not a report that was asked for",
		    .environment = { "CUWEIR_REPORT=text", "CUWEIR_VERBOSE=0",
				     "CUWEIR_POLICY=nobody" },
		    .script = PAIR },
		  .err = "",
		  .report = { "device 0, device memory: 0 B (0 B) in use, peak 8192 B (8.0 KiB), "
			      "1 allocations, 1 frees", "0 allocations still live" } },
		{ { .row = "CUWEIR_REPORT=0", .environment = { "CUWEIR_REPORT=0" },
		    .script = "alloc a 8192" }, .err = "" },
		{ { .row = "2.4: a child that no fork handler hears of has no report",
		    .program = "habits", .script = "raw", .out = "child 7\n",
		    .environment = { "CUWEIR_REPORT=1" } },
		  .err = "",
		  .report = { "device 0, device memory: 8192 B (8.0 KiB) in use, peak 8192 B (8.0 "
			      "KiB), 1 allocations, 0 frees", "1 allocations still live" } },
	};

	(void)state;
	RUN_LINES(rows);
}

/* Where a leak was called from is an offset in the object: the same in every run. */
static void leak_offsets(void **state)
{
	static struct result result;
	static const struct run one = {
		.environment = { "CUWEIR_REPORT=1" },
		.script = "alloc a 8192; alloc b 4096; managed c 1",
	};
	unsigned long offsets[2][3];

	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		const char *at = result.err;

		run_once(&one, LINKED, &result);
		for (int i = 0; i < 3; i++) {
			at = strstr(at, "called from scenario_linked+");
			assert_non_null(at);
			at = strchr(at, 's');
			at += strlen("scenario_linked+");
			offsets[turn][i] = strtoul(at, NULL, 16);
			assert_true(offsets[turn][i] != 0);
		}
	}
	/* The walk has no order: two of one call site, one of another. */
	for (int turn = 0; turn < 2; turn++) {
		unsigned long *o = offsets[turn];

		assert_int_equal((o[0] == o[1]) + (o[1] == o[2]) + (o[0] == o[2]), 1);
	}
	assert_int_equal(offsets[0][0] + offsets[0][1] + offsets[0][2],
			 offsets[1][0] + offsets[1][1] + offsets[1][2]);
}

static void values(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "CUWEIR_MAX_RETRIES that is no number",
		    .environment = { "CUWEIR_MAX_RETRIES=-1" }, .script = PAIR },
		  .err = SAID "CUWEIR_MAX_RETRIES=\"-1\": want a number, 0 or more; it is "
			      "ignored\n" },
		{ { .row = "CUWEIR_MAX_RETRIES beyond all numbers, and none",
		    .environment = { "CUWEIR_MAX_RETRIES=99999999999999999999999" },
		    .script = PAIR },
		  .err = SAID "CUWEIR_MAX_RETRIES=\"99999999999999999999999\": want a number, 0 or "
			      "more; it is ignored\n" },
		{ { .row = "CUWEIR_MAX_RETRIES without a value",
		    .environment = { "CUWEIR_MAX_RETRIES=" }, .script = PAIR },
		  .err = SAID "CUWEIR_MAX_RETRIES=\"\": want a number, 0 or more; it is "
			      "ignored\n" },
		{ { .row = "flags and levels that are none",
		    .environment = { "CUWEIR_DEBUG=maybe", "CUWEIR_STRICT=2", "CUWEIR_VERBOSE=4",
				     "CUWEIR_REPORT=xml" },
		    .script = PAIR },
		  .err = SAID "CUWEIR_DEBUG=\"maybe\": want 0 or 1; it is ignored\n" SAID
			      "CUWEIR_STRICT=\"2\": want 0 or 1; it is ignored\n" SAID
			      "CUWEIR_VERBOSE=\"4\": want 0 (silent), 1, 2 or 3; it is "
			      "ignored\n" SAID
			      "CUWEIR_REPORT=\"xml\": want 0, 1, text or json; it is ignored\n" },
		{ { .row = "an unknown name, with the nearest real one",
		    .environment = { "CUWEIR_POLICI=log", "CUWEIR_=1", "CUWEIR_TEST_X=1",
				     "CUWEIR_SIM_X=1", "CUWEIRD=1" },
		    .script = PAIR },
		  .err = SAID "CUWEIR_POLICI is not a setting; did you mean CUWEIR_POLICY?\n" SAID
			      "CUWEIR_ is not a setting; want one of cuweir(7)\n" },
		{ { .row = "CUWEIR_HOOKS that cannot be read turns nothing off",
		    .environment = { "CUWEIR_HOOKS=-driver,-runtime,dlsym", "CUWEIR_DEBUG=1" },
		    .script = PAIR },
		  .err = SAID "CUWEIR_HOOKS=\"-driver,-runtime,dlsym\": want -dlsym, -getproc, "
			      "-runtime, -driver, separated by commas; it is ignored\n" ALLOCATED
			      FREED },
		{ { .row = "flags by their other names",
		    .environment = { "CUWEIR_DEBUG=yes", "CUWEIR_STRICT=off", "CUWEIR_DISABLE=" },
		    .script = PAIR },
		  .err = ALLOCATED FREED },
		{ { .row = "CUWEIR_VERBOSE=0: errors are silent",
		    .environment = { "CUWEIR_VERBOSE=0", "CUWEIR_POLICY=nobody", "CUWEIR_X=1" },
		    .script = PAIR },
		  .err = "" },
		{ { .row = "CUWEIR_VERBOSE=2: what is open is told",
		    .environment = { "CUWEIR_VERBOSE=2", "CUWEIR_POLICY=example:1;example" },
		    .script = "" },
		  .err = SAID "policy example:1 is open\n" SAID "policy example is open\n" },
		{ { .row = "CUWEIR_VERBOSE=3",
		    .environment = { "CUWEIR_VERBOSE=3", "CUWEIR_POLICY=example" },
		    .script = "" },
		  .err = SAID "policy example is open\n" },
		{ { .row = "2.2: settings are those of the start",
		    .program = "habits", .script = "overwrite",
		    .environment = { "CUWEIR_DEBUG=1",
				     "CUWEIR_POLICY=" PLUGINS "larger_ok.so;nobody" } },
		  .err = "larger_ok open\n" SAID "CUWEIR_POLICY=\"nobody\": there is no policy of "
			 "that name beside libcuweir.so; want a policy that is there (cuweir "
			 "policies), or the path with a / of a plugin; the policy is left out\n" ALLOCATED FREED },
	};

	(void)state;
	RUN_LINES(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debug_and_log),
		cmocka_unit_test(log_of_process),
		cmocka_unit_test(report),
		cmocka_unit_test(leak_offsets),
		cmocka_unit_test(values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
