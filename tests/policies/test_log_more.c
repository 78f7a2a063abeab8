/* SPDX-License-Identifier: Apache-2.0 */
/* The policy `log`: JSON, names of files, rotation, and being tried. */
#include "log_directory.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static void test_json(void **state)
{
	struct fake_host fake;
	char want[400];
	fake_host_init(&fake);
	void *log = fake_open(&fake, policy, "format=json");
	struct cuweir_event event = fake_event(100, 0, 512);
	event.charged = 512;
	event.pointer = (void *)0x7f00;
	event.stream = (void *)2;
	policy->on_allocated(log, 100, &event);
	event = fake_event(UINT64_MAX, 512, 512);
	event.device = -1;
	event.kind = CUWEIR_KIND_HOST;
	event.status = CUWEIR_ERROR_OUT_OF_MEMORY;
	event.retry_count = 4;
	policy->admit(log, &event);
	policy->on_alloc_failure(log, UINT64_MAX, 4, &event);
	event = fake_free_event(100, (void *)0x7f00, 512);
	policy->before_free(log, &event);
	long tid = syscall(SYS_gettid);
	assert_int_equal(strncmp(fake.lines[0], "{\"time\":", 8), 0);
	snprintf(want, sizeof(want),
		 ",\"pid\":%d,\"thread\":%ld,\"action\":\"allocate\",\"call\":\"cudaMalloc\","
		 "\"kind\":\"device\",\"device\":0,\"pointer\":\"0x7f00\",\"size\":100,"
		 "\"charged\":512,\"stream\":\"0x2\",\"status\":0,\"retry\":0,\"total\":512}",
		 (int)getpid(), tid);
	assert_string_equal(strchr(fake.lines[0], ','), want);
	snprintf(want, sizeof(want),
		 ",\"pid\":%d,\"thread\":%ld,\"action\":\"failure\",\"call\":\"cudaMalloc\","
		 "\"kind\":\"host\",\"device\":-1,\"pointer\":\"0x0\","
		 "\"size\":18446744073709551615,\"charged\":18446744073709551615,"
		 "\"stream\":\"0x0\",\"status\":2,\"retry\":4,\"total\":512}",
		 (int)getpid(), tid);
	assert_string_equal(strchr(fake.lines[1], ','), want);
	assert_non_null(strstr(fake.lines[2], "\"action\":\"free\""));
	assert_non_null(strstr(fake.lines[2], "\"total\":412}"));
}

/* The longest row of each format is whole. */
static void test_longest_row(void **state)
{
	static const char *const formats[] = { "format=text", "format=json", "format=csv" };
	struct fake_host fake;
	char call[300];
	fake_host_init(&fake);
	memset(call, 'x', sizeof(call));
	call[299] = '\0';
	struct cuweir_event event = fake_event(UINT64_MAX, 0, UINT64_MAX - 1);
	event.call = call;
	event.charged = UINT64_MAX - 1;
	event.pointer = event.stream = (void *)UINTPTR_MAX;
	event.thread = UINT64_MAX;
	event.retry_count = UINT32_MAX;
	event.status = INT32_MAX;
	event.device = INT32_MAX;
	event.kind = 4;
	for (size_t i = 0; i < 3; i++) {
		void *log = fake_open(&fake, policy, formats[i]);
		policy->on_allocated(log, UINT64_MAX, &event);
		policy->admit(log, &event);
		policy->on_alloc_failure(log, UINT64_MAX, 1, &event);
	}
	assert_non_null(strstr(fake.lines[0], "(18446744073709551614)"));
	assert_non_null(strstr(fake.lines[1], "at retry 4294967295"));
	assert_int_equal(fake.lines[2][strlen(fake.lines[2]) - 1], '}');
	assert_int_equal(fake.lines[3][strlen(fake.lines[3]) - 1], '}');
}

static void test_text_of_1023(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	void *log = fake_open(&fake, policy, "");
	struct cuweir_event event = fake_event(1073741823, 0, 1073741823);
	policy->on_allocated(log, 1073741823, &event);
	assert_non_null(strstr(fake.lines[0], ": + 1023.9 MiB (1073741823)  "));
	assert_non_null(strstr(fake.lines[0], "  total 1023.9 MiB (1073741823)"));
}

static void test_names(void **state)
{
	struct fake_host fake;
	char host[256] = "";
	char want[800];
	setenv("CUWEIR_TEST_WORD", "w0rd", 1);
	setenv("SLURM_PROCID", "17", 1);
	gethostname(host, sizeof(host) - 1);
	open_in(&fake, "a%%p%p.%h.%n.%r.%q{CUWEIR_TEST_WORD}.csv", "");
	snprintf(want, sizeof(want), "a%%p%d.%s.%s.17.w0rd.csv", (int)getpid(), host,
		 program_invocation_short_name);
	check_there(want);
	setenv("OMPI_COMM_WORLD_RANK", "3", 1);
	open_in(&fake, "r%r", "");
	check_there("r3");
	unsetenv("OMPI_COMM_WORLD_RANK");
	unsetenv("SLURM_PROCID");
	setenv("CUWEIR_POLICY", "log", 1);
	open_in(&fake, "r%r", "");
	check_there("r0");
	unsetenv("CUWEIR_POLICY");
}

/* Neither here nor where it was executed does an environment say which rank it is. */
static void test_rank_not_known(void **state)
{
	struct fake_host fake;
	char **before = environ;
	char *none[] = { NULL };
	assert_null(getenv("CUWEIR_POLICY"));
	fake_host_init(&fake);
	environ = none;
	const char *reason = fake_open_refused(&fake, policy, "file=/tmp/cuweir-rank-%r");
	environ = before;
	assert_string_equal(reason, "file=/tmp/cuweir-rank-%r: want an environment for %r: the "
				    "program has emptied its own, and /proc/self/environ cannot be "
				    "read");
}

/* a file for each device, at its first row. */
static void test_devices(void **state)
{
	struct fake_host fake;
	void *log = open_in(&fake, "dev%d", ",format=csv");
	struct cuweir_event event = fake_free_event(1, (void *)0x10, 0);
	assert_int_equal(access(path_of("dev0"), F_OK), -1);
	policy->before_free(log, &event);
	event.device = 1;
	policy->before_free(log, &event);
	policy->before_free(log, &event);
	event.device = -1;
	policy->before_free(log, &event);
	assert_int_equal(rows_in("dev0"), 2);
	assert_int_equal(rows_in("dev1"), 3);
	assert_int_equal(rows_in("devnone"), 2);
	policy->close(log);
	/* One that cannot be opened is told, and its rows are not lost. */
	log = open_in(&fake, "no/dev%d", "");
	policy->before_free(log, &event);
	assert_int_equal(fake.line_count, 2);
	assert_non_null(strstr(fake.lines[0], "No such file or directory"));
}

static void check_rotation(const char *flush)
{
	struct fake_host fake;
	char more[100];
	snprintf(more, sizeof(more), ",format=csv,rotate=40K,keep=2%s", flush);
	void *log = open_in(&fake, "rot", more);
	put_rows(log, 4000); /* some 45 bytes each */
	policy->close(log);
	assert_int_equal(access(path_of("rot.3"), F_OK), -1);
	check_there("rot");
	static const char *const names[] = { "rot.2", "rot.1" };
	for (size_t i = 0; i < 2; i++) {
		struct stat status;
		assert_int_equal(stat(path_of(names[i]), &status), 0);
		assert_in_range(status.st_size, 40960, 40960 + 16384 + 100);
		assert_int_equal(strncmp(text_of(names[i]), "Thread,Time,", 12), 0);
	}
	/* They join without a gap: the sizes count up over the files. */
	unsigned int next = 0;
	static const char *const all[] = { "rot.2", "rot.1", "rot" };
	for (size_t i = 0; i < 3; i++) {
		const char *at = strchr(text_of(all[i]), '\n') + 1;
		for (; *at != '\0'; at = strchr(at, '\n') + 1) {
			unsigned int size = 0;
			assert_int_equal(sscanf(at, "%*u,%*[^,],free,%*[^,],%u,0", &size), 1);
			assert_true(next == 0 || size == next);
			next = size + 1;
		}
	}
	assert_int_equal(next, 4000);
	assert_int_equal(fake.line_count, 0);
}

static void test_rotation(void **state)
{
	check_rotation("");
	check_rotation(",flush=block");
}

/* Every row is there, and that is what is said. */
static void test_rotation_that_fails(void **state)
{
	struct fake_host fake;
	void *log = open_in(&fake, "stays", ",rotate=4K,keep=1");
	assert_int_equal(mkdir(path_of("stays.1"), 0700), 0);
	put_rows(log, 400);
	policy->close(log);
	rmdir(path_of("stays.1"));
	assert_int_equal(rows_in("stays"), 400);
	assert_int_equal(fake.line_count, 1);
	assert_non_null(strstr(fake.lines[0], "log: rotate=: the files of /tmp/cuweir-logs-"));
	assert_non_null(strstr(fake.lines[0], "/stays could not be moved on: Is a directory; rows "
					      "go on in the last one"));
}

/* `cuweir run` only tries the arguments: no file is made. */
static void test_trial(void **state)
{
	struct fake_host fake;
	char arguments[300];
	fake_host_init(&fake);
	fake.host.shim_version = "trial";
	snprintf(arguments, sizeof(arguments), "file=%s", path_of("trial"));
	fake_open(&fake, policy, arguments);
	assert_int_equal(access(path_of("trial"), F_OK), -1);
}

TEST_MAIN_WITH(set_up, tear_down,
	cmocka_unit_test(test_json),
	cmocka_unit_test(test_longest_row),
	cmocka_unit_test(test_text_of_1023),
	cmocka_unit_test(test_names),
	cmocka_unit_test(test_rank_not_known),
	cmocka_unit_test(test_devices),
	cmocka_unit_test(test_rotation),
	cmocka_unit_test(test_rotation_that_fails),
	cmocka_unit_test(test_trial));
