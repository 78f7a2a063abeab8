/* SPDX-License-Identifier: Apache-2.0 */
/* CUWEIR_POLICY: the chain as it is written, and every plugin that a shim meets in the wild. */
#include "lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLUGINS "BUILD/tests/plugins/"
#define SAID "cuweir[P]: "
#define PAIR "alloc a 8192; free a"
#define REFUSED(setting, reason)                                                                   \
	SAID "CUWEIR_POLICY=\"" setting "\": " reason "; the policy is left out\n"
#define LINE(verb, call, total) \
	SAID verb " 8.0 KiB (8192 B) device by " call ", device 0, 0xA, total " total "\n"
#define STRICT_END SAID "CUWEIR_STRICT=1: the program ends here with status 127\n"
#define WANT "; want a policy that is there (cuweir policies), or the path with a / of a plugin"
#define NO_SUCH "there is no policy of that name beside libcuweir.so" WANT

static void chains(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "a bare name, a path, and arguments verbatim after the first ':'",
		    .environment = { "CUWEIR_POLICY=example:4096;" PLUGINS
				     "lingering.so:a=1,b=2:c:d=e,:" },
		    .script = PAIR },
		  .err = "lingering open a=1,b=2:c:d=e,:\nlingering 8192 by cuMemAlloc\n"
			 "example: device 0 is over a mark: 8192 bytes after cuMemAlloc\n"
			 "example: device 0 is under a mark: 0 bytes after cuMemFree\n"
			 "lingering close\n" },
		{ { .row = "no arguments: an empty string",
		    .environment = { "CUWEIR_POLICY=" PLUGINS "lingering.so:;;;" PLUGINS
				     "lingering.so;" },
		    .script = "" },
		  .err = "lingering open \nlingering open \nlingering close\nlingering close\n" },
		{ { .row = "CUWEIR_POLICY of separators alone is no policy",
		    .environment = { "CUWEIR_POLICY=;;", "CUWEIR_STRICT=1" }, .script = PAIR },
		  .err = "" },
		{ { .row = "CUWEIR_POLICY without a value is no policy",
		    .environment = { "CUWEIR_POLICY=", "CUWEIR_STRICT=1" }, .script = PAIR },
		  .err = "" },
		{ { .row = "R-56: a log gets events by its own flag; debug stays off for others",
		    .environment = { "CUWEIR_POLICY=log:format=csv,file=/dev/null;"
				     PLUGINS "services.so:0,0" },
		    .script = PAIR },
		  .err = "host size 1 version 1 shim 0.1.0 event 1\n" },
		{ { .row = "settings and lines go to one file",
		    .environment = { "CUWEIR_POLICY=" PLUGINS "lingering.so:x", "CUWEIR_LOG=FILE" },
		    .script = PAIR },
		  .err = "",
		  .file = "lingering open x\nlingering 8192 by cuMemAlloc\nlingering close\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		run_lines(&rows[i]);
	}
}

/* The program runs on without the policy; with CUWEIR_STRICT=1 it ends. */
static const struct {
	const char *row;
	const char *policy;
	const char *err;
} broken[] = {
	{ "a name that nobody has", "nobody:x", REFUSED("nobody:x", NO_SUCH) },
	{ "a name with its suffix", "example.so", REFUSED("example.so", NO_SUCH) },
	{ "a path that nobody has", "/no/such/plugin.so",
	  REFUSED("/no/such/plugin.so", "there is no such file" WANT) },
	{ "a directory", "BUILD/tests/",
	  REFUSED("BUILD/tests/", "cannot read file data: Is a directory" WANT) },
	{ "a text file", "BUILD/build.ninja:a",
	  REFUSED("BUILD/build.ninja:a", "invalid ELF header" WANT) },
	{ "no arguments of a policy are a path", ":/x", REFUSED(":/x", NO_SUCH) },
	{ "a plugin that needs a function which nobody has", PLUGINS "unresolved.so",
	  REFUSED(PLUGINS "unresolved.so",
		  "undefined symbol: cuweir_nobody_has_this" WANT) },
	{ "a shared object that is no policy", PLUGINS "no_entry.so",
	  REFUSED(PLUGINS "no_entry.so", "it exports no cuweir_policy_entry" WANT) },
	{ "a version above ours", PLUGINS "new_abi.so",
	  REFUSED(PLUGINS "new_abi.so", "made for version 2 of the policy contract; this cuweir "
					"has 1: want a newer cuweir, or the policy built with "
					"this one's header") },
	{ "callbacks beyond ours", PLUGINS "new_entries.so",
	  REFUSED(PLUGINS "new_entries.so", "it has callbacks that this cuweir does not know; want "
					    "a newer cuweir, or the policy built with this one's "
					    "header") },
	{ "an open that fails with a reason", PLUGINS "open_fails.so:want: a=b",
	  REFUSED(PLUGINS "open_fails.so:want: a=b", "want: a=b") },
	{ "an open that fails without", PLUGINS "open_fails.so:silent",
	  REFUSED(PLUGINS "open_fails.so:silent", "its open returned status 800") },
	{ "an allocator that cannot take back", PLUGINS "half_allocator.so",
	  REFUSED(PLUGINS "half_allocator.so",
		  "its allocator lacks allocate_async or deallocate_async") },
};

static void broken_plugins(void **state)
{
	char policy[1024];
	char err[2048];

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		struct line_row row = {
			{ .row = broken[i].row, .environment = { policy }, .script = PAIR,
			  .out = "" },
			.err = err,
		};

		/* The others are still there. */
		snprintf(policy, sizeof(policy), "CUWEIR_POLICY=" PLUGINS "lingering.so;%s",
			 broken[i].policy);
		snprintf(err, sizeof(err), "lingering open \n%slingering 8192 by cuMemAlloc\n"
					   "lingering close\n", broken[i].err);
		run_lines(&row);
		row.run.environment[1] = "CUWEIR_STRICT=1";
		row.run.exit_status = 127;
		snprintf(err, sizeof(err), "lingering open \n%s" STRICT_END, broken[i].err);
		run_lines(&row);
	}
}

static void strict_settings(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "a value that cannot be read", .exit_status = 127,
		    .environment = { "CUWEIR_STRICT=1", "CUWEIR_MAX_RETRIES=x" },
		    .script = PAIR, .out = "" },
		  .err = SAID "CUWEIR_MAX_RETRIES=\"x\": want a number, 0 or more; it is "
			      "ignored\n" STRICT_END },
		{ { .row = "a name that is no setting", .exit_status = 127,
		    .environment = { "CUWEIR_STRICT=1", "CUWEIR_MAX_RETRY=1" },
		    .script = PAIR, .out = "" },
		  .err = SAID "CUWEIR_MAX_RETRY is not a setting; did you mean "
			      "CUWEIR_MAX_RETRIES?\n" STRICT_END },
		{ { .row = "a log that cannot be written", .exit_status = 127,
		    .environment = { "CUWEIR_STRICT=1", "CUWEIR_LOG=/proc/none" },
		    .script = PAIR, .out = "" },
		  .err = SAID "CUWEIR_LOG=\"/proc/none\": cannot open /proc/none for writing "
			      "(error 2); want a file name in a directory that exists, %p for the "
			      "process id; lines go to stderr\n" STRICT_END },
		{ { .row = "one that is silent about it", .exit_status = 127,
		    .environment = { "CUWEIR_STRICT=1", "CUWEIR_POLICY=nobody",
				     "CUWEIR_VERBOSE=0" },
		    .script = PAIR, .out = "" },
		  .err = "" },
		{ { .row = "nothing is wrong", .environment = { "CUWEIR_STRICT=1" },
		    .script = PAIR }, .err = "" },
	};

	(void)state;
	RUN_LINES(rows);
}

/* Plugins of other headers that are fine: each does what it says. */
static void good_plugins(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "a policy of an older header",
		    .environment = { "CUWEIR_POLICY=" PLUGINS "old_abi.so", "CUWEIR_DEBUG=1" },
		    .script = PAIR "; expect 2 alloc b 1000G" },
		  .err = "old_abi alloc 8192\n" LINE("allocated", "cuMemAlloc", "8.0 KiB (8192 B)")
			 "old_abi dealloc 0\n" LINE("freed", "cuMemFree", "0 B (0 B)")
			 "cuweir[P]: failed 1000.0 GiB (1073741824000 B) device by cuMemAlloc, "
			 "device 0: CUDA_ERROR_OUT_OF_MEMORY (2)\n" },
		{ { .row = "a policy of a newer header that uses nothing of it",
		    .environment = { "CUWEIR_POLICY=" PLUGINS "larger_ok.so" }, .script = PAIR },
		  .err = "larger_ok open\n" },
		{ { .row = "two that serve the same kinds: the second one never would, which is told",
		    .environment = { "CUWEIR_POLICY=spill;pool" }, .script = PAIR },
		  .err = SAID "CUWEIR_POLICY: pool serves no memory, as a policy before it serves the "
			      "same kinds; want one of them\n" },
		{ { .row = "set_callbacks: another table, its kinds too",
		    .environment = { "CUWEIR_POLICY=" PLUGINS "tables.so:later" },
		    .script = PAIR "; managed m 4096; free m" },
		  .err = "tables later 0\ntables later 0\n" },
		{ { .row = "set_callbacks: what no policy could have leaves the first one",
		    .environment = { "CUWEIR_POLICY=" PLUGINS "tables.so:null;" PLUGINS
				     "tables.so:small;" PLUGINS "tables.so:half;" PLUGINS
				     "tables.so:filled" },
		    .script = PAIR "; managed m 4096; free m" },
		  .err = "tables null 1\ntables small 1\ntables half 1\ntables filled 1\n"
			 "tables first 800\ntables first 800\ntables first 800\n"
			 "tables first 800\n" },
		{ { .row = "a policy with the deprecated failure callback",
		    .environment = { "CUWEIR_POLICY=" PLUGINS "legacy_failure.so",
				     "CUWEIR_SIM_FAIL=alloc:1-2=2" },
		    .script = PAIR },
		  .err = "legacy_failure 8192 1\nlegacy_failure 8192 2\n" },
		{ { .row = "a policy in C++",
		    .environment = { "CUWEIR_POLICY=" PLUGINS "cxx_policy.so:1024+4096" },
		    .script = PAIR },
		  .err = "cxx_policy alloc 8192\ncxx_policy dealloc 0\ncxx_policy close 0\n" },
		{ { .row = "a policy in C++ that refuses",
		    .environment = { "CUWEIR_POLICY=" PLUGINS "cxx_policy.so:1024-" },
		    .script = PAIR },
		  .err = REFUSED(PLUGINS "cxx_policy.so:1024-", "want sizes joined by '+'") },
	};

	(void)state;
	if (access(built("tests/plugins/cxx_policy.so"), R_OK) != 0) {
		skip();
	}
	RUN_LINES(rows);
}

/* The loader's lock is held by a thread that uses CUDA while another one opens the policies. */
static void openings(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "the first call of all, from a thread of a constructor",
		    .program = "opening", .script = "within", .ways = LINKED,
		    .environment = { "CUWEIR_POLICY=" PLUGINS "slow_open.so" } },
		  .err = "slow_open 2000\nslow_open 1000\nslow_open 3000\n" },
		{ { .row = "an open that waits for the constructor which waits for it",
		    .program = "opening", .script = "before", .ways = LINKED,
		    .environment = { "CUWEIR_POLICY=" PLUGINS "slow_open.so" } },
		  .err = SAID "a policy's open takes longer than 5 s, or waits for this thread, as "
			      "for a constructor: calls go on without policies meanwhile\n"
			 "slow_open 1000\nslow_open 3000\n" },
		{ { .row = "a constructor that waits for a thread which waits for the loading",
		    .program = "opening", .script = "joined", .ways = LINKED,
		    .environment = { "CUWEIR_POLICY=" PLUGINS "slow_open.so" } },
		  .err = SAID "a policy's open takes longer than 5 s, or waits for this thread, as "
			      "for a constructor: calls go on without policies meanwhile\n"
			 "slow_open 1000\nslow_open 3000\n" },
		{ { .row = "a plugin that uses CUDA as it is loaded", .script = PAIR,
		    .environment = { "CUWEIR_POLICY=" PLUGINS "using.so" } },
		  .err = "using: 0 at its load\nusing 8192, total 8792\n" },
	};

	(void)state;
	RUN_LINES(rows);
}

static void too_many(void **state)
{
	char policy[2048] = "CUWEIR_POLICY=";
	char err[2048] = "";
	const struct line_row row = {
		{ .row = "seventeen policies", .environment = { policy }, .script = "" },
		.err = err,
	};

	(void)state;
	for (int i = 0; i < 17; i++) {
		char part[128];

		snprintf(part, sizeof(part), PLUGINS "lingering.so:%d;", i);
		strcat(policy, part);
		snprintf(part, sizeof(part), "lingering open %d\n", i);
		strcat(err, i < 16 ? part
				   : REFUSED(PLUGINS "lingering.so:16",
					     "the chain is full at 16 policies"));
	}
	for (int i = 0; i < 16; i++) {
		strcat(err, "lingering close\n");
	}
	run_lines(&row);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chains),
		cmocka_unit_test(broken_plugins),
		cmocka_unit_test(strict_settings),
		cmocka_unit_test(good_plugins),
		cmocka_unit_test(openings),
		cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
