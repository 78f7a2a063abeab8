/* SPDX-License-Identifier: Apache-2.0 */
/* The policy `act` by value: when it acts and how often, and that the program feels nothing. */
#include "test_main.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ull << 20)

static char directory[] = "/tmp/cuweir-act-XXXXXX";
static char path[128];

static struct {
	size_t free_bytes;
	unsigned int asked;
	int device;
} driver;

static int mem_info(size_t *free_bytes, size_t *total_bytes)
{
	driver.asked++;
	*free_bytes = driver.free_bytes;
	*total_bytes = 1000 * MIB;
	return CUWEIR_SUCCESS;
}

static int get_device(int *device)
{
	*device = driver.device;
	return CUWEIR_SUCCESS;
}

static int total_mem(size_t *bytes, int device)
{
	*bytes = (size_t)(device + 1) * 1000 * MIB;
	return device < 2 ? CUWEIR_SUCCESS : CUWEIR_ERROR_INVALID_DEVICE;
}

static void *find_driver(const char *symbol)
{
	return strcmp(symbol, "cuMemGetInfo_v2") == 0	? (void *)mem_info :
	       strcmp(symbol, "cuCtxGetDevice") == 0	? (void *)get_device :
	       strcmp(symbol, "cuDeviceTotalMem_v2") == 0 ? (void *)total_mem :
							    NULL;
}

static void *open_act(struct fake_host *fake, const char *format)
{
	char arguments[500];
	fake_host_init(fake);
	memset(&driver, 0, sizeof(driver));
	fake->find_driver = find_driver;
	unlink(path);
	snprintf(arguments, sizeof(arguments), format, path, path);
	return fake_open(fake, policy, arguments);
}

/* The file's text, waiting until it has `lines` lines. */
static const char *file_text(int lines)
{
	static char text[8192];
	for (int i = 0; i < 200; i++) {
		FILE *file = fopen(path, "r");
		size_t length = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
		int found = 0;
		if (file != NULL) {
			fclose(file);
		}
		text[length] = '\0';
		for (size_t j = 0; j < length; j++) {
			found += text[j] == '\n';
		}
		if (found >= lines) {
			return found == lines ? text : "too many lines";
		}
		usleep(10000);
	}
	return "too few lines";
}

static void move_total(struct fake_host *fake, void *act, uint64_t before, uint64_t after)
{
	struct cuweir_event event = fake_event(after > before ? after - before : before - after,
					       before, after);
	fake->totals[0][CUWEIR_KIND_DEVICE].current = after;
	if (after > before) {
		policy->on_alloc_threshold(act, after, &event);
	} else {
		policy->on_dealloc_threshold(act, after, &event);
	}
}

static void test_once_for_each_crossing(void **state)
{
	struct fake_host fake;
	size_t count = 0;
	void *act = open_act(&fake, "total=100M,hysteresis=10%%,file=%s");
	assert_int_equal(policy->get_alloc_thresholds(act, &count)[0], 100 * MIB);
	assert_int_equal(count, 1);
	assert_int_equal(policy->get_dealloc_thresholds(act, &count)[0], 90 * MIB);
	move_total(&fake, act, 0, 100 * MIB);
	move_total(&fake, act, 100 * MIB, 95 * MIB); /* not below the hysteresis */
	move_total(&fake, act, 95 * MIB, 110 * MIB);
	const char *text = file_text(1);
	assert_non_null(strstr(text, " what=over pid="));
	assert_non_null(strstr(text, " device=0 kind=device mark=104857600 value=104857600 "
				     "call=cudaMalloc size=104857600 thread="));
	move_total(&fake, act, 110 * MIB, 89 * MIB);
	move_total(&fake, act, 89 * MIB, 101 * MIB);
	text = file_text(3);
	assert_non_null(strstr(text, " what=under pid="));
	assert_non_null(strstr(text, " mark=94371840 value=93323264 "));
	/* Told in the wrong order, the total decides: it is not left over for ever. */
	move_total(&fake, act, 101 * MIB, 1);
	struct cuweir_event late = fake_event(MIB, 0, 200 * MIB);
	policy->on_alloc_threshold(act, 200 * MIB, &late);
	file_text(6);
	move_total(&fake, act, 1, 150 * MIB);
	file_text(7);
}

static void test_percent_and_kinds(void **state)
{
	struct fake_host fake;
	size_t count = 0;
	void *act = open_act(&fake, "total=50%%,kinds=managed,file=%s");
	const uint64_t *marks = policy->get_alloc_thresholds(act, &count);
	assert_int_equal(count, 2); /* one of each device */
	assert_int_equal(marks[0], 500 * MIB);
	assert_int_equal(marks[1], 1000 * MIB);
	struct cuweir_event event = fake_event(MIB, 0, 600 * MIB);
	policy->on_alloc_threshold(act, 600 * MIB, &event); /* another kind */
	event.kind = CUWEIR_KIND_MANAGED;
	event.device = 1;
	policy->on_alloc_threshold(act, 600 * MIB, &event); /* not that device's */
	assert_int_equal(access(path, F_OK), -1);
	fake.totals[1][CUWEIR_KIND_MANAGED].current = 1000 * MIB;
	policy->on_alloc_threshold(act, 1000 * MIB, &event);
	assert_non_null(strstr(file_text(1), " device=1 kind=managed mark=1048576000 "));
}

static void test_free_memory(void **state)
{
	struct fake_host fake;
	void *act = open_act(&fake, "free=10%%,period=20ms,file=%s");
	struct cuweir_event event = fake_event(10 * MIB, 0, 0);
	driver.free_bytes = 111 * MIB;
	assert_int_equal(policy->admit(act, &event), CUWEIR_SUCCESS);
	assert_int_equal(driver.asked, 1);
	assert_int_equal(access(path, F_OK), -1);
	driver.free_bytes = 109 * MIB; /* 99 after it */
	policy->admit(act, &event);
	assert_int_equal(driver.asked, 1); /* not so soon */
	usleep(21000);
	event.flags = CUWEIR_EVENT_CAPTURING;
	policy->admit(act, &event);
	assert_int_equal(driver.asked, 1);
	event.flags = 0;
	policy->admit(act, &event);
	assert_int_equal(driver.asked, 2);
	assert_non_null(strstr(file_text(1), " what=low "));
	assert_non_null(strstr(file_text(1), " mark=104857600 value=103809024 "));
	usleep(21000);
	driver.free_bytes = 114 * MIB; /* not back by the hysteresis, 5 percent of it */
	policy->admit(act, &event);
	usleep(21000);
	driver.free_bytes = 115 * MIB;
	policy->admit(act, &event);
	assert_non_null(strstr(file_text(2), " what=enough "));
	/* Another device is current: the figures are not this one's. */
	usleep(21000);
	driver.device = 1;
	driver.free_bytes = 0;
	policy->admit(act, &event);
	file_text(2);
}

static void test_oom_debug_signal(void **state)
{
	struct fake_host fake;
	sigset_t usr2, pending;
	void *act = open_act(&fake, "oom=1,debug=1,signal=SIGUSR2,file=%s");
	struct cuweir_event event = fake_event(77, 5, 5);
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	sigprocmask(SIG_BLOCK, &usr2, NULL);
	event.status = 999;
	policy->on_alloc_failed(act, &event);
	assert_false(fake.debug);
	event.status = CUWEIR_ERROR_OUT_OF_MEMORY;
	policy->on_alloc_failed(act, &event);
	assert_true(fake.debug);
	sigpending(&pending);
	assert_int_equal(sigismember(&pending, SIGUSR2), 1);
	assert_non_null(strstr(file_text(1), " what=oom "));
	assert_non_null(strstr(file_text(1), " value=5 call=cudaMalloc size=77 "));
}

/* Neither a FIFO that nobody reads nor one that is full, nor a reader that goes, is felt. */
static void test_fifo(void **state)
{
	struct fake_host fake;
	char byte[65536] = { 0 };
	void *act = open_act(&fake, "oom=1,file=%s");
	struct cuweir_event event = fake_event(77, 5, 5);
	event.status = CUWEIR_ERROR_OUT_OF_MEMORY;
	assert_int_equal(mkfifo(path, 0600), 0);
	policy->on_alloc_failed(act, &event);
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	policy->on_alloc_failed(act, &event);
	assert_true(read(reader, byte, sizeof(byte)) > 100);
	assert_non_null(strstr(byte, " what=oom "));
	int writer = open(path, O_WRONLY | O_NONBLOCK);
	while (write(writer, byte, sizeof(byte)) > 0) {
	}
	policy->on_alloc_failed(act, &event);
	close(reader);
	close(writer);
	assert_int_equal(fake.line_count, 0);
	/* What was there when it opened has gone. */
	char gone[160];
	snprintf(gone, sizeof(gone), "%s.gone", path);
	assert_int_equal(mkdir(gone, 0700), 0);
	act = open_act(&fake, "oom=1,file=%s.gone/x");
	assert_int_equal(rmdir(gone), 0);
	policy->on_alloc_failed(act, &event);
	policy->on_alloc_failed(act, &event);
	assert_int_equal(fake.line_count, 1); /* told once */
	assert_non_null(strstr(fake.lines[0], "act: file= could not be written: "));
	assert_non_null(strstr(fake.lines[0], ".gone/x: No such file"));
	assert_string_equal(fake_open_refused(&fake, policy, "oom=1,file=/no/such/dir/x"),
			    "file=/no/such/dir/x: No such file or directory; want a file that can "
			    "be written, in a directory that exists");
	/* From where the program was started. */
	fake_host_init(&fake);
	fake.host.directory = "/no/such";
	assert_non_null(strstr(fake_open_refused(&fake, policy, "oom=1,file=x"),
			       "file=/no/such/x: No such file"));
}

static volatile sig_atomic_t children_heard;

static void hear_child(int signal)
{
	children_heard++;
}

static void test_command(void **state)
{
	struct fake_host fake;
	struct sigaction hear = { .sa_handler = hear_child };
	sigaction(SIGCHLD, &hear, NULL);
	setenv("LD_PRELOAD", "/x/libcuweir.so libc.so.6", 1);
	int leak = open("/dev/null", O_RDONLY);
	void *act = open_act(&fake,
			     "oom=1,run=exec >>%s; echo $ACT_WHAT,$ACT_SIZE,$ACT_DEVICE "
			     "$LD_PRELOAD $PPID; ls /proc/self/fd | wc -l; "
			     "sleep 1; echo end");
	unsetenv("LD_PRELOAD");
	struct cuweir_event event = fake_event(77, 5, 5);
	event.status = CUWEIR_ERROR_OUT_OF_MEMORY;
	errno = 0;
	for (int i = 0; i < 5; i++) {
		policy->on_alloc_failed(act, &event); /* one a second at most */
	}
	const char *text = file_text(2);
	/* It runs, and is nobody's child of ours: nothing to wait for, no signal. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
	if (strncmp(text, "oom,77,0 libc.so.6 ", 19) != 0) {
		fail_msg("%s", text);
	}
	assert_int_not_equal(atoi(text + 19), (int)getpid());
	/* 0, 1, 2, and the directory itself; the redirected output takes no other. */
	assert_int_equal(atoi(strchr(text, '\n') + 1), 4);
	close(leak);
	assert_non_null(strstr(file_text(3), "end\n"));
	assert_int_equal(children_heard, 0);
	assert_int_equal(fake.line_count, 0);
	sigset_t mask;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	assert_int_equal(sigismember(&mask, SIGTERM), 0);
}

/* A copy of the environment that is not there (any more): clearenv() leaves a NULL. */
static void test_no_environment(void **state)
{
	struct fake_host fake;
	char **before = environ;
	environ = NULL;
	void *act = open_act(&fake, "oom=1,run=echo $ACT_WHAT >>%s");
	struct cuweir_event event = fake_event(77, 5, 5);
	event.status = CUWEIR_ERROR_OUT_OF_MEMORY;
	policy->on_alloc_failed(act, &event);
	environ = before;
	assert_string_equal(file_text(1), "oom\n");
}

/*
 * The program's input and output stay its own where descriptors have run out: the command reads
 * nothing, and where it could not be kept from them it does not run, which is told.
 */
static void run_without_descriptors(rlim_t limit)
{
	struct fake_host fake;
	char byte;
	int ends[2];
	struct cuweir_event event = fake_event(77, 5, 5);
	event.status = CUWEIR_ERROR_OUT_OF_MEMORY;
	void *act = open_act(&fake, "oom=1,run=cat >>%s; echo end >>%s");
	if (pipe(ends) != 0 || write(ends[1], "x\n", 2) != 2 || dup2(ends[0], STDIN_FILENO) != 0) {
		_exit(2);
	}
	struct rlimit few = { limit, limit };
	setrlimit(RLIMIT_NOFILE, &few);
	while (dup(STDERR_FILENO) >= 0) {
	}
	policy->on_alloc_failed(act, &event);
	if (limit == 0) {
		_exit(fake.line_count == 1 &&
				      strstr(fake.lines[0], "run= could not be started: ") != NULL ?
			      0 : 3);
	}
	_exit(fake.line_count == 0 && read(STDIN_FILENO, &byte, 1) == 1 && byte == 'x' ? 0 : 4);
}

static void test_no_descriptors(void **state)
{
	static const rlim_t limits[] = { 40, 0 };
	/* Valgrind makes a process of its own of what shares the memory here, and can tell nothing. */
	size_t count = getenv("CUWEIR_TEST_VALGRIND") != NULL ? 1 : 2;
	for (size_t i = 0; i < count; i++) {
		int status;
		pid_t child = fork();
		if (child == 0) {
			run_without_descriptors(limits[i]);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		if (limits[i] != 0) {
			assert_string_equal(file_text(1), "end\n");
		}
	}
}

/* The module's calls come here, too. */
static bool no_memory;

char *strdup(const char *text)
{
	char *copy = no_memory ? NULL : malloc(strlen(text) + 1);
	return copy != NULL ? strcpy(copy, text) : NULL;
}

static void test_no_memory(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	no_memory = true;
	const char *run = fake_open_refused(&fake, policy, "oom=1,run=true");
	assert_string_equal(run, "no memory for its state");
	assert_string_equal(fake_open_refused(&fake, policy, "oom=1,file=/tmp/x"), run);
	no_memory = false;
}

static void test_refusals(void **state)
{
	static const char *const wrong[][2] = {
		{ "", "nothing to wait for: want total=, free= or oom=1" },
		{ "total=8G", "nothing to do: want file=, run=, signal= or debug=1 with it" },
		{ "total=0,debug=1", "want total=SIZE or total=PERCENT%" },
		{ "total=101%,debug=1", "argument 1, \"total=101%\": want total=SIZE" },
		{ "free=x", "want free=SIZE" },
		{ "oom=2", "want oom=0 or oom=1" },
		{ "signal=FOO", "want signal=NAME" },
		{ "signal=USR1:0", "want signal=NAME" },
		{ "signal=65", "want signal=NAME" },
		{ "hysteresis=5X", "want hysteresis=SIZE" },
		{ "period=1", "want period=TIME" },
		{ "device=64", "want device=N" },
		{ "file=", "want file=NAME" },
		{ "run=", "want run=COMMAND" },
		{ "oom=1,exec=x", "argument 2, \"exec=x\": want total=, free=, oom=" },
	};
	struct fake_host fake;
	fake_host_init(&fake);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *reason = fake_open_refused(&fake, policy, wrong[i][0]);
		if (strstr(reason, wrong[i][1]) == NULL) {
			fail_msg("%s: %s", wrong[i][0], reason);
		}
	}
}

static int set_up(void **state)
{
	if (mkdtemp(directory) == NULL) {
		return -1;
	}
	snprintf(path, sizeof(path), "%s/lines", directory);
	return 0;
}

static int tear_down(void **state)
{
	unlink(path);
	return rmdir(directory);
}

TEST_MAIN_WITH(set_up, tear_down,
	cmocka_unit_test(test_once_for_each_crossing),
	cmocka_unit_test(test_percent_and_kinds),
	cmocka_unit_test(test_free_memory),
	cmocka_unit_test(test_oom_debug_signal),
	cmocka_unit_test(test_fifo),
	cmocka_unit_test(test_command),
	cmocka_unit_test(test_no_environment),
	cmocka_unit_test(test_no_descriptors),
	cmocka_unit_test(test_no_memory),
	cmocka_unit_test(test_refusals));
