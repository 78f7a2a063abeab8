/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_SIZE = 1 << 16 };

void replace(char *text, size_t size, const char *from, const char *to)
{
	size_t from_length = strlen(from);
	size_t to_length = strlen(to);

	for (char *at = strstr(text, from); at != NULL; at = strstr(at + to_length, from)) {
		size_t rest = strlen(at + from_length) + 1;

		assert_true((size_t)(at - text) + to_length + rest <= size);
		memmove(at + to_length, at + from_length, rest);
		memcpy(at, to, to_length);
	}
}

static void shorten(char *text, const char *head, int (*is_part)(int), const char *to)
{
	size_t head_length = strlen(head);
	size_t to_length = strlen(to);

	for (char *at = strstr(text, head); at != NULL; at = strstr(at + 1, head)) {
		char *end = at + head_length;

		while (is_part((unsigned char)*end)) {
			end++;
		}
		if (end > at + head_length) {
			memcpy(at + head_length, to, to_length);
			memmove(at + head_length + to_length, end, strlen(end) + 1);
		}
	}
}

static int is_number(int c)
{
	return isdigit(c) || c == '.';
}

void normalize(char *text)
{
	shorten(text, "cuweir[", isdigit, "P");
	shorten(text, "0x", isxdigit, "A");
	shorten(text, " came after ", is_number, "T");
}

size_t count_lines(const char *text, const char *having)
{
	size_t count = 0;

	while (*text != '\0') {
		size_t length = strcspn(text, "\n");
		const char *found = strstr(text, having);

		count += found != NULL && found < text + length + (*having == '\0');
		text += length + (text[length] == '\n');
	}
	return count;
}

/* What the program of this way calls, where the expected line has the driver's name. */
static void speak(char *text, size_t size, int way, const char *program)
{
	static const char *const names[][2] = {
		{ "cuMemAllocAsync", "cudaMallocAsync" },
		{ "cuMemAllocPitch", "cudaMallocPitch" },
		{ "cuMemAllocManaged", "cudaMallocManaged" },
		{ "cuMemAllocHost", "cudaMallocHost" },
		{ "cuMemHostAlloc", "cudaHostAlloc" },
		{ "cuMemAlloc", "cudaMalloc" },
		{ "cuMemFreeAsync", "cudaFreeAsync" },
		{ "cuMemFreeHost", "cudaFreeHost" },
		{ "cuMemFree", "cudaFree" },
	};
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", program != NULL ? program : "scenario",
		 way == LINKED ? "linked" : "runtime_shared");
	replace(text, size, "PROGRAM", name);
	replace(text, size, "BUILD", getenv("CUWEIR_TEST_BUILD"));
	for (size_t i = 0; way == SHARED && i < sizeof(names) / sizeof(names[0]); i++) {
		replace(text, size, names[i][0], names[i][1]);
	}

}

static void compare(const struct run *run, const char *what, const char *expected,
		    const char *written)
{
	if (strcmp(expected, written) != 0) {
		fail_msg("%s: %s is\n%s\nexpected\n%s", run->row, what, written, expected);
	}
}

static void check_file(const struct line_row *row, int way, const char *path)
{
	static char expected[TEXT_SIZE];
	static char written[TEXT_SIZE];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (row->file == NULL) {
		assert_int_equal(fd, -1);
		return;
	}
	assert_true(fd >= 0);
	length = read(fd, written, sizeof(written) - 1);
	close(fd);
	unlink(path);
	assert_true(length >= 0);
	written[length] = '\0';
	normalize(written);
	snprintf(expected, sizeof(expected), "%s", row->file);
	speak(expected, sizeof(expected), way, row->run.program);
	compare(&row->run, "the file", expected, written);
}

/* Looks the report over and cuts it off. */
static void check_report(const struct line_row *row, int way, char *err)
{
	char *report = strstr(err, "cuweir[P]: report when ");
	char expected[512];

	if (row->report[0] == NULL) {
		return; /* one that should not be there is found with the rest */
	}
	if (report == NULL || count_lines(report, "]: report when ") != 1) {
		fail_msg("%s: there is to be one report in\n%s", row->run.row, err);
	}
	for (int i = 0; i < 5 && row->report[i] != NULL; i++) {
		snprintf(expected, sizeof(expected), "cuweir[P]: %s\n", row->report[i]);
		speak(expected, sizeof(expected), way, row->run.program);
		if (strstr(report, expected) == NULL) {
			fail_msg("%s: the report lacks\n%sit is\n%s", row->run.row, expected,
				 report);
		}
	}
	*report = '\0';
}

static void run_way(const struct line_row *row, int way)
{
	static struct result result;
	static char expected[TEXT_SIZE];
	static char entries[ENVIRONMENT_MAX][4096];
	struct run run = row->run;
	char file[] = "/tmp/cuweir-lines-XXXXXX";
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	close(fd);
	unlink(file);
	for (int i = 0; i < ENVIRONMENT_MAX && run.environment[i] != NULL; i++) {
		snprintf(entries[i], sizeof(entries[i]), "%s", run.environment[i]);
		replace(entries[i], sizeof(entries[i]), "BUILD", getenv("CUWEIR_TEST_BUILD"));
		replace(entries[i], sizeof(entries[i]), "FILE", file);
		run.environment[i] = entries[i];
	}
	run_once(&run, way, &result);
	normalize(result.err);
	if (result.exit_status != run.exit_status) {
		fail_msg("%s: exit status %d, expected %d\n%s", run.row, result.exit_status,
			 run.exit_status, result.err);
	}
	check_report(row, way, result.err);
	snprintf(expected, sizeof(expected), "%s", row->err);
	speak(expected, sizeof(expected), way, run.program);
	compare(&run, "stderr", expected, result.err);
	if (run.out != NULL) {
		compare(&run, "the output", run.out, result.out);
	}
	check_file(row, way, file);
}

void run_lines(const struct line_row *row)
{
	int wanted = row->run.ways != 0 ? row->run.ways : LINKED | SHARED;

	for (int way = LINKED; way <= FOREIGN; way <<= 1) {
		if ((way & wanted) != 0) {
			run_way(row, way);
		}
	}
}
