/* SPDX-License-Identifier: Apache-2.0 */
/* The policy `log`: arguments, text lines, blocks, fork, failing files, many threads. */
#include "fake_host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 8

static unsigned int pairs = 10000; /* of each thread, two rows each */

static const struct cuweir_policy *policy;
static char directory[] = "/tmp/cuweir-log-XXXXXX";
static char path[128];

static void *open_csv(struct fake_host *fake, const char *more)
{
	char arguments[300];
	fake_host_init(fake);
	snprintf(arguments, sizeof(arguments), "format=csv,file=%s%s", path, more);
	return fake_open(fake, policy, arguments);
}

/* Lines of the file; each ends with a newline. */
static unsigned long count_lines(void)
{
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	unsigned long lines = 0;
	int c, last = '\n';
	while ((c = fgetc(file)) != EOF) {
		lines += c == '\n';
		last = c;
	}
	assert_int_equal(last, '\n');
	fclose(file);
	return lines;
}

static void give_back(void *log, uint64_t size, uintptr_t pointer)
{
	struct cuweir_event event = fake_free_event(size, (void *)pointer, size);
	policy->before_free(log, &event);
}

static void test_text(void **state)
{
	struct fake_host fake;
	char want[300];
	fake_host_init(&fake);
	void *log = fake_open(&fake, policy, "");
	assert_int_equal(fake.line_count, 0);
	struct cuweir_event event = fake_event(64 << 20, 64 << 20, 128 << 20);
	event.pointer = (void *)0x7f1000;
	policy->on_allocated(log, 64 << 20, &event);
	snprintf(want, sizeof(want),
		 "cuweir[%d]: +  64.0 MiB (67108864)  cudaMalloc  device 0  0x7f1000  "
		 "total 128.0 MiB (134217728)",
		 (int)getpid());
	assert_string_equal(fake.lines[0], want);
	event = fake_free_event(1000, (void *)0x7f2000, 5120);
	event.charged = 1536;
	event.device = 1;
	event.kind = CUWEIR_KIND_HOST;
	event.stream = (void *)0x5;
	policy->before_free(log, &event);
	snprintf(want, sizeof(want),
		 "cuweir[%d]: -  1000 B (1000, charged 1536)  cudaFree  device 1 host  0x7f2000  "
		 "stream 0x5  total   3.5 KiB (3584)",
		 (int)getpid());
	assert_string_equal(fake.lines[1], want);
	event = fake_event(UINT64_MAX, 7, 7);
	event.status = CUWEIR_ERROR_OUT_OF_MEMORY;
	event.retry_count = 3;
	event.device = -1;
	policy->admit(log, &event);
	assert_false(policy->on_alloc_failure(log, UINT64_MAX, 3, &event));
	snprintf(want, sizeof(want),
		 "cuweir[%d]: !  15.9 EiB (18446744073709551615)  cudaMalloc  failed with 2 "
		 "(out of memory) at retry 3  total     7 B (7)",
		 (int)getpid());
	assert_string_equal(fake.lines[2], want);
	assert_int_equal(fake.line_count, 3);
}

static void test_refusals(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	assert_string_equal(fake_open_refused(&fake, policy, "format=xml"),
			    "argument 1, \"format=xml\": want format=text, format=csv or "
			    "format=json");
	assert_string_equal(fake_open_refused(&fake, policy, "format=csv,flush=never"),
			    "argument 2, \"flush=never\": want flush=line or flush=block");
	assert_string_equal(fake_open_refused(&fake, policy, "debug=2"),
			    "argument 1, \"debug=2\": want debug=0 or debug=1");
	assert_string_equal(fake_open_refused(&fake, policy, "format=csv,,"),
			    "argument 2, \"\": want format=, file=, flush=, rotate=, keep=, "
			    "debug= or kinds=");
	assert_non_null(strstr(fake_open_refused(&fake, policy, "kinds=device+vram"),
			       "argument 1, \"kinds=device+vram\": want kinds=all, or names"));
	assert_string_equal(fake_open_refused(&fake, policy, "file"),
			    "argument 1, \"file\": want file=NAME");
	assert_string_equal(fake_open_refused(&fake, policy, "flush=block"),
			    "flush=block: want file=NAME with it");
	assert_non_null(strstr(fake_open_refused(&fake, policy, "file=a%x"),
			       "file=a%x: want a name of at most 4080 bytes, with %p for the pid"));
	assert_non_null(strstr(fake_open_refused(&fake, policy, "file=a%q{NO_SUCH_VARIABLE}"),
			       "%q{NAME} a variable that is set"));
	assert_non_null(strstr(fake_open_refused(&fake, policy, "file=a%"), "want a name"));
	assert_string_equal(fake_open_refused(&fake, policy, "file=a,rotate=100"),
			    "argument 2, \"rotate=100\": want rotate=SIZE of at least 4K: "
			    "rotate=100M");
	assert_string_equal(fake_open_refused(&fake, policy, "file=a,keep=0"),
			    "argument 2, \"keep=0\": want keep=N, 1 to 999 older files");
	assert_string_equal(fake_open_refused(&fake, policy, "rotate=1M"),
			    "rotate=: want file=NAME with it");
	assert_string_equal(fake_open_refused(&fake, policy, "file=/nowhere/at/all"),
			    "file=/nowhere/at/all: No such file or directory; want a file that can "
			    "be written, in a directory that exists");
	assert_false(fake.debug);
	assert_int_equal(fake.line_count, 0);
}

static void test_debug_and_kinds(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *log = fake_open(&fake, policy, "debug=0,kinds=managed+host");
	assert_false(fake.debug);
	struct cuweir_event event = fake_free_event(10, (void *)0x10, 10);
	event.kind = CUWEIR_KIND_HOST;
	policy->on_allocated(log, 10, &event);
	policy->before_free(log, &event); /* no row of its allocation either */
	assert_int_equal(fake.line_count, 0);
	fake.debug = true;
	policy->before_free(log, &event);
	assert_int_equal(fake.line_count, 1);
	event.kind = CUWEIR_KIND_DEVICE;
	policy->before_free(log, &event);
	policy->on_allocated(log, 10, &event);
	assert_int_equal(fake.line_count, 1);
}

static void test_errno_is_kept(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *log = fake_open(&fake, policy, "format=csv,file=/dev/full");
	errno = 4321;
	give_back(log, 1, 0x10);
	give_back(log, 1, 0x10);
	assert_int_equal(errno, 4321);
	/* Told once, with the reason; the header was the first. */
	assert_int_equal(fake.line_count, 1);
	assert_non_null(strstr(fake.lines[0], "]: log: a row could not be written to /dev/full: No space left"));
	policy->close(log);
	assert_int_equal(fake.line_count, 2);
	assert_non_null(strstr(fake.lines[1], "log: 3 rows are missing in /dev/full"));
}

static void test_block(void **state)
{
	struct fake_host fake;
	void *log = open_csv(&fake, ",flush=block");
	give_back(log, 1, 0x10);
	assert_int_equal(count_lines(), 1); /* the header */
	for (int i = 0; i < 5000; i++) {
		give_back(log, 2, 0x20);
	}
	assert_in_range(count_lines(), 1000, 5001);
	policy->close(log);
	assert_int_equal(count_lines(), 5002);
	give_back(log, 3, 0x30); /* a callback that was still running */
	assert_int_equal(count_lines(), 5003);
}

/* The parent's buffered rows are written once, the child's row at once. */
static void test_block_and_fork(void **state)
{
	struct fake_host fake;
	void *log = open_csv(&fake, ",flush=block");
	give_back(log, 1, 0x10);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		give_back(log, 2, 0x20);
		policy->close(log);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(count_lines(), 2);
	policy->close(log);
	assert_int_equal(count_lines(), 3);
}

struct worker {
	pthread_t thread;
	void *log;
	unsigned int index;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	for (unsigned int i = 0; i < pairs; i++) {
		uintptr_t pointer = 0x10000000u * (worker->index + 1) + i * 256u;
		struct cuweir_event event = fake_event(i, 0, 0);
		event.thread = worker->index;
		event.pointer = (void *)pointer;
		policy->on_allocated(worker->log, i, &event);
		event = fake_free_event(i, (void *)pointer, 0);
		event.thread = worker->index;
		policy->before_free(worker->log, &event);
	}
	return NULL;
}

/* Every row is whole, and each thread's are all there in its order. */
static void check_threads(const char *flush)
{
	struct fake_host fake;
	struct worker workers[THREADS];
	unsigned int seen[THREADS] = { 0 };
	void *log = open_csv(&fake, flush);
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .log = log, .index = i };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
	}
	policy->close(log);
	FILE *file = fopen(path, "r");
	char line[256];
	assert_non_null(fgets(line, sizeof(line), file));
	while (fgets(line, sizeof(line), file) != NULL) {
		unsigned int thread, size;
		unsigned long pointer;
		char action[16], end[8];
		if (sscanf(line, "%u,%*2d:%*2d:%*2d.%*6d,%15[a-z],%lx,%u,%7s", &thread, action,
			   &pointer, &size, end) != 5 ||
		    thread >= THREADS) {
			fail_msg("torn: %s", line);
		}
		unsigned int row = seen[thread]++;
		assert_string_equal(end, "0");
		assert_int_equal(size, row / 2);
		assert_string_equal(action, row % 2 == 0 ? "allocate" : "free");
		assert_int_equal(pointer, 0x10000000ul * (thread + 1) + row / 2 * 256);
	}
	fclose(file);
	for (unsigned int i = 0; i < THREADS; i++) {
		assert_int_equal(seen[i], 2 * pairs);
	}
	assert_int_equal(fake.line_count, 0);
}

static void test_threads_by_line(void **state)
{
	check_threads("");
}

static void test_threads_by_block(void **state)
{
	check_threads(",flush=block");
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

int main(int argc, char **argv)
{
	if (argc < 2) {
		return 2;
	}
	policy = fake_load(argv[1]);
	if (getenv("CUWEIR_TEST_PAIRS") != NULL) {
		pairs = (unsigned int)atoi(getenv("CUWEIR_TEST_PAIRS"));
		cmocka_set_test_filter("test_threads_by_block");
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_debug_and_kinds),
		cmocka_unit_test(test_errno_is_kept),
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_block_and_fork),
		cmocka_unit_test(test_threads_by_line),
		cmocka_unit_test(test_threads_by_block),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
