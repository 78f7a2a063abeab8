/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where no policy intervenes, a program is what it would be without us: every call reaches the
 * driver in the same order with the same arguments and the same answer, but for the questions
 * that D-15 allows; what it prints, its exit status and all that a process has are the same.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRACE_SIZE = 1 << 22 };

/* What a run leaves behind, beside the harness's result. */
struct seen {
	struct result result;
	char *trace;
};

/* Questions of D-15; a program that asks them itself cannot be told apart, so they all go. */
static bool is_exempt(const char *line)
{
	static const char *const questions[] = {
		"cuCtxGetCurrent ", "cuCtxGetDevice ", "cuDevicePrimaryCtxGetState ",
		"cuStreamGetCtx ", "cuStreamGetCtx_v2 ", "cuStreamIsCapturing ",
		"cuStreamIsCapturing_ptsz ",
	};

	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		if (strncmp(line, questions[i], strlen(questions[i])) == 0) {
			return true;
		}
	}
	return false;
}

/* Reads the trace, without exempt lines. */
static char *read_trace(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = calloc(1, TRACE_SIZE);
	size_t length = 0;
	char line[2048];

	assert_non_null(text);
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		if (!is_exempt(line)) {
			assert_true(length + strlen(line) + 1 < TRACE_SIZE);
			length += (size_t)sprintf(text + length, "%s", line);
		}
	}
	if (file != NULL) {
		fclose(file);
	}
	return text;
}

static void look(const struct run *run, int way, bool bare, struct seen *ret)
{
	char path[] = "/tmp/cuweir-trace-XXXXXX";
	char setting[64];
	struct run traced = *run;
	int fd = mkstemp(path);
	int i = 0;

	assert_true(fd >= 0);
	close(fd);
	snprintf(setting, sizeof(setting), "CUWEIR_SIM_TRACE=%s", path);
	while (traced.environment[i] != NULL) {
		i++;
	}
	traced.environment[i] = setting;
	traced.bare = bare;
	if (bare) {
		traced.policies[0] = NULL;
	}
	run_once(&traced, way, &ret->result);
	ret->trace = read_trace(path);
	unlink(path);
}

static size_t line_length(const char *text)
{
	return strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n');
}

static void compare_texts(const char *row, const char *what, int way, const char *bare,
			  const char *hooked)
{
	for (int number = 1; *bare != '\0' || *hooked != '\0'; number++) {
		size_t length = line_length(bare);

		if (length != line_length(hooked) || strncmp(bare, hooked, length) != 0) {
			fail_msg("%s (way %d): line %d of the %s is \"%.*s\" with us, not \"%.*s\"",
				 row, way, number, what, (int)strcspn(hooked, "\n"), hooked,
				 (int)strcspn(bare, "\n"), bare);
		}
		bare += length;
		hooked += length;
	}
}

static void compare_way(const struct run *run, int way)
{
	static struct seen bare, hooked;

	look(run, way, true, &bare);
	look(run, way, false, &hooked);
	if (bare.result.exit_status != 0 || bare.trace[0] == '\0') {
		fail_msg("%s (way %d): fails without us, status %d:\n%s", run->row, way,
			 bare.result.exit_status, bare.result.err);
	}
	assert_int_equal(hooked.result.exit_status, 0);
	compare_texts(run->row, "trace", way, bare.trace, hooked.trace);
	compare_texts(run->row, "output", way, bare.result.out, hooked.result.out);
	compare_texts(run->row, "error output", way, bare.result.err, hooked.result.err);
	free(bare.trace);
	free(hooked.trace);
}

/* Each without a policy, and under one that listens to everything and does nothing. */
static void compare(const struct run *runs, size_t count, int ways)
{
	for (size_t i = 0; i < count; i++) {
		struct run listening = runs[i];

		listening.policies[0] = "alloc=1+64K,dealloc=1+64K,debug=1";
		for (int way = 1; way <= FOREIGN; way <<= 1) {
			if ((way & (runs[i].ways != 0 ? runs[i].ways : ways)) != 0) {
				compare_way(&runs[i], way);
				compare_way(&listening, way);
			}
		}
	}
}

#define COMPARE(runs, ways) compare(runs, sizeof(runs) / sizeof((runs)[0]), ways)

static void scenarios(void **state)
{
	static const struct run runs[] = {
		{ .row = "every kind",
		  .script = "alloc a 8K; async b 4K s; managed c 3000; host d 1000; hostalloc e 9; "
			    "pitch f 100 7; info; free a; freeasync b s; free c; free d; free e; "
			    "free f; sync; info; truth" },
		{ .row = "zero sizes, NULL and wrong frees",
		  .ways = DRIVER_WAYS,
		  .script = "expect 1 alloc a 0; expect 1 managed b 0; alloc c 8K; free c; "
			    "expect 1 free c; truth" },
		{ .row = "zero sizes of the runtime", .ways = RUNTIME_WAYS,
		  .script = "alloc a 0; async b 0 s; host c 0; lasterror; truth" },
		{ .row = "failures, and the last error they leave", .ways = RUNTIME_WAYS,
		  .environment = { "CUWEIR_SIM_FAIL=alloc:1=2,alloc:3=46" },
		  .script = "expect 2 alloc a 8K; expect 2 peekerror; expect 2 lasterror; "
			    "alloc b 8K; expect 46 alloc c 8K; expect 46 lasterror; free b; "
			    "truth" },
		{ .row = "failures of the driver", .ways = DRIVER_WAYS,
		  .environment = { "CUWEIR_SIM_FAIL=alloc:1=2,cuMemFree:1=46" },
		  .script = "expect 2 alloc a 8K; alloc b 8K; expect 46 free b; free b; truth" },
		{ .row = "contexts and devices", .ways = DRIVER_WAYS,
		  .environment = { "CUWEIR_SIM_DEVICES=2" },
		  .script = "alloc a 4K; ctx create 1; alloc b 4K; host h 100; async s 1K 0; "
			    "ctx pop; alloc c 4K; device 1; alloc d 4K; free c; reset 1; device 0; "
			    "ctx create 0; alloc e 4K; ctx destroy; release 0; truth" },
		{ .row = "a reset", .ways = RUNTIME_WAYS,
		  .script = "alloc a 4K; async b 4K s; reset 0; alloc c 4K; free c; truth" },
		{ .row = "captures",
		  .script = "async w 1K s; freeasync w s; capture begin s; async a 64K s; "
			    "capture end s; sync; truth", .ways = HEARD_WAYS },
		{ .row = "D-15: captures, under a driver that allows nothing else",
		  .ways = DRIVER_WAYS, .environment = { "CUWEIR_SIM_STRICT_CAPTURE=1" },
		  .script = "async w 1K s; freeasync w s; capture begin s; async a 64K s; "
			    "freeasync a s; capture end s; sync; truth" },
		{ .row = "many small ones",
		  .script = "repeat 500 { alloc a 1K; async b 1K s; free a; freeasync b s }; sync; "
			    "truth" },
	};

	(void)state;
	COMPARE(runs, ALL_WAYS);
}

#define PROGRAM(called, text) { .row = called " " text, .program = called, .script = text }
#define ON_DRIVER(called, text) \
	{ .row = called " " text, .program = called, .script = text, .ways = DRIVER_WAYS }
#define ON_RUNTIME(called, text) \
	{ .row = called " " text, .program = called, .script = text, .ways = RUNTIME_WAYS }

static void programs(void **state)
{
	static const struct run runs[] = {
		PROGRAM("graphs", "captured"),	     PROGRAM("graphs", "temporary"),
		PROGRAM("graphs", "auto_free"),	     PROGRAM("graphs", "escaped"),
		PROGRAM("graphs", "freed_elsewhere"), PROGRAM("graphs", "abandoned"),
		ON_DRIVER("graphs", "forms"),	     ON_DRIVER("graphs", "children"),
		ON_DRIVER("graphs", "into_graph"),   ON_DRIVER("queries", "info"),
		ON_DRIVER("queries", "nulls"),	     ON_DRIVER("queries", "totals"),
		ON_DRIVER("queries", "v1"),	     ON_DRIVER("queries", "no_context"),
		ON_RUNTIME("queries", "nulls"),
		ON_RUNTIME("queries", "first_call"), ON_RUNTIME("queries", "entry_points"),
	};

	(void)state;
	COMPARE(runs, ALL_WAYS);
}

static void other_memory(void **state)
{
	static const struct run runs[] = {
		ON_DRIVER("virtual", "reserve r 4M; create h 2M; map h r 0 2M; retain a r 0; "
				     "drop h; drop a; unmap r 0 2M; unreserve r 4M; truth"),
		ON_DRIVER("handles", "array a 2d 100 50 0 float 4 0; truth; free a; "
				     "mipmap m 64 64 0 u8 4 0 7; level l m 0; free m; "
				     "register a 8192 2; free a; truth"),
	};

	(void)state;
	COMPARE(runs, ALL_WAYS);
}

/* umask, signals, threads, files, limits, environment; without a policy, which may have files. */
static void processes(void **state)
{
	static const struct run run = { .row = "the process", .program = "state", .script = "" };

	(void)state;
	for (int way = 1; way <= FOREIGN; way <<= 1) {
		compare_way(&run, way);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scenarios),
		cmocka_unit_test(programs),
		cmocka_unit_test(other_memory),
		cmocka_unit_test(processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
