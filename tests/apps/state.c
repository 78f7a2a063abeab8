/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process has that a guest could disturb: state WAY prints it before the first CUDA
 * call, after CUDA has been used, and in an exit handler. WAY as for scenario.c.
 */
#include "apps.h"
#include "scenario.h"

#include <dirent.h>
#include <locale.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

/* Each entry of the directory, and what it leads to; without the one that reads it. */
static void print_links(const char *directory)
{
	DIR *opened = opendir(directory);

	REQUIRE(opened != NULL);
	for (struct dirent *entry; (entry = readdir(opened)) != NULL;) {
		char path[512];
		char target[256] = "";

		if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(opened)) {
			continue;
		}
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		/* Files of the test itself have names that change. */
		if (readlink(path, target, sizeof(target) - 1) > 0 &&
		    strncmp(target, "/tmp/", 5) == 0) {
			target[5] = '\0';
		}
		printf(" %s=%s", entry->d_name, target);
	}
	printf("\n");
	closedir(opened);
}

static int count_threads(void)
{
	DIR *opened = opendir("/proc/self/task");
	int count = 0;

	REQUIRE(opened != NULL);
	for (struct dirent *entry; (entry = readdir(opened)) != NULL;) {
		count += entry->d_name[0] != '.';
	}
	closedir(opened);
	return count;
}

static void print_signals(void)
{
	sigset_t blocked, pending;
	stack_t stack;

	CHECK(sigprocmask(SIG_SETMASK, NULL, &blocked));
	CHECK(sigpending(&pending));
	CHECK(sigaltstack(NULL, &stack));
	for (int number = 1; number < NSIG; number++) {
		struct sigaction action;

		if (sigaction(number, NULL, &action) == 0 &&
		    (action.sa_handler != SIG_DFL || sigismember(&blocked, number) == 1 ||
		     sigismember(&pending, number) == 1)) {
			printf(" %d", number);
		}
	}
	printf(" stack %d\n", stack.ss_flags);
}

static void print_limits(void)
{
	for (int resource = 0; resource < RLIMIT_NLIMITS; resource++) {
		struct rlimit limit;

		CHECK(getrlimit((__rlimit_resource_t)resource, &limit));
		printf(" %llu/%llu", (unsigned long long)limit.rlim_cur,
		       (unsigned long long)limit.rlim_max);
	}
	printf("\n");
}

static void print_state(const char *when)
{
	struct itimerval timer;
	char name[17] = "";
	char directory[512];
	mode_t mask = umask(0);

	umask(mask);
	CHECK(getitimer(ITIMER_REAL, &timer));
	CHECK(prctl(PR_GET_NAME, name));
	printf("%s: umask %o threads %d name %s timer %d locale %s directory %s\n", when,
	       (unsigned int)mask, count_threads(), name, timer.it_interval.tv_sec != 0,
	       setlocale(LC_ALL, NULL), getcwd(directory, sizeof(directory)));
	printf("%s: files", when);
	print_links("/proc/self/fd");
	printf("%s: signals", when);
	print_signals();
	printf("%s: limits", when);
	print_limits();
	for (char **entry = environ; *entry != NULL; entry++) {
		if (strncmp(*entry, "LD_PRELOAD=", 11) != 0 &&
		    strncmp(*entry, "CUWEIR_", 7) != 0) {
			printf("%s: %s\n", when, *entry);
		}
	}
	fflush(stdout);
}

static void at_exit(void)
{
	print_state("exit");
}

int main(int argc, char **argv)
{
	unsigned long long p, h;
	size_t free_bytes, total_bytes;

	CHECK(atexit(at_exit));
	print_state("before");
	CHECK(way.start(argc > 1 ? argv[1] : "linked"));
	CHECK(way.alloc(&p, 8192));
	CHECK(way.alloc_host(&h, 8192));
	CHECK(way.info(&free_bytes, &total_bytes));
	CHECK(way.free(p));
	CHECK(way.free_host(h));
	print_state("after");
	return 0;
}
