/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
	int bit;
	const char *name;
	const char *program; /* below tests/apps */
	const char *argument;
} ways[] = {
	{ LINKED, "linked", "scenario_linked", "linked" },
	{ DLSYM, "dlsym", "scenario", "dlsym" },
	{ GPA, "gpa", "scenario", "gpa" },
	{ GPA1, "gpa1", "scenario", "gpa1" },
	{ SHARED, "shared runtime", "scenario_runtime_shared", "runtime" },
	{ STATIC, "static runtime", "scenario_runtime_static", "runtime" },
	{ FOREIGN, "foreign runtime", "scenario_runtime_foreign", "runtime" },
};

enum { WAY_COUNT = sizeof(ways) / sizeof(ways[0]), PATH_SIZE = 512, ENTRIES_MAX = 64 };

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL) {
		fprintf(stderr, "%s is not set: run this through meson test\n", name);
		exit(2);
	}
	return value;
}

const char *built(const char *what)
{
	static char paths[8][PATH_SIZE];
	static unsigned int next;
	char *path = paths[next++ % 8];

	if (strcmp(what, "shim") == 0) {
		return setting("CUWEIR_TEST_SHIM");
	}
	snprintf(path, PATH_SIZE, "%s/%s", setting("CUWEIR_TEST_BUILD"), what);
	return path;
}

static void read_file(const char *path, char *buffer, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got;

	if (fd >= 0) {
		while ((got = read(fd, buffer + length, size - 1 - length)) > 0) {
			length += (size_t)got;
		}
		close(fd);
	}
	buffer[length] = '\0';
}

static void event_file(char *path, const char *directory, int index)
{
	snprintf(path, PATH_SIZE, "%s/events%d", directory, index);
}

/* Appends what the caller's own environment has, but for settings of ours. */
static int inherit(char **entries, int count)
{
	for (char **entry = environ; *entry != NULL && count < ENTRIES_MAX - ENVIRONMENT_MAX - 8;
	     entry++) {
		bool wanted = strncmp(*entry, "PATH=", 5) == 0 ||
			      strncmp(*entry, "HOME=", 5) == 0 ||
			      strstr(*entry, "SAN_OPTIONS=") != NULL ||
			      strncmp(*entry, "VALGRIND", 8) == 0 ||
			      strncmp(*entry, "CUWEIR_TEST_", 12) == 0;

		if (wanted) {
			entries[count++] = *entry;
		}
	}
	return count;
}

static char *entry_of(const char *format, const char *first, const char *second)
{
	char *text = malloc(8192);

	if (text == NULL) {
		abort();
	}
	snprintf(text, 8192, format, first, second);
	return text;
}

static char *chain_of(const struct run *run, const char *directory)
{
	char *text = entry_of("%s", "CUWEIR_POLICY=", "");
	const char *plugin = run->plugin != NULL ? run->plugin : "recorder";

	for (int i = 0; i < CHAIN_MAX && run->policies[i] != NULL; i++) {
		char part[1024];
		char file[PATH_SIZE];

		event_file(file, directory, i);
		snprintf(part, sizeof(part), "%s%s/tests/plugins/%s.so:file=%s%s%s",
			 i > 0 ? ";" : "", setting("CUWEIR_TEST_BUILD"), plugin, file,
			 run->policies[i][0] != '\0' ? "," : "", run->policies[i]);
		strcat(text, part);
	}
	strcat(text, ";");
	strcat(text, setting("CUWEIR_TEST_BUILD"));
	strcat(text, "/tests/plugins/auditor.so:");
	strcat(text, directory);
	strcat(text, "/audit");
	return text;
}

static void exec_program(const struct run *run, int way, const char *directory)
{
	char *entries[ENTRIES_MAX] = { NULL };
	char *arguments[4] = { NULL };
	const char *first = run->preload != NULL ? built(run->preload)
						 : getenv("CUWEIR_TEST_PRELOAD_FIRST");
	int count = inherit(entries, 0);
	char out[PATH_SIZE];
	char err[PATH_SIZE];

	if (!run->bare) {
		entries[count++] = first != NULL
					   ? entry_of("LD_PRELOAD=%s %s", first, built("shim"))
					   : entry_of("LD_PRELOAD=%s", built("shim"), "");
	}
	entries[count++] = entry_of("LD_LIBRARY_PATH=%s%s",
				    built(ways[way].bit == FOREIGN ? "tests/sim/foreign"
								   : "tests/sim/lib"), "");
	if (run->policies[0] != NULL) {
		entries[count++] = chain_of(run, directory);
	}
	for (int i = 0; i < ENVIRONMENT_MAX && run->environment[i] != NULL; i++) {
		entries[count++] = (char *)(uintptr_t)run->environment[i];
	}
	snprintf(out, sizeof(out), "%s/out", directory);
	snprintf(err, sizeof(err), "%s/err", directory);
	if (dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1) < 0 ||
	    dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600), 2) < 0) {
		_exit(126);
	}
	/* The program's descriptors are 0, 1 and 2, whatever the test runner has open. */
	for (int fd = 3; fd < 1024; fd++) {
		close(fd);
	}
	snprintf(out, sizeof(out), "tests/apps/%s%s",
		 run->program != NULL ? run->program : "scenario",
		 ways[way].program + strlen("scenario"));
	arguments[0] = (char *)(uintptr_t)built(out);
	arguments[1] = (char *)(uintptr_t)ways[way].argument;
	arguments[2] = (char *)(uintptr_t)run->script;
	/* A scenario that hangs is killed, and says so by its status. */
	alarm(RUN_SECONDS);
	execve(arguments[0], arguments, entries);
	_exit(127);
}

static void remove_all(const char *directory)
{
	static const char *const names[] = { "out", "err", "events0", "events1", "events2",
					     "events3", "audit" };
	char path[PATH_SIZE];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	rmdir(directory);
}

void run_once(const struct run *run, int way_bit, struct result *ret)
{
	char directory[] = "/tmp/cuweir-case-XXXXXX";
	char path[PATH_SIZE];
	int way = 0;
	int status;
	pid_t child;

	while (ways[way].bit != way_bit) {
		way++;
	}
	assert_non_null(mkdtemp(directory));
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		exec_program(run, way, directory);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	ret->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	snprintf(path, sizeof(path), "%s/out", directory);
	read_file(path, ret->out, sizeof(ret->out));
	snprintf(path, sizeof(path), "%s/err", directory);
	read_file(path, ret->err, sizeof(ret->err));
	for (int i = 0; i < CHAIN_MAX; i++) {
		event_file(path, directory, i);
		read_file(path, ret->events[i], sizeof(ret->events[i]));
	}
	snprintf(path, sizeof(path), "%s/audit", directory);
	read_file(path, ret->audit, sizeof(ret->audit));
	remove_all(directory);
}

/* The length of the word that starts at `text`. */
static size_t word_length(const char *text)
{
	return strcspn(text, " \n");
}

static bool line_has_word(const char *line, const char *word, size_t length)
{
	size_t end = strcspn(line, "\n");

	for (const char *at = line; at < line + end;) {
		size_t here = word_length(at);

		if (here == length && memcmp(at, word, length) == 0) {
			return true;
		}
		at += here + 1;
	}
	return false;
}

static bool line_matches(const char *written, const char *expected)
{
	size_t end = strcspn(expected, "\n");

	for (const char *at = expected; at < expected + end;) {
		size_t length = word_length(at);

		if (length > 0 && !line_has_word(written, at, length)) {
			return false;
		}
		at += length + 1;
	}
	return true;
}

static const char *next_line(const char *text)
{
	text += strcspn(text, "\n");
	return *text == '\n' ? text + 1 : text;
}

static bool is_shown(const struct run *run, const char *line)
{
	const char *shown = run->shown != NULL ? run->shown
					       : "alloc_threshold dealloc_threshold alloc_failure "
						 "allocated deallocated";

	return line_has_word(shown, line, word_length(line));
}

static const char *next_shown(const struct run *run, const char *text)
{
	while (*text != '\0' && !is_shown(run, text)) {
		text = next_line(text);
	}
	return text;
}

static void compare_events(const struct run *run, const char *way, const char *written,
			   const char *expected)
{
	const char *all = written;

	while (*expected != '\0') {
		written = next_shown(run, written);
		if (*written == '\0' || !line_matches(written, expected)) {
			fail_msg("%s (%s): expected \"%.*s\", but the policy was told \"%.*s\"; "
				 "in all:\n%s",
				 run->row, way, (int)strcspn(expected, "\n"), expected,
				 (int)strcspn(written, "\n"), written, all);
		}
		written = next_line(written);
		expected = next_line(expected);
	}
	written = next_shown(run, written);
	if (*written != '\0') {
		fail_msg("%s (%s): not expected: \"%.*s\"; in all:\n%s", run->row, way,
			 (int)strcspn(written, "\n"), written, all);
	}
}

/* The totals, the records and the GPU say the same for every device and kind. */
static void compare_books(const struct run *run, const char *way, const char *audit)
{
	if (*audit == '\0') {
		fail_msg("%s (%s): the books were not closed", run->row, way);
	}
	for (; *audit != '\0'; audit = next_line(audit)) {
		unsigned long long totals;
		unsigned long long records;
		unsigned long long truth;

		if (sscanf(audit, "%*d %*d totals=%llu records=%llu truth=%llu", &totals, &records,
			   &truth) != 3 ||
		    totals != records || records != truth) {
			fail_msg("%s (%s): the books differ (device, kind): %.*s", run->row, way,
				 (int)strcspn(audit, "\n"), audit);
		}
	}
}

static void check(const struct run *run, const char *way, const struct result *result)
{
	if (result->exit_status != run->exit_status) {
		fail_msg("%s (%s): exit status %d, expected %d\nout: %s\nerr: %s", run->row, way,
			 result->exit_status, run->exit_status, result->out, result->err);
	}
	if (run->out != NULL && strcmp(run->out, result->out) != 0) {
		fail_msg("%s (%s): printed \"%s\", expected \"%s\"\nerr: %s", run->row, way,
			 result->out, run->out, result->err);
	}
	for (int i = 0; i < CHAIN_MAX && run->policies[i] != NULL; i++) {
		compare_events(run, way, result->events[i],
			       run->events[i] != NULL ? run->events[i] : "");
	}
	if (run->policies[0] != NULL && !run->unaudited) {
		compare_books(run, way, result->audit);
	}
	for (size_t i = 0; i < sizeof(run->err) / sizeof(run->err[0]) && run->err[i] != NULL; i++) {
		if (strstr(result->err, run->err[i]) == NULL) {
			fail_msg("%s (%s): stderr lacks \"%s\":\n%s", run->row, way, run->err[i],
				 result->err);
		}
	}
	/* A sanitizer has its own word about programs that start others. */
	if (run->quiet && result->err[0] != '\0' &&
	    strstr(result->err, "ASan is ignoring requested __asan_handle_no_return") == NULL) {
		fail_msg("%s (%s): stderr should be empty:\n%s", run->row, way, result->err);
	}
}

/* Whether the row asks for callbacks that the minimal recorder does not have. */
static bool needs_all_callbacks(const struct run *run)
{
	return run->plugin != NULL || run->policies[0] == NULL ||
	       (run->shown != NULL && (strstr(run->shown, "admit") != NULL ||
				       strstr(run->shown, "before_free") != NULL)) ||
	       strstr(run->policies[0], "admit=") != NULL ||
	       (run->policies[1] != NULL && strstr(run->policies[1], "admit=") != NULL);
}

void run(const struct run *run)
{
	static struct result result;
	int wanted = run->ways != 0 ? run->ways : ALL_WAYS;

	for (int way = 0; way < WAY_COUNT; way++) {
		if ((ways[way].bit & wanted) == 0) {
			continue;
		}
		run_once(run, ways[way].bit, &result);
		check(run, ways[way].name, &result);
		if (!needs_all_callbacks(run)) {
			/* The shim's short way, where nobody is asked beforehand. */
			struct run shorter = *run;

			shorter.plugin = "recorder_minimal";
			run_once(&shorter, ways[way].bit, &result);
			check(&shorter, ways[way].name, &result);
		}
	}
}
