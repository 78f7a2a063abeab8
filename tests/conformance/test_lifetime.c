/* SPDX-License-Identifier: Apache-2.0 */
/* Rows D-04, D-07, D-10, D-17; P-22, P-30, P-36, P-37, P-39, P-40; C-02 to C-17, C-97, C-98. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void sizes_and_pointers(void **state)
{
	static const struct run runs[] = {
		{ .row = "D-04, C-02, C-05: size 0 of the driver is an error and no event",
		  .ways = DRIVER_WAYS,
		  .policies = { "alloc=0+1,debug=1,retry=1" },
		  .script = "expect 1 alloc a 0; expect 1 managed b 0; truth",
		  .shown = "alloc_threshold allocated alloc_failure alloc_failed admit",
		  .events = { "" }, .out = "" },
		{ .row = "D-04, C-03: size 0 of the runtime is none, and no event",
		  .ways = RUNTIME_WAYS,
		  .policies = { "alloc=0+1,debug=1" },
		  .script = "alloc a 0; truth",
		  .shown = "alloc_threshold allocated alloc_failure alloc_failed admit",
		  .events = { "" }, .out = "" },
		{ .row = "R-37, P-37: the size on free is that of the record",
		  .policies = { "debug=1" },
		  .script = "alloc a 1000; async b 3001 s; host c 77; free a; freeasync b s; "
			    "free c; sync; truth",
		  .events = { "allocated size=1000\nallocated size=3001\nallocated size=77\n"
			      "deallocated size=1000\ndeallocated size=3001\n"
			      "deallocated size=77\n" },
		  .out = "" },
		{ .row = "P-22: every way of giving back every kind",
		  .ways = HEARD_WAYS,
		  .policies = { "dealloc=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "alloc a 8K; freeasync a s; async b 8K s; free b; managed c 8K; free c; "
			    "pitch d 64 8; free d; sync; truth",
		  .events = { "dealloc_threshold total=0 requested=8192\n"
			      "dealloc_threshold total=0 requested=8192\n"
			      "dealloc_threshold total=0 requested=512\n" },
		  .err = { "0 frees of unknown addresses", "0 allocations still live" } },
		{ .row = "R-65: allocated by one thread, freed by another",
		  .policies = { "alloc=8K,dealloc=8K" },
		  .script = "alloc a 8K; thread { free a; alloc b 8K }; join; free b; truth",
		  .events = { "alloc_threshold total=8192\ndealloc_threshold total=0\n"
			      "alloc_threshold total=8192\ndealloc_threshold total=0\n" },
		  .out = "" },
	};

	(void)state;
	RUN_ALL(runs);
}

static void failing_frees(void **state)
{
	static const struct run runs[] = {
		{ .row = "D-07: a free that fails puts the record back",
		  .ways = HEARD_WAYS,
		  .policies = { "dealloc=8K,debug=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuMemFree:1=46" },
		  .script = "alloc a 8K; expect 46 free a; free a; truth",
		  .shown = "allocated deallocated dealloc_threshold before_free",
		  .events = { "allocated size=8192\nbefore_free charged=8192\n"
			      "before_free charged=8192\n"
			      "dealloc_threshold total=0\ndeallocated size=8192\n" },
		  .out = "" },
		{ .row = "D-07, C-17: after the driver's end memory counts as gone",
		  .ways = DRIVER_WAYS, .unaudited = true,
		  .policies = { "dealloc=8K,debug=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuMemFree:1=4", "CUWEIR_REPORT=1" },
		  .script = "alloc a 8K; expect 4 free a",
		  .events = { "allocated size=8192\ndealloc_threshold total=0 status=4\n"
			      "deallocated size=8192\n" },
		  .err = { "0 allocations still live" } },
		{ .row = "D-07, C-35: after an error that ends the context, too",
		  .ways = DRIVER_WAYS, .unaudited = true,
		  .policies = { "dealloc=9K" },
		  .environment = { "CUWEIR_SIM_FAIL=cuMemFree:1=700", "CUWEIR_REPORT=1" },
		  .script = "alloc a 8K; alloc b 8K; expect 700 free a",
		  .events = { "dealloc_threshold total=8192 status=700\n" },
		  .err = { "context lost" } },
		{ .row = "D-06: an undo that fails leaves record and total",
		  .ways = DRIVER_WAYS,
		  .policies = { "alloc=8K,veto=46" },
		  .environment = { "CUWEIR_SIM_FAIL=cuMemFree:1=400" },
		  .script = "expect 46 alloc a 8K; alloc b 1K",
		  .events = { "alloc_threshold total=8192\n" },
		  .err = { "giving it back failed with status 400" } },
		{ .row = "P-30: a double free",
		  .ways = DRIVER_WAYS,
		  .policies = { "dealloc=8K" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "alloc a 8K; free a; expect 1 free a; truth",
		  .events = { "dealloc_threshold total=0\n" }, .out = "",
		  .err = { "1 frees of unknown addresses", "0 B (0 B) in use" } },
	};

	(void)state;
	RUN_ALL(runs);
}

static void contexts(void **state)
{
	static const struct run runs[] = {
		{ .row = "D-17, C-97: linear, managed and pinned memory goes; pool memory stays",
		  .ways = DRIVER_WAYS,
		  .policies = { "dealloc=1+4K+8K+12K,debug=1,kinds=device+managed+host" },
		  .script = "ctx create 0; alloc a 4K; alloc b 4K; pitch p 512 8; managed m 4K; "
			    "host h 4K; async s 4K 0; ctx destroy; truth",
		  .shown = "dealloc_threshold context_ended deallocated",
		  .events = { "dealloc_threshold kind=1 total=4096 before=16384 flags=32\n"
			      "dealloc_threshold kind=2 total=0 before=4096\n"
			      "dealloc_threshold kind=3 total=0 before=4096\n"
			      "deallocated\ndeallocated\ndeallocated\ndeallocated\ndeallocated\n"
			      "context_ended device=0\n" },
		  .out = "pitch p 512\ntruth 0 0 4096 1\ntruth 0 5 4096 0\n" },
		{ .row = "D-17: a context that is not ended keeps its memory",
		  .ways = DRIVER_WAYS,
		  .policies = { "dealloc=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuCtxDestroy:1=201" },
		  .script = "ctx create 0; alloc a 4K; expect 201 ctx destroy; free a; truth",
		  .shown = "dealloc_threshold context_ended",
		  .events = { "dealloc_threshold total=0 before=4096 flags=0\n" }, .out = "" },
		{ .row = "D-17, C-98: cudaDeviceReset",
		  .ways = ALL_WAYS,
		  .policies = { "dealloc=1" },
		  .script = "alloc a 4K; alloc b 4K; alloc c 1; reset 0; truth",
		  .shown = "dealloc_threshold context_ended",
		  .events = { "dealloc_threshold total=0 before=8193 flags=32\n"
			      "context_ended device=0\n" },
		  .out = "" },
		{ .row = "P-51: what is told of one by one comes down one by one",
		  .ways = DRIVER_WAYS, .policies = { "debug=1" },
		  .script = "alloc a 4K; alloc b 4K; alloc c 4K; reset 0; truth",
		  .shown = "deallocated",
		  .events = { "deallocated size=4096 kind=1 before=12288 after=8192 flags=32\n"
			      "deallocated size=4096 kind=1 before=8192 after=4096 flags=32\n"
			      "deallocated size=4096 kind=1 before=4096 after=0 flags=32\n" },
		  .out = "" },
		{ .row = "D-17, C-100: the last reference to a primary context",
		  .ways = DRIVER_WAYS,
		  .policies = { "dealloc=1" },
		  .script = "alloc a 4K; release 0; truth",
		  .shown = "dealloc_threshold context_ended",
		  .events = { "dealloc_threshold total=0 before=4096 flags=32\n"
			      "context_ended device=0\n" },
		  .out = "" },
		{ .row = "D-10: memory of another device than the current one",
		  .environment = { "CUWEIR_SIM_DEVICES=2" },
		  .policies = { "dealloc=1" },
		  .script = "device 1; async a 4K s; device 0; async b 4K s; alloc c 1K; free c; "
			    "freeasync a s; freeasync b s; sync; truth",
		  .ways = DRIVER_WAYS,
		  .events = { "dealloc_threshold total=0 device=0 requested=1024\n"
			      "dealloc_threshold total=0 device=1 before=4096\n" } },
	};

	(void)state;
	RUN_ALL(runs);
}

/* P-36: an address that is handed out again at once, by eight threads. */
static void reissued_addresses(void **state)
{
	static const struct run one = {
		.row = "P-36", .ways = LINKED | STATIC,
		.policies = { "" },
		.environment = { "CUWEIR_SIM_REISSUE=1", "CUWEIR_REPORT=1" },
		.script = "threads 8 { repeat 5000 { alloc .a 8K; free .a } }; join; truth",
		.shown = "alloc_threshold",
		.out = "",
		.err = { "40000 allocations, 40000 frees", "0 frees of unknown addresses" },
	};

	(void)state;
	run(&one);
}

static size_t count_lines(const char *text, const char *beginning)
{
	size_t count = 0;

	for (const char *at = text; at != NULL && *at != '\0'; at = strchr(at, '\n')) {
		at += *at == '\n';
		count += strncmp(at, beginning, strlen(beginning)) == 0;
	}
	return count;
}

/* P-50, D-14: a million pairs by eight threads that contend for one threshold. */
static void exactly_once(void **state)
{
	unsigned long long ups;
	unsigned long long downs;
	unsigned long long wrong;
	char file[] = "/tmp/cuweir-counter-XXXXXX";
	char policy[512];
	char text[128];
	struct run one = {
		.row = "D-14", .ways = LINKED,
		.environment = { policy },
		.script = "threads 8 { repeat 125000 { alloc .a 8K; free .a } }; join; truth",
		.out = "",
	};
	int fd = mkstemp(file);
	ssize_t length;

	(void)state;
	assert_true(fd >= 0);
	snprintf(policy, sizeof(policy), "CUWEIR_POLICY=%s:12288:%s",
		 built("tests/plugins/counter.so"), file);
	run(&one);
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	unlink(file);
	assert_true(length > 0);
	text[length] = '\0';
	assert_int_equal(sscanf(text, "ups=%llu downs=%llu wrong=%llu", &ups, &downs, &wrong), 3);
	printf("%s", text);
	assert_true(ups > 0);
	assert_int_equal(ups, downs);
	assert_int_equal(wrong, 0);
}

static void forks(void **state)
{
	static const struct run runs[] = {
		{ .row = "P-39: a child's books are empty, and it is silent at its exit",
		  .ways = DRIVER_WAYS,
		  .policies = { "dealloc=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "alloc a 4K; fork { echo child }; free a; truth",
		  .events = { "dealloc_threshold total=0 before=4096\n" },
		  .out = "child\n" },
	};
	static struct result result;
	static const struct run many = {
		.row = "P-39", .ways = LINKED,
		.policies = { "" },
		.environment = { "CUWEIR_REPORT=1" },
		.script = "threads 4 { repeat 3000 { alloc .a 8K; free .a } }; "
			  "repeat 200 { fork { echo x } }; join; truth",
		.shown = "alloc_threshold",
	};

	(void)state;
	RUN_ALL(runs);
	run_once(&many, LINKED, &result);
	if (result.exit_status != 0) {
		fprintf(stderr, "%.2000s\n", result.err);
	}
	assert_int_equal(result.exit_status, 0);
	assert_int_equal(count_lines(result.out, "x"), 200);
	assert_non_null(strstr(result.err, "report when"));
	assert_null(strstr(strstr(result.err, "report when") + 1, "report when"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_and_pointers),
		cmocka_unit_test(failing_frees),
		cmocka_unit_test(contexts),
		cmocka_unit_test(reissued_addresses),
		cmocka_unit_test(exactly_once),
		cmocka_unit_test(forks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
