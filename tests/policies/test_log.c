/* SPDX-License-Identifier: Apache-2.0 */
/* The policy `log` by value, and a row for each failed attempt, never two. */
#include "test_main.h"

#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HEADER "Thread,Time,Action,Pointer,Size,Stream\n"

static char directory[] = "/tmp/cuweir-log-XXXXXX";
static char path[128];

static char *read_file(void)
{
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	struct stat status;
	assert_int_equal(fstat(fileno(file), &status), 0);
	char *text = calloc(1, (size_t)status.st_size + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)status.st_size, file), status.st_size);
	fclose(file);
	return text;
}

static void *open_csv(struct fake_host *fake, const char *more)
{
	char arguments[300];
	fake_host_init(fake);
	snprintf(arguments, sizeof(arguments), "format=csv,file=%s%s", path, more);
	return fake_open(fake, policy, arguments);
}

static void allocate(void *log, uint64_t size, void *pointer)
{
	struct cuweir_event event = fake_event(size, 0, 0);
	assert_int_equal(policy->admit(log, &event), CUWEIR_SUCCESS);
	event.pointer = pointer;
	event.total_after = size;
	policy->on_allocated(log, size, &event);
}

static bool fail_once(void *log, uint64_t size, int retry_count)
{
	struct cuweir_event event = fake_event(size, 0, 0);
	event.status = CUWEIR_ERROR_OUT_OF_MEMORY;
	event.retry_count = (uint32_t)retry_count;
	assert_int_equal(policy->admit(log, &event), CUWEIR_SUCCESS);
	return policy->on_alloc_failure(log, size, retry_count, &event);
}

static void end_failed(void *log, uint64_t size, int status)
{
	struct cuweir_event event = fake_event(size, 0, 0);
	event.status = status;
	policy->on_alloc_failed(log, &event);
}

static void give_back(void *log, uint64_t size, void *pointer)
{
	struct cuweir_event event = fake_free_event(size, pointer, size);
	policy->before_free(log, &event);
}

/* The row's columns as a regular expression says, and "Action,Pointer,Size,Stream" exactly. */
static const char *check_row(const char *text, const char *tail)
{
	static regex_t row;
	static bool compiled;
	if (!compiled) {
		assert_int_equal(regcomp(&row,
					 "^([0-9]+),([0-9]{2}:[0-5][0-9]:[0-5][0-9]\\.[0-9]{6}),"
					 "((allocate|allocate failure|free),"
					 "(\\(nil\\)|0x[0-9a-f]+),[0-9]+,(0|0x[0-9a-f]+))$",
					 REG_EXTENDED | REG_NEWLINE),
				 0);
		compiled = true;
	}
	regmatch_t match[4];
	if (regexec(&row, text, 4, match, 0) != 0 || match[0].rm_so != 0) {
		fail_msg("not a row: %.100s", text);
	}
	assert_int_equal(strtoul(text, NULL, 10), syscall(SYS_gettid));
	size_t length = (size_t)(match[3].rm_eo - match[3].rm_so);
	if (strlen(tail) != length || memcmp(text + match[3].rm_so, tail, length) != 0) {
		fail_msg("row %.*s, want %s", (int)length, text + match[3].rm_so, tail);
	}
	return text + match[0].rm_eo + 1;
}

/* R-94, first half. */
static void test_rows_in_call_order(void **state)
{
	struct fake_host fake;
	void *log = open_csv(&fake, "");
	/* it gets events by its flag, and leaves the switch of the others alone. */
	assert_int_equal(policy->flags & CUWEIR_POLICY_DEBUG, CUWEIR_POLICY_DEBUG);
	assert_false(fake.debug);
	allocate(log, 100, (void *)0x7fAB00);
	allocate(log, 42, (void *)0x7fCD00);
	give_back(log, 100, (void *)0x7fAB00);
	give_back(log, 42, (void *)0x7fCD00);
	char *text = read_file(); /* before close: R-92, each line is there at once */
	assert_memory_equal(text, HEADER, strlen(HEADER));
	const char *next = check_row(text + strlen(HEADER), "allocate,0x7fab00,100,0");
	next = check_row(next, "allocate,0x7fcd00,42,0");
	next = check_row(next, "free,0x7fab00,100,0");
	next = check_row(next, "free,0x7fcd00,42,0");
	assert_string_equal(next, "");
	free(text);
}

/* R-94, second half. */
static void test_failure_row(void **state)
{
	struct fake_host fake;
	void *log = open_csv(&fake, "");
	allocate(log, 99, (void *)0x7f0100);
	give_back(log, 99, (void *)0x7f0100);
	assert_false(fail_once(log, 1ull << 40, 0));
	end_failed(log, 1ull << 40, CUWEIR_ERROR_OUT_OF_MEMORY);
	char *text = read_file();
	const char *next = check_row(text + strlen(HEADER), "allocate,0x7f0100,99,0");
	next = check_row(next, "free,0x7f0100,99,0");
	next = check_row(next, "allocate failure,(nil),1099511627776,0");
	assert_string_equal(next, "");
	free(text);
}

/* below a handler that retries, each attempt has its row. */
static void test_retries_and_other_failures(void **state)
{
	struct fake_host fake;
	void *log = open_csv(&fake, "");
	fail_once(log, 5, 0);
	fail_once(log, 5, 0);
	allocate(log, 5, (void *)0x10);
	/* Attempt 1 runs out of memory, attempt 2 fails otherwise: a row each. */
	fail_once(log, 6, 0);
	struct cuweir_event again = fake_event(6, 0, 0);
	policy->admit(log, &again);
	end_failed(log, 6, 999);
	/* Refused before it came here, with any status: none. */
	end_failed(log, 7, CUWEIR_ERROR_NOT_PERMITTED);
	end_failed(log, 7, CUWEIR_ERROR_OUT_OF_MEMORY);
	/* Out of memory that this policy was not asked about: one. */
	again = fake_event(8, 0, 0);
	policy->admit(log, &again);
	end_failed(log, 8, CUWEIR_ERROR_OUT_OF_MEMORY);
	char *text = read_file();
	const char *next = check_row(text + strlen(HEADER), "allocate failure,(nil),5,0");
	next = check_row(next, "allocate failure,(nil),5,0");
	next = check_row(next, "allocate,0x10,5,0");
	next = check_row(next, "allocate failure,(nil),6,0");
	next = check_row(next, "allocate failure,(nil),6,0");
	next = check_row(next, "allocate failure,(nil),8,0");
	assert_string_equal(next, "");
	free(text);
}

static void test_veto_inside_and_outside(void **state)
{
	struct fake_host fake;
	void *log = open_csv(&fake, "");
	struct cuweir_event undo = fake_free_event(9, (void *)0x20, 9);
	undo.flags = CUWEIR_EVENT_UNDO;
	/* The vetoer stands before the log, which had been told of the allocation. */
	allocate(log, 9, (void *)0x20);
	policy->before_free(log, &undo);
	end_failed(log, 9, 700);
	/* It stands behind the log, which had not. */
	struct cuweir_event event = fake_event(9, 0, 0);
	policy->admit(log, &event);
	policy->before_free(log, &undo);
	end_failed(log, 9, 700);
	char *text = read_file();
	const char *next = check_row(text + strlen(HEADER), "allocate,0x20,9,0");
	next = check_row(next, "free,0x20,9,0");
	next = check_row(next, "allocate failure,(nil),9,0");
	assert_string_equal(next, "");
	free(text);
}

/* Two places in one chain keep their attempts apart. */
static void test_two_places(void **state)
{
	struct fake_host fake, other;
	void *outer = open_csv(&fake, "");
	fake_host_init(&other);
	void *inner = fake_open(&other, policy, "format=csv");
	struct cuweir_event event = fake_event(3, 0, 0);
	policy->admit(outer, &event);
	policy->admit(inner, &event);
	policy->on_alloc_failure(inner, 3, 0, &event);
	end_failed(inner, 3, CUWEIR_ERROR_OUT_OF_MEMORY);
	end_failed(outer, 3, CUWEIR_ERROR_OUT_OF_MEMORY);
	char *text = read_file();
	assert_string_equal(check_row(text + strlen(HEADER), "allocate failure,(nil),3,0"), "");
	free(text);
	assert_int_equal(other.line_count, 2);
	assert_string_equal(other.lines[0], "Thread,Time,Action,Pointer,Size,Stream");
	assert_non_null(strstr(other.lines[1], ",allocate failure,(nil),3,0"));
	assert_null(strchr(other.lines[1], '\n'));
}

/* R-90, and a failure's pointer whatever the event has. */
static void test_stream_and_sizes(void **state)
{
	struct fake_host fake;
	void *log = open_csv(&fake, "");
	struct cuweir_event event = fake_event(UINT64_MAX, 0, 0);
	event.stream = (void *)2;
	event.pointer = (void *)UINTPTR_MAX;
	policy->on_allocated(log, UINT64_MAX, &event);
	policy->admit(log, &event);
	policy->on_alloc_failure(log, UINT64_MAX, 0, &event);
	event.requested = 0;
	event.charged = 4096;
	policy->before_free(log, &event);
	char *text = read_file();
	const char *next = check_row(text + strlen(HEADER),
				     "allocate,0xffffffffffffffff,18446744073709551615,0x2");
	next = check_row(next, "allocate failure,(nil),18446744073709551615,0x2");
	next = check_row(next, "free,0xffffffffffffffff,0,0x2");
	assert_string_equal(next, "");
	free(text);
}

/* the wall clock of the zone the process runs in. */
static void test_local_time(void **state)
{
	setenv("TZ", "XXX-05:45", 1);
	tzset();
	struct fake_host fake;
	void *log = open_csv(&fake, "");
	/* The log's own clock: time() may be a tick behind it, and in the second before. */
	struct timespec before, after;
	clock_gettime(CLOCK_REALTIME, &before);
	allocate(log, 1, (void *)0x10);
	clock_gettime(CLOCK_REALTIME, &after);
	char *text = read_file();
	const char *stamp = strchr(text + strlen(HEADER), ',') + 1;
	bool found = false;
	for (time_t second = before.tv_sec; second <= after.tv_sec; second++) {
		time_t there = second + 5 * 3600 + 45 * 60;
		struct tm tm;
		char want[9];
		gmtime_r(&there, &tm);
		strftime(want, sizeof(want), "%H:%M:%S", &tm);
		found = found || memcmp(stamp, want, 8) == 0;
	}
	assert_true(found);
	free(text);
	unsetenv("TZ");
	tzset();
}

/* The log's descriptor is closed in programs that are executed. */
static void check_close_on_exec(void)
{
	struct stat status, other;
	bool found = false;
	assert_int_equal(stat(path, &status), 0);
	for (int fd = 0; fd < 1024; fd++) {
		if (fstat(fd, &other) == 0 && other.st_ino == status.st_ino &&
		    other.st_dev == status.st_dev) {
			assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
			found = true;
		}
	}
	assert_true(found);
}

/* The mode, and a descriptor that the program's next standard file will not be. */
static void test_new_file(void **state)
{
	struct fake_host fake;
	struct stat status;
	unlink(path);
	mode_t mask = umask(0);
	int kept = dup(STDIN_FILENO);
	close(STDIN_FILENO);
	open_csv(&fake, "");
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
	dup2(kept, STDIN_FILENO);
	close(kept);
	umask(mask);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0644);
	check_close_on_exec();
}

/* R-93; and a file that somebody else empties meanwhile has no hole. */
static void test_old_file(void **state)
{
	struct fake_host fake;
	FILE *file = fopen(path, "w");
	fputs("something long that a run before has left in this file\n", file);
	fclose(file);
	void *log = open_csv(&fake, "");
	check_close_on_exec();
	char *text = read_file();
	assert_string_equal(text, HEADER);
	free(text);
	assert_int_equal(truncate(path, 0), 0);
	allocate(log, 1, (void *)0x10);
	text = read_file();
	assert_string_equal(check_row(text, "allocate,0x10,1,0"), "");
	free(text);
}

static int set_up(void **state)
{
	if (mkdtemp(directory) == NULL) {
		return -1;
	}
	snprintf(path, sizeof(path), "%s/log.csv", directory);
	return 0;
}

static int tear_down(void **state)
{
	unlink(path);
	return rmdir(directory);
}

TEST_MAIN_WITH(set_up, tear_down,
	cmocka_unit_test(test_rows_in_call_order),
	cmocka_unit_test(test_failure_row),
	cmocka_unit_test(test_retries_and_other_failures),
	cmocka_unit_test(test_veto_inside_and_outside),
	cmocka_unit_test(test_two_places),
	cmocka_unit_test(test_stream_and_sizes),
	cmocka_unit_test(test_local_time),
	cmocka_unit_test(test_new_file),
	cmocka_unit_test(test_old_file));
