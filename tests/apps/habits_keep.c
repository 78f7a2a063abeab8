/* SPDX-License-Identifier: Apache-2.0 */
/* What of a thread and of a process must be as it was before a CUDA call. */
#include "apps.h"
#include "habits.h"
#include "scenario.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

const char *habits_how;

static int entries_of(const char *directory)
{
	DIR *opened = opendir(directory);
	int count = 0;

	REQUIRE(opened != NULL);
	while (readdir(opened) != NULL) {
		count++;
	}
	closedir(opened);
	return count;
}

void print_process(void)
{
	unsigned long handlers = 0;
	mode_t mask = umask(0);
	sigset_t blocked;

	umask(mask);
	for (int i = 1; i < NSIG; i++) {
		struct sigaction action;

		if (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL) {
			handlers = handlers * 31 + (unsigned long)i;
		}
	}
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	printf("threads %d fds %d handlers %lu blocked %d%d umask %o\n",
	       entries_of("/proc/self/task"), entries_of("/proc/self/fd"), handlers,
	       sigismember(&blocked, SIGUSR1), sigismember(&blocked, SIGUSR2), (unsigned)mask);
}

static void nothing(int number)
{
	(void)number;
}

void keep_process(void)
{
	unsigned long long p;
	sigset_t some;

	umask(027);
	signal(SIGUSR1, nothing);
	sigemptyset(&some);
	sigaddset(&some, SIGUSR2);
	sigprocmask(SIG_BLOCK, &some, NULL);
	print_process();
	CHECK(way.start(habits_how));
	CHECK(way.alloc(&p, 8192));
	CHECK(way.free(p));
	print_process();
}

/* Calls once with errno set, and says what has become of it. */
#define WITH_ERRNO(call)                                                                           \
	do {                                                                                       \
		errno = 4321;                                                                      \
		status = (int)(call);                                                              \
		saved = errno;                                                                     \
		printf("%s: %d, errno %d\n", #call, status, saved);                                \
	} while (0)

void keep_errno(void)
{
	struct stream s = { NULL, false };
	unsigned long long p, q, host;
	size_t pitch, free_bytes, total_bytes;
	int status, saved;

	WITH_ERRNO(way.start(habits_how));
	WITH_ERRNO(way.alloc(&p, 8192));
	WITH_ERRNO(way.alloc(&q, (size_t)1 << 60));
	WITH_ERRNO(way.alloc(&q, 0) != 99);
	WITH_ERRNO(way.free(p));
	WITH_ERRNO(way.alloc_managed(&p, 8192));
	WITH_ERRNO(way.free(p));
	WITH_ERRNO(way.alloc_pitch(&p, &pitch, 100, 10));
	WITH_ERRNO(way.free(p));
	WITH_ERRNO(way.alloc_host(&host, 8192));
	WITH_ERRNO(way.free_host(host));
	WITH_ERRNO(way.host_alloc(&host, 8192));
	WITH_ERRNO(way.free_host(host));
	WITH_ERRNO(way.stream_create(&s.handle));
	WITH_ERRNO(way.alloc_async(&p, 8192, s));
	WITH_ERRNO(way.free_async(p, s));
	WITH_ERRNO(way.stream_destroy(s.handle));
	WITH_ERRNO(way.info(&free_bytes, &total_bytes));
	WITH_ERRNO(way.synchronize());
	WITH_ERRNO(way.device_reset(0));
}

static void fail_to_look_up(void)
{
	(void)dlerror();
	REQUIRE(dlsym(RTLD_DEFAULT, "no_such_symbol_at_all") == NULL);
}

/* "pending": the program's own error; "none"; or somebody else's. */
static void say_dlerror(const char *when)
{
	const char *error = dlerror();

	printf("%s: %s\n", when, error == NULL ? "none"
				 : strstr(error, "no_such_symbol_at_all") != NULL ? "pending"
										  : error);
}

void keep_dlerror(void)
{
	unsigned long long p;

	fail_to_look_up();
	CHECK(way.start(habits_how));
	say_dlerror("after the first call");
	fail_to_look_up();
	CHECK(way.alloc(&p, 8192));
	say_dlerror("after an allocation");
	fail_to_look_up();
	REQUIRE(way.alloc(&p, (size_t)1 << 60) == 2);
	say_dlerror("after a failure");
	CHECK(way.alloc(&p, 8192));
	fail_to_look_up();
	CHECK(way.free(p));
	say_dlerror("after a free");
	CHECK(way.free(0));
	say_dlerror("without one");
}

static volatile sig_atomic_t ticks;

static void tick(int number)
{
	(void)number;
	ticks++;
}

/* A timer that interrupts every system call; SA_RESTART is not set. */
void under_signals(void)
{
	struct itimerval period = { { 0, 50 }, { 0, 50 } };
	struct itimerval never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = tick };
	unsigned long long p;

	REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
	REQUIRE(setitimer(ITIMER_REAL, &period, NULL) == 0);
	CHECK(way.start(habits_how));
	for (int i = 0; i < 3000; i++) {
		CHECK(way.alloc(&p, 8192));
		CHECK(way.free(p));
	}
	REQUIRE(setitimer(ITIMER_REAL, &never, NULL) == 0);
	printf("ticks %s\n", ticks > 10 ? "many" : "few");
}
