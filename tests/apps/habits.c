/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Habits of programs that a preloaded object may be caught out by: habits WAY HABIT, for WAY
 * see scenario.c, for HABIT the table at the end. Each prints what it saw.
 */
#include "apps.h"
#include "habits.h"
#include "scenario.h"

#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *how;

static unsigned long long take(size_t size)
{
	unsigned long long p = 0;

	CHECK(way.alloc(&p, size));
	return p;
}

/* ---- the first call ------------------------------------------------------------------- */

static pthread_barrier_t gate;

static void *first_call(void *argument)
{
	unsigned long long p;

	(void)argument;
	pthread_barrier_wait(&gate);
	CHECK(way.start(how));
	p = take(8192);
	CHECK(way.free(p));
	return NULL;
}

/* Eight threads whose first CUDA calls come at the same time. */
static void crowd(void)
{
	pthread_t threads[8];

	CHECK(pthread_barrier_init(&gate, NULL, 8));
	for (int i = 0; i < 8; i++) {
		CHECK(pthread_create(&threads[i], NULL, first_call, NULL));
	}
	for (int i = 0; i < 8; i++) {
		CHECK(pthread_join(threads[i], NULL));
	}
}

/* Looks up, initialises, counts devices, and needs no memory. */
static void idle(void)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
	int (*get)(const char *, void **, int, unsigned long long, void *) = NULL;
	int (*init)(unsigned int) = NULL;
	int (*count)(int *) = NULL;
	int devices = -1;
	void *found;

	REQUIRE(libcuda != NULL);
	for (int i = 0; i < 1000; i++) {
		REQUIRE(dlsym(libcuda, "cuMemAlloc_v2") != NULL);
		REQUIRE(dlsym(libcuda, "cuNoSuchThing") == NULL);
		*(void **)&get = dlsym(libcuda, "cuGetProcAddress_v2");
		REQUIRE(get("cuMemFree", &found, 12000, 0, NULL) == 0 && found != NULL);
	}
	*(void **)&init = dlsym(libcuda, "cuInit");
	*(void **)&count = dlsym(libcuda, "cuDeviceGetCount");
	CHECK(init(0));
	CHECK(count(&devices));
	printf("devices %d\n", devices);
	print_process();
}

/* What setproctitle does: the memory of the environment becomes something else. */
static void overwrite_environment(void)
{
	for (char **entry = environ; *entry != NULL; entry++) {
		memset(*entry, 'x', strlen(*entry));
	}
	CHECK(way.start(how));
	CHECK(way.free(take(8192)));
}

/* ---- the end ------------------------------------------------------------------------------ */

static unsigned long long left[3];

static void at_exit_first(void)
{
	left[0] = take(1024);
	CHECK(way.free(left[1]));
	CHECK(way.free(left[2]));
	printf("handler from before the first call\n");
}

static void at_exit_second(void)
{
	left[1] = take(2048);
	printf("handler from after the first call\n");
}

static void in_library_destructor(void)
{
	CHECK(way.free(left[0]));
	left[2] = take(4096);
	printf("destructor of a library\n");
	print_truth();
}

static void exit_handlers(void)
{
	habits_at_unload = in_library_destructor;
	REQUIRE(atexit(at_exit_first) == 0);
	CHECK(way.start(how));
	left[2] = take(512);
	REQUIRE(atexit(at_exit_second) == 0);
}

static void first_call_at_exit(void)
{
	CHECK(way.start(how));
	CHECK(way.free(take(8192)));
	printf("first call at exit\n");
	fflush(stdout);
}

static void late_first_call(void)
{
	REQUIRE(atexit(first_call_at_exit) == 0);
}

static void last_first_call(void)
{
	habits_at_unload = first_call_at_exit;
}

/* ---- children ------------------------------------------------------------------------------ */

static void *keep_allocating(void *argument)
{
	const volatile bool *stop = argument;
	unsigned int pairs = 0;

	CHECK(way.device(0));
	while (!*stop) {
		CHECK(way.free(take(8192)));
		/* The books' locks are often held, and the children get their turns. */
		if (++pairs % 64 == 0) {
			usleep(200);
		}
	}
	return NULL;
}

static void fork_many(void)
{
	volatile bool stop = false;
	unsigned long long p = 0;
	pthread_t threads[4];
	int answers = 0;

	CHECK(way.start(how));
	for (int i = 0; i < 4; i++) {
		CHECK(pthread_create(&threads[i], NULL, keep_allocating, (void *)&stop));
	}
	for (int i = 0; i < 1000; i++) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			/* CUDA does not work in a child of a process that used it. */
			exit(way.alloc(&p, 8192) == 3 ? 33 : 1);
		}
		REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
		answers += WIFEXITED(status) && WEXITSTATUS(status) == 33;
	}
	stop = true;
	for (int i = 0; i < 4; i++) {
		CHECK(pthread_join(threads[i], NULL));
	}
	printf("children %d\n", answers);
}

static int wait_for(pid_t child)
{
	int status;

	REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void spawn_children(void)
{
	char *arguments[] = { (char *)"sh", (char *)"-c", (char *)"exit 3", NULL };
	unsigned long long p;
	FILE *pipe;
	pid_t child;

	CHECK(way.start(how));
	p = take(8192);
	child = vfork();
	if (child == 0) {
		execv("/bin/sh", arguments);
		_exit(99);
	}
	printf("vfork %d\n", wait_for(child));
	REQUIRE(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
	printf("posix_spawn %d\n", wait_for(child));
	printf("system %d\n", WEXITSTATUS(system("exit 4")));
	pipe = popen("exit 5", "r");
	REQUIRE(pipe != NULL);
	printf("popen %d\n", WEXITSTATUS(pclose(pipe)));
	CHECK(way.free(p));
	print_truth();
}

/* A child made behind the C library's back ends by exit(), not by _exit(). */
static void raw_child(void)
{
	pid_t child;

	CHECK(way.start(how));
	(void)take(8192);
	fflush(stdout);
	child = _Fork();
	if (child == 0) {
		exit(7);
	}
	printf("child %d\n", wait_for(child));
}

/* ---- failures ------------------------------------------------------------------------------ */

/* As a caching allocator does: fails, frees of its own, tries again. */
static void mend_own_failures(void)
{
	unsigned long long p;

	CHECK(way.start(how));
	for (int i = 0; i < 1000; i++) {
		unsigned long long q = take(700 << 10);

		REQUIRE(way.alloc(&p, 700 << 10) == 2);
		CHECK(way.free(q));
		CHECK(way.free(take(700 << 10)));
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} habits[] = {
	{ "crowd", crowd },
	{ "idle", idle },
	{ "overwrite", overwrite_environment },
	{ "exit", exit_handlers },
	{ "late", late_first_call },
	{ "last", last_first_call },
	{ "fork", fork_many },
	{ "spawn", spawn_children },
	{ "raw", raw_child },
	{ "mend", mend_own_failures },
	{ "errno", keep_errno },
	{ "dlerror", keep_dlerror },
	{ "process", keep_process },
	{ "signals", under_signals },
};

int main(int argc, char **argv)
{
	if (argc < 3) {
		scenario_die("usage", "habits WAY HABIT");
	}
	how = habits_how = argv[1];
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++) {
		if (strcmp(habits[i].name, argv[2]) == 0) {
			habits[i].run();
			fflush(stdout);
			return 0;
		}
	}
	scenario_die("no such habit", argv[2]);
}
