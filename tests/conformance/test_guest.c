/* SPDX-License-Identifier: Apache-2.0 */
/* A guest in the program's process: what the program must not notice, and how little is said. */
#include "lines.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLUGINS "/tests/plugins/"

/* A chain with two that do not open: the opening goes through everything that can fail. */
static const char *busy_policy(void)
{
	static char setting[2048];
	const char *build = getenv("CUWEIR_TEST_BUILD");

	snprintf(setting, sizeof(setting),
		 "CUWEIR_POLICY=%s" PLUGINS "lingering.so;/no/such.so;%s" PLUGINS "no_entry.so;%s"
		 PLUGINS "services.so:0,1",
		 build, build, build);
	return setting;
}

static void run_habit(const char *habit, int way, bool bare, struct result *ret)
{
	const struct run one = {
		.program = "habits", .script = habit, .bare = bare,
		.environment = { busy_policy(), "CUWEIR_DEBUG=1", "CUWEIR_REPORT=1",
				 "CUWEIR_LOG=/dev/null" },
	};

	run_once(&one, way, ret);
	assert_int_equal(ret->exit_status, 0);
}

/* errno, dispositions and masks of signals, the mode mask, threads: as without us. */
static void unchanged(void **state)
{
	static struct result with;
	static struct result without;
	static const char *const habits[] = { "errno", "process" };

	(void)state;
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++) {
		for (int way = LINKED; way <= SHARED; way += SHARED - LINKED) {
			run_habit(habits[i], way, true, &without);
			assert_int_equal(strlen(without.err), 0);
			run_habit(habits[i], way, false, &with);
			assert_int_equal(count_lines(with.err, "\"/no/such.so\": "), 1);
			if (i == 1) {
				/* One more, high up and closed on exec, for CUWEIR_LOG. */
				assert_int_equal(count_lines(with.out, "fds 7"), 1);
				replace(with.out, sizeof(with.out), "fds 7", "fds 6");
			}
			if (strcmp(with.out, without.out) != 0) {
				fail_msg("%s: with\n%swithout\n%s", habits[i], with.out,
					 without.out);
			}
		}
	}
	/* A test of the test: every call kept it where nobody was there. */
	run_habit("errno", LINKED, true, &without);
	assert_int_equal(count_lines(without.out, ", errno 4321"), 20);
}

/*
 * A pending dlerror of the program's is kept by every call but the one that loads policies:
 * the dynamic linker forgets it then, and there is no way to put it back. Ours never shows.
 */
static void pending_dlerror(void **state)
{
	static const char pending[] =
		"after an allocation: pending\nafter a failure: pending\nafter a free: pending\n"
		"without one: none\n";
	static struct result result;
	struct run without_policy = { .program = "habits", .script = "dlerror",
				      .environment = { "CUWEIR_DEBUG=1" } };
	char expected[256];

	(void)state;
	for (int way = LINKED; way <= SHARED; way += SHARED - LINKED) {
		run_habit("dlerror", way, false, &result);
		snprintf(expected, sizeof(expected), "after the first call: none\n%s", pending);
		assert_string_equal(result.out, expected);
		run_once(&without_policy, way, &result);
		/* The runtime's own look-ups succeed, and so clear what was pending. */
		snprintf(expected, sizeof(expected), "after the first call: %s\n%s",
			 way == LINKED ? "pending" : "none", pending);
		assert_string_equal(result.out, expected);
	}
}

/* Signals interrupt the writes into a log whose reader is slow: every line is whole. */
static void signals(void **state)
{
	char directory[] = "/tmp/cuweir-fifo-XXXXXX";
	char fifo[64];
	char setting[128];
	static struct result result;
	static char text[1 << 20];
	const struct run one = {
		.program = "habits", .script = "signals",
		.environment = { "CUWEIR_DEBUG=1", setting },
	};

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
	snprintf(setting, sizeof(setting), "CUWEIR_LOG=%s", fifo);
	for (int way = LINKED; way <= SHARED; way += SHARED - LINKED) {
		size_t length = 0;
		ssize_t got;
		int status;
		int fd;
		pid_t child;

		assert_int_equal(mkfifo(fifo, 0600), 0);
		fd = open(fifo, O_RDWR | O_CLOEXEC);
		child = fork();
		if (child == 0) {
			run_once(&one, way, &result);
			_exit(strcmp(result.out, "ticks many\n") == 0 && result.err[0] == '\0' &&
			      write(fd, "end\n", 4) == 4 ? 0 : 1);
		}
		while (length < 4 || memcmp(text + length - 4, "end\n", 4) != 0) {
			got = read(fd, text + length, length < 65536 ? 512 : 65536);
			assert_true(got > 0 && length + (size_t)got < sizeof(text) - 65537);
			length += (size_t)got;
			usleep(length < 65536 ? 1000 : 0);
		}
		text[length] = '\0';
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		close(fd);
		unlink(fifo);
		assert_int_equal(count_lines(text, "]: allocated 8.0 KiB (8192 B) device"), 3000);
		assert_int_equal(count_lines(text, "]: freed 8.0 KiB (8192 B) device"), 3000);
		assert_int_equal(count_lines(text, "B)"), 6000);
		assert_int_equal(count_lines(text, ""), 6001);
	}
	rmdir(directory);
}

/* P-52, P-60: a program that mends its own failures hears nothing of us. */
static void failures(void **state)
{
	static const struct line_row rows[] = {
		{ { .row = "P-60: nothing at the default level",
		    .program = "habits", .script = "mend",
		    .environment = { "CUWEIR_SIM_CAPACITY=1M" } }, .err = "" },
		{ { .row = "P-60: nor with a policy that says no",
		    .program = "habits", .script = "mend",
		    .environment = { "CUWEIR_SIM_CAPACITY=1M",
				     "CUWEIR_POLICY=BUILD/tests/plugins/larger_ok.so" } },
		  .err = "larger_ok open\n" },
	};

	(void)state;
	RUN_LINES(rows);
}

static size_t slow_lines(const char *retries, int way)
{
	static struct result result;
	char policy[1024];
	const struct run one = {
		.preload = "tests/conformance/fast_clock.so",
		.environment = { policy, "CUWEIR_SIM_CAPACITY=1M" },
		.script = "expect 2 alloc a 2M; expect 2 alloc b 2M",
	};

	snprintf(policy, sizeof(policy), "CUWEIR_POLICY=%s" PLUGINS "recorder.so:file=/dev/null,%s",
		 getenv("CUWEIR_TEST_BUILD"), retries);
	run_once(&one, way, &result);
	assert_int_equal(result.exit_status, 0);
	return count_lines(result.err, way == LINKED
		? "]: cuMemAlloc of 2097152 B has been retried for 10 s, "
		: "]: cudaMalloc of 2097152 B has been retried for 10 s, ");
}

/* D-01: told once for each allocation while it lasts. A second passes at each look. */
static void slow_retries(void **state)
{
	(void)state;
	for (int way = LINKED; way <= SHARED; way += SHARED - LINKED) {
		assert_int_equal(slow_lines("retry=100", way), 2);
		assert_int_equal(slow_lines("retry=1", way), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unchanged),
		cmocka_unit_test(pending_dlerror),
		cmocka_unit_test(signals),
		cmocka_unit_test(failures),
		cmocka_unit_test(slow_retries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
