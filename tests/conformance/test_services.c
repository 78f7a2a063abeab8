/* SPDX-License-Identifier: Apache-2.0 */
/* The services that a policy gets from its host, by value. */
#include "lines.h"

#include <stdio.h>
#include <string.h>

#define SERVICES(arguments) "CUWEIR_POLICY=BUILD/tests/plugins/services.so:" arguments
#define OPEN "host size 1 version 1 shim 0.1.0 event 1\n"

static void figures(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "totals: current, peak and counts, and what is out of range",
		    .environment = { SERVICES("0,0") },
		    .script = "alloc a 4096; alloc b 8192; free b; async c 5000 s; managed m 100; "
			      "pitch p 100 10; free p; host x 1001" },
		  .err = OPEN "totals 0 1: 9096 peak=14216 held=0 allocations=4 frees=2\n"
			      "totals 0 2: 100 peak=100 held=0 allocations=1 frees=0\n"
			      "totals 0 3: 0 peak=0 held=0 allocations=0 frees=0\n"
			      "totals 0 1: 1\ntotals 0 0: 1\ntotals 0 9: 1\ntotals -2 1: 1\n"
			      "totals 1048576 1: 1\ntotals NULL: 1\n" },
		{ { .row = "walk: every live allocation once, until it is told to stop",
		    .environment = { SERVICES("0,0") },
		    .script = "alloc a 4096; alloc b 8192; free b; async c 5000 s; managed m 100; "
			      "host h 7; pitch p 100 10; host x 1002" },
		  .err = OPEN "walk: 0\nwalked 5 device=14216 managed=100 host=7 complete=1\n"
			      "walked 1; NULL: 1\n" },
		{ { .row = "the driver's own functions: seen and accounted by nobody",
		    .environment = { SERVICES("0,0"), "CUWEIR_REPORT=0" },
		    .script = "alloc a 4096; host x 1005" },
		  .err = OPEN "driver_function 0\ndriver_function 0\nnone 500, NULL 1 1\n"
			      "totals 0 1: 4096 peak=4096 held=0 allocations=1 frees=0\n"
			      "real calls 0 0\n" },
		{ { .row = "current_event is the event of the callback",
		    .environment = { SERVICES("0,0") }, .script = "host x 1007" },
		  .err = OPEN "current_event 1\n" },
	};

	(void)state;
	RUN_LINES(rows);
}

static void debug_switch(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "set_debug while the program runs: the events begin and end there",
		    .environment = { SERVICES("0,0") },
		    .script = "alloc a 111; host x 1003; free a; alloc b 222; host y 1004; free b; "
			      "alloc c 333" },
		  .err = OPEN "debug was 0, set 0, is 1\nallocated 1003\ndeallocated 111\n"
			      "allocated 222\ndebug was 1, set 0, is 0\n" },
		{ { .row = "CUWEIR_DEBUG=1 is its start",
		    .environment = { SERVICES("0,0"), "CUWEIR_DEBUG=1" },
		    .script = "alloc a 111; host x 1004; free a" },
		  .err = OPEN "allocated 111\ndebug was 1, set 0, is 0\n" },
	};

	(void)state;
	RUN_LINES(rows);
}

static void log_lines(void **state)
{
	char err[8192];
	const struct line_row row = {
		{ .row = "log: NULL, long, empty and odd lines",
		  .environment = { SERVICES("0,0") }, .script = "host x 1008" },
		.err = err,
	};

	(void)state;
	snprintf(err, sizeof(err), OPEN "log NULL 1\n");
	memset(err + strlen(err), 'L', 4096);
	strcpy(err + strlen(OPEN) + strlen("log NULL 1\n") + 4096,
	       "\nlog long 0\n\n50%s %d \t\xff\n");
	run_lines(&row);
}

static void trimming(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "trim", .environment = { SERVICES("0,0") },
		    .script = "host x 1006" },
		  .err = OPEN "trim 0\n" },
	};

	(void)state;
	RUN_LINES(rows);
}

static void waiting(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "no free comes: the whole time, and out of it",
		    .environment = { SERVICES("0,100"), "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "alloc a 8192; host x 1009; expect 2 alloc b 1M; free a" },
		  .err = OPEN "wait_for_free 600, in time 1\nwait_for_free 600, at once 1\n"
			      "failure 1048576 0: waited 600, whole time 1\n" },
		{ { .row = "a free of another thread ends the wait",
		    .environment = { SERVICES("0,20000"), "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "alloc a 700K; thread { sleep 200; free a }; alloc b 700K; join" },
		  .err = OPEN "failure 716800 0: waited 0, whole time 0\n" },
		{ { .row = "a free between the failure and the wait is not missed",
		    .environment = { SERVICES("400,20000"), "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "alloc a 700K; thread { sleep 100; free a }; alloc b 700K; join" },
		  .err = OPEN "failure 716800 0: waited 0, whole time 0\n" },
		{ { .row = "a free that is not enough counts once: the next wait is a new one",
		    .environment = { SERVICES("0,600"), "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "alloc a 700K; alloc c 8K; thread { sleep 200; free c }; "
			      "expect 2 alloc b 700K; join; free a" },
		  .err = OPEN "failure 716800 0: waited 0, whole time 0\n"
			      "failure 716800 1: waited 600, whole time 1\n" },
		{ { .row = "frees of a context that ends count",
		    .ways = LINKED,
		    .environment = { SERVICES("0,20000"), "CUWEIR_SIM_CAPACITY=1M" },
		    .script = "thread { ctx create 0; alloc a 700K; sleep 300; ctx destroy }; "
			      "sleep 100; alloc b 700K; join" },
		  .err = OPEN "failure 716800 0: waited 0, whole time 0\n" },
	};

	(void)state;
	RUN_LINES(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures),
		cmocka_unit_test(debug_switch),
		cmocka_unit_test(log_lines),
		cmocka_unit_test(trimming),
		cmocka_unit_test(waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
