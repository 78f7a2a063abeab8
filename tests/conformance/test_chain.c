/* SPDX-License-Identifier: Apache-2.0 */
/* Rows D-12, D-13, D-15; P-47: several policies, and nesting. */
#include "harness.h"

static void order(void **state)
{
	static const struct run runs[] = {
		{ .row = "D-12: the innermost is asked first, each with its own count",
		  .policies = { "retry=1", "retry=2" },
		  .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		  .script = "expect 2 alloc a 2M; truth",
		  .events = { "alloc_failure count=0\nalloc_failure count=1\n",
			      "alloc_failure count=0\nalloc_failure count=1\nalloc_failure count=2\n"
			      "alloc_failure count=0\nalloc_failure count=1\nalloc_failure count=2\n" },
		  .out = "" },
		{ .row = "D-12: mended by the outer one",
		  .policies = { "retry=1,alloc=1", "alloc=1" },
		  .environment = { "CUWEIR_SIM_FAIL=alloc:1=2" },
		  .script = "alloc a 8K; free a; truth",
		  .events = { "alloc_failure count=0\nalloc_threshold total=8192\n",
			      "alloc_failure count=0\nalloc_threshold total=8192\n" },
		  .out = "" },
		{ .row = "D-12, R-41: the outer vetoes; the inner is told of the free",
		  .policies = { "alloc=8K,veto=46,dealloc=8K,debug=1", "alloc=8K,dealloc=8K" },
		  .script = "expect 46 alloc a 8K; truth",
		  .shown = "alloc_threshold dealloc_threshold allocated deallocated before_free",
		  .events = { "alloc_threshold total=8192\n",
			      "alloc_threshold total=8192\nallocated size=8192\nbefore_free\n"
			      "dealloc_threshold total=0 before=8192 flags=16\n"
			      "deallocated size=8192\n" },
		  .out = "" },
		{ .row = "D-12, R-41: the inner vetoes; the outer hears nothing",
		  .policies = { "alloc=8K,dealloc=8K,debug=1", "alloc=8K,veto=46,dealloc=8K" },
		  .script = "expect 46 alloc a 8K; truth",
		  .shown = "alloc_threshold dealloc_threshold allocated deallocated before_free",
		  .events = { "", "alloc_threshold total=8192\n" },
		  .out = "" },
		{ .row = "admit refuses: the driver is not asked, the outer is",
		  .policies = { "retry=2", "admit=2" },
		  .script = "expect 2 alloc a 8K; truth",
		  .shown = "admit alloc_failure alloc_failed",
		  .events = { "admit requested=8192 pointer=0x0\nalloc_failure count=0\n"
			      "alloc_failure count=1\nalloc_failure count=2\n"
			      "alloc_failed status=2\n",
			      "admit\nadmit\nadmit\nalloc_failed status=2\n" },
		  .out = "" },
		{ .row = "admit refuses with another status: nobody is asked",
		  .policies = { "retry=2", "admit=800" },
		  .script = "expect 800 alloc a 8K; expect 800 host b 8K; expect 800 managed c 8K; "
			    "expect 800 async d 8K s; truth",
		  .shown = "alloc_failure",
		  .events = { "", "" }, .out = "" },
		{ .row = "D-08: the first status of a free is returned, innermost first",
		  .policies = { "dealloc=8K,dealloc_status=46", "dealloc=8K,dealloc_status=801" },
		  .script = "alloc a 8K; expect 801 free a; truth",
		  .events = { "dealloc_threshold total=0\n", "dealloc_threshold total=0\n" },
		  .out = "" },
	};

	(void)state;
	RUN_ALL(runs);
}

static void nesting(void **state)
{
	static const struct run runs[] = {
		{ .row = "D-13, P-47: calls in a callback raise no callback",
		  .ways = HEARD_WAYS,
		  .policies = { "alloc=8K+500,dealloc=8K+500,nested=1" },
		  .script = "alloc a 8K; free a; truth",
		  .events = { "alloc_threshold total=8192 nested_status=0\n"
			      "dealloc_threshold total=0 nested_status=0\n" },
		  .out = "" },
		{ .row = "D-13, R-11: debug events reach those that are not in a callback",
		  .ways = HEARD_WAYS, .plugin = "recorder",
		  .policies = { "alloc=8K,nested=1", "debug=1" },
		  .script = "alloc a 8K; free a; truth",
		  .shown = "alloc_threshold allocated deallocated",
		  .events = { "alloc_threshold total=8192 nested_status=0\nallocated size=8192\n"
			      "deallocated size=8192\n",
			      /* In the outer's admit, its threshold, its debug events, its
			       * before_free. */
			      "allocated size=1024 flags=1\ndeallocated size=1024 flags=1\n"
			      "allocated size=8192 flags=0\n"
			      "allocated size=1024 flags=1\ndeallocated size=1024 flags=1\n"
			      "allocated size=1024 flags=1\ndeallocated size=1024 flags=1\n"
			      "allocated size=1024 flags=1\ndeallocated size=1024 flags=1\n"
			      "deallocated size=8192 flags=0\n"
			      "allocated size=1024 flags=1\ndeallocated size=1024 flags=1\n" },
		  .out = "" },
		{ .row = "D-13, P-47: a nested failure returns directly",
		  .ways = HEARD_WAYS, .plugin = "recorder",
		  .policies = { "retry=1,nested=1" },
		  .environment = { "CUWEIR_SIM_FAIL=alloc:2-99=2" },
		  .script = "expect 2 alloc a 8K; truth",
		  .events = { "alloc_failure count=0 nested_status=2\n"
			      "alloc_failure count=1 nested_status=2\n" },
		  .out = "" },
	};

	(void)state;
	RUN_ALL(runs);
}

static void captures(void **state)
{
	static const struct run runs[] = {
		/* The runtime itself asks for the current context, which the strict driver refuses. */
		{ .row = "P-27, C-80: a captured allocation takes nothing now",
		  .ways = DRIVER_WAYS,
		  .policies = { "alloc=1,debug=1" },
		  .environment = { "CUWEIR_SIM_STRICT_CAPTURE=1" },
		  .script = "alloc w 512; free w; capture begin s; async a 64K s; freeasync a s; "
			    "capture end s; truth",
		  .events = { "alloc_threshold total=512\nallocated size=512\ndeallocated size=512\n" },
		  .out = "" },
		{ .row = "D-15: on_alloc_failure is not asked while a capture is open",
		  .ways = HEARD_WAYS,
		  .policies = { "retry=1" },
		  .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		  .script = "capture begin s; expect 2 async a 2M t; capture end s; "
			    "expect 2 async b 2M t; truth",
		  .events = { "alloc_failure count=0 flags=4\nalloc_failure count=1 flags=4\n" },
		  .out = "" },
		{ .row = "D-15: but of a policy that says it is safe",
		  .ways = HEARD_WAYS, .plugin = "recorder_safe",
		  .policies = { "retry=1" },
		  .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		  .script = "capture begin s; expect 2 async a 2M t; capture end s; truth",
		  .events = { "alloc_failure count=0 flags=6\nalloc_failure count=1 flags=6\n" },
		  .out = "" },
	};

	(void)state;
	RUN_ALL(runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order),
		cmocka_unit_test(nesting),
		cmocka_unit_test(captures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
