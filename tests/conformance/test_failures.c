/* SPDX-License-Identifier: Apache-2.0 */
/* Rows; P-26, P-44, P-46, P-48, P-49; D-01, D-02. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

#define FAILURE(size, count) "alloc_failure size=" size " count=" count "\n"
#define HUGE_SIZE "3458764513820540928"

static void asking(void **state)
{
	static const struct run runs[] = {
		{ .row = "R-57, P-46: no on the third question, then smaller works",
		  .policies = { "retry=2" },
		  .script = "expect 2 alloc a " HUGE_SIZE "; alloc b 8192; free b; truth",
		  .events = { FAILURE(HUGE_SIZE, "0") FAILURE(HUGE_SIZE, "1")
			      FAILURE(HUGE_SIZE, "2") },
		  .out = "" },
		{ .row = "R-05, R-10: the count starts anew for each allocation",
		  .policies = { "retry=1" },
		  .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		  .script = "expect 2 alloc a 2M; expect 2 async b 3M s; expect 2 pitch c 1M 2; "
			    "truth",
		  .events = { FAILURE("2097152", "0") FAILURE("2097152", "1")
			      FAILURE("3145728", "0") FAILURE("3145728", "1")
			      FAILURE("2097152", "0") FAILURE("2097152", "1") },
		  .out = "" },
		{ .row = "R-40: no policy, and a policy that says no: the original failure",
		  .policies = { "" },
		  .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		  .script = "expect 2 alloc a 2M; truth",
		  .events = { FAILURE("2097152", "0") }, .out = "" },
		{ .row = "R-07, R-46: mended at the second attempt; thresholds by the last one",
		  .policies = { "retry=3,alloc=8K,debug=1" },
		  .environment = { "CUWEIR_SIM_FAIL=alloc:1-2=2" },
		  .script = "alloc a 8K; free a; truth",
		  .events = { FAILURE("8192", "0") FAILURE("8192", "1")
			      "alloc_threshold total=8192 before=0\nallocated size=8192\n"
			      "deallocated size=8192\n" },
		  .out = "" },
		{ .row = "R-47: final failure in debug mode",
		  .policies = { "retry=1,alloc=1,debug=1" },
		  .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		  .script = "expect 2 alloc a 2M; truth",
		  .shown = "alloc_threshold alloc_failure allocated deallocated alloc_failed",
		  .events = { FAILURE("2097152", "0") FAILURE("2097152", "1")
			      "alloc_failed status=2 requested=2097152\n" },
		  .out = "" },
		{ .row = "R-34: the deprecated form is used where there is no other",
		  .plugin = "legacy_failure",
		  .environment = { "CUWEIR_SIM_FAIL=alloc:1-2=2" },
		  .policies = { "" },
		  .script = "alloc a 8K; free a; truth", .shown = "", .out = "" },
		{ .row = "D-01: CUWEIR_MAX_RETRIES=5 and a handler that always says yes",
		  .policies = { "retry=always" },
		  .environment = { "CUWEIR_SIM_CAPACITY=1M", "CUWEIR_MAX_RETRIES=5" },
		  .script = "expect 2 alloc a 2M; truth",
		  .events = { FAILURE("2097152", "0") FAILURE("2097152", "1")
			      FAILURE("2097152", "2") FAILURE("2097152", "3")
			      FAILURE("2097152", "4") },
		  .out = "" },
		{ .row = "D-01: CUWEIR_MAX_RETRIES=0",
		  .policies = { "retry=always" },
		  .environment = { "CUWEIR_SIM_CAPACITY=1M", "CUWEIR_MAX_RETRIES=0" },
		  .script = "expect 2 alloc a 2M; truth", .events = { "" }, .out = "" },
		{ .row = "P-26: what the driver leaves in the out pointer of a failed call",
		  .policies = { "alloc=1" },
		  .environment = { "CUWEIR_SIM_CAPACITY=1M", "CUWEIR_SIM_SCRIBBLE_ON_FAIL=1" },
		  .script = "expect 2 alloc a 2M; alloc b 8K; free b; truth",
		  .events = { FAILURE("2097152", "0") "alloc_threshold total=8192\n" },
		  .out = "" },
	};

	(void)state;
	RUN_ALL(runs);
}

/* P-48, R-08: nothing but out-of-memory is offered, and every code arrives unchanged. */
static void other_errors(void **state)
{
	static const int codes[] = { 1, 3, 100, 201, 400, 700, 719, 801, 900, 999 };

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		char fail[64];
		char script[128];
		struct run one = {
			.row = "P-48, R-08",
			.ways = HEARD_WAYS,
			.policies = { "retry=always,debug=1" },
			.environment = { fail },
			.script = script,
			.shown = "alloc_failure allocated alloc_failed",
			.events = { "alloc_failed\n" },
			.out = "",
		};

		snprintf(fail, sizeof(fail), "CUWEIR_SIM_FAIL=alloc:1=%d", codes[i]);
		snprintf(script, sizeof(script), "expect %d alloc a 8K; truth", codes[i]);
		run(&one);
	}
}

/* P-44, R-09: the runtime's last error is what one plain call would have left. */
static void last_error(void **state)
{
	static const struct run runs[] = {
		{ .row = "P-44: a mended failure leaves nothing",
		  .ways = RUNTIME_WAYS,
		  .policies = { "retry=1" },
		  .environment = { "CUWEIR_SIM_FAIL=alloc:2=2" },
		  .script = "alloc a 8K; alloc b 8K; peekerror; free a; free b; peekerror; truth",
		  .events = { FAILURE("8192", "0") }, .out = "" },
		{ .row = "P-44: even when it is the first call of all",
		  .ways = RUNTIME_WAYS,
		  .policies = { "retry=1" },
		  .environment = { "CUWEIR_SIM_FAIL=alloc:1=2" },
		  .script = "alloc a 8K; peekerror; free a",
		  .events = { FAILURE("8192", "0") } },
		{ .row = "P-44: a final failure is there once",
		  .ways = RUNTIME_WAYS,
		  .policies = { "retry=1" },
		  .environment = { "CUWEIR_SIM_CAPACITY=1M" },
		  .script = "expect 2 alloc a 2M; expect 2 peekerror; expect 2 lasterror; lasterror",
		  .events = { FAILURE("2097152", "0") FAILURE("2097152", "1") } },
		{ .row = "P-44: an older pending error is still there after a mended one",
		  .ways = SHARED | STATIC,
		  .policies = { "retry=1" },
		  .environment = { "CUWEIR_SIM_FAIL=alloc:2=1,alloc:3=2" },
		  .script = "alloc a 8K; expect 1 alloc b 8K; alloc c 8K; expect 1 peekerror; "
			    "expect 1 lasterror; lasterror; free a; free c",
		  .events = { FAILURE("8192", "0") } },
	};

	(void)state;
	RUN_ALL(runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asking),
		cmocka_unit_test(other_errors),
		cmocka_unit_test(last_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
