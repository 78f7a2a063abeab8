/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a process and the beginning of others: P-39, P-40, rows 2.2 and 2.4. */
#include "lines.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define LINGERING "CUWEIR_POLICY=BUILD/tests/plugins/lingering.so:"
#define PAIR_REPORT                                                                                \
	{ "device 0, device memory: 0 B (0 B) in use, peak 8192 B (8.0 KiB), 1 allocations, "      \
	  "1 frees",                                                                               \
	  "0 frees of unknown addresses, 0 allocations without a record",                          \
	  "0 allocations still live" }

/* A callback after the policy's object is closed would end the program by a signal. */
static void closed_policies(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "P-40: handlers from before and after the first call, a destructor",
		    .program = "habits", .script = "exit",
		    .environment = { LINGERING, "CUWEIR_REPORT=1" },
		    .out = "handler from after the first call\n"
			   "handler from before the first call\n"
			   "destructor of a library\ntruth 0 0 4096 1\n" },
		  .err = "lingering open \nlingering 512 by cuMemAlloc\n"
			 "lingering 2048 by cuMemAlloc\nlingering close\n",
		  .report = { "device 0, device memory: 1024 B (1.0 KiB) in use, peak 3584 B "
			      "(3.5 KiB), 3 allocations, 2 frees",
			      "0 frees of unknown addresses, 0 allocations without a record",
			      "1 allocations still live",
			      "still allocated: 0xA, 1024 B, device 0, by cuMemAlloc, called from "
			      "PROGRAM+0xA" } },
		{ { .row = "P-40: the first call of all in a handler at exit",
		    .program = "habits", .script = "late", .out = "first call at exit\n",
		    .environment = { LINGERING, "CUWEIR_REPORT=1" } },
		  .err = "lingering open \nlingering 8192 by cuMemAlloc\nlingering close\n",
		  .report = PAIR_REPORT },
		{ { .row = "P-40: the first call of all in a destructor after ours",
		    .program = "habits", .script = "last", .out = "first call at exit\n",
		    .environment = { LINGERING, "CUWEIR_REPORT=1" } },
		  .err = "lingering open \nlingering 8192 by cuMemAlloc\nlingering close\n" },
	};

	(void)state;
	RUN_LINES(rows);
}

static void closed_cxx_policy(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "P-40: static objects of a C++ policy are there until it is closed",
		    .program = "habits", .script = "exit",
		    .environment = {
			    "CUWEIR_POLICY=BUILD/tests/plugins/cxx_policy.so:1024+2048" } },
		  .err = "cxx_policy alloc 2560\ncxx_policy close 0\n" },
	};

	(void)state;
	RUN_LINES(rows);
}

static void children(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "2.4: vfork, posix_spawn, system, popen: nothing is said in a child",
		    .program = "habits", .script = "spawn",
		    .environment = { LINGERING, "CUWEIR_REPORT=1" },
		    .out = "vfork 3\nposix_spawn 3\nsystem 4\npopen 5\n" },
		  .err = "lingering open \nlingering 8192 by cuMemAlloc\nlingering close\n",
		  .report = PAIR_REPORT },
		{ { .row = "2.4: exec: the new program begins anew, and what was open is closed",
		    .environment = { LINGERING, "CUWEIR_REPORT=1", "CUWEIR_LOG=FILE" },
		    .script = "alloc a 8192; exec /bin/ls /proc/self/fd",
		    .out = "0\n1\n2\n3\n" },
		  .err = "", .file = "lingering open \nlingering 8192 by cuMemAlloc\n" },
		{ { .row = "P-39: a fork while another thread is in a callback",
		    .environment = { LINGERING, "CUWEIR_REPORT=1" },
		    .script = "thread { alloc a 300 }; sleep 150; fork { expect 3 alloc b 8192; "
			      "echo child }; echo parent; join; free a; truth",
		    .out = "child\nparent\n" },
		  .err = "lingering open \nlingering 300 by cuMemAlloc\nlingering close\n",
		  .report = { "device 0, device memory: 0 B (0 B) in use, peak 300 B (300 B), "
			      "1 allocations, 1 frees", "0 allocations still live" } },
	};

	(void)state;
	RUN_LINES(rows);
}

/* P-39: a thousand children while four threads allocate and free. */
static void many_children(void **state)
{
	static struct result result;
	static const struct run one = {
		.program = "habits", .script = "fork", .environment = { "CUWEIR_REPORT=1" },
	};

	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* TSan holds what a child reads against the threads of its parent */
#endif
	for (int way = LINKED; way <= SHARED; way += SHARED - LINKED) {
		struct timespec start, end;

		clock_gettime(CLOCK_MONOTONIC, &start);
		run_once(&one, way, &result);
		clock_gettime(CLOCK_MONOTONIC, &end);
		assert_int_equal(result.exit_status, 0);
		assert_string_equal(result.out, "children 1000\n");
		assert_int_equal(count_lines(result.err, "report when"), 1);
		assert_int_equal(count_lines(result.err, "0 allocations still live"), 1);
		/* Nor does any child say anything else. */
		assert_ptr_equal(strstr(result.err, "]: report when "), strchr(result.err, ']'));
		printf("1000 children in %ld s\n", (long)(end.tv_sec - start.tv_sec));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_policies),
		cmocka_unit_test(closed_cxx_policy),
		cmocka_unit_test(children),
		cmocka_unit_test(many_children),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
