/* SPDX-License-Identifier: Apache-2.0 */
#include "act_run.h"

#include "../shim/quiet_write.h"
#include "old_glibc.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK_SIZE (64 * 1024)
#define OWN_NAME "libcuweir.so"

struct start {
	char **arguments;
	char **environment;
	char *stack; /* of the command's process */
	sigset_t signals;
	int error;
};

static bool is_separator(char c)
{
	return c == ' ' || c == ':';
}

/* "LD_PRELOAD=..." without the elements that are cuweir; NULL where nothing is left. */
static char *without_own(const char *entry)
{
	size_t used = strlen("LD_PRELOAD=");
	char *copy = malloc(strlen(entry) + 2);
	if (copy == NULL) {
		return NULL;
	}
	memcpy(copy, entry, used);
	for (const char *at = entry + used; *at != '\0';) {
		size_t length = 0;
		size_t name = 0;
		while (at[length] != '\0' && !is_separator(at[length])) {
			length++;
			name = at[length - 1] == '/' ? length : name;
		}
		if (length > 0 && strncmp(at + name, OWN_NAME, strlen(OWN_NAME)) != 0) {
			memcpy(copy + used, at, length);
			used += length;
			copy[used++] = ':';
		}
		at += length;
		at += *at != '\0';
	}
	if (copy[used - 1] == '=') {
		free(copy);
		return NULL;
	}
	copy[used - 1] = '\0';
	return copy;
}

char **act_environment(void)
{
	size_t count = 0;
	size_t used = 0;
	while (environ != NULL && environ[count] != NULL) { /* NULL after clearenv() */
		count++;
	}
	char **copy = calloc(count + ACT_FACTS + 1, sizeof(*copy));
	for (size_t i = 0; copy != NULL && i < count; i++) {
		char *entry = strncmp(environ[i], "LD_PRELOAD=", 11) == 0 ?
				      without_own(environ[i]) :
				      strdup(environ[i]);
		if (entry != NULL) {
			copy[used++] = entry;
		}
	}
	return copy;
}

/* Everything above stderr is the program's: its sockets must not live on in the command. */
static void close_others(void)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0) == 0) {
		return;
	}
#endif
	for (int fd = STDERR_FILENO + 1; fd < 4096; fd++) {
		close(fd);
	}
}

/*
 * What it has open is stderr, and nothing to read. The program's files go first, so that there
 * are descriptors to be had. False, with errno: it would have the program's input or output.
 */
static bool set_files(void)
{
	close_others();
	close(STDIN_FILENO);
	if (open("/dev/null", O_RDWR) != STDIN_FILENO) {
		return false;
	}
	/* A program without a stderr has nobody to tell. */
	if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
		return dup2(STDIN_FILENO, STDOUT_FILENO) >= 0 &&
		       dup2(STDIN_FILENO, STDERR_FILENO) >= 0;
	}
	return true;
}

/* Becomes the command. Until then it borrows the memory of the program: no malloc, no lock. */
static int be_command(void *argument)
{
	struct start *start = argument;
	struct sigaction usual = { .sa_handler = SIG_DFL };
	for (int signal = 1; signal < NSIG; signal++) {
		sigaction(signal, &usual, NULL);
	}
	setsid();
	if (!set_files()) {
		start->error = errno;
		_exit(127);
	}
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve("/bin/sh", start->arguments, start->environment);
	start->error = errno;
	_exit(127);
}

/* The one between, whose end makes the command somebody else's child. */
static int start_command(void *argument)
{
	struct start *start = argument;
	if (clone(be_command, start->stack, CLONE_VM | CLONE_VFORK, start) < 0) {
		start->error = errno;
	}
	_exit(0);
}

int act_run(const char *command, char **environment, const struct act_facts *facts)
{
	char shell[] = "sh";
	char option[] = "-c";
	char *arguments[] = { shell, option, (char *)(uintptr_t)command, NULL };
	size_t count = 0;
	while (environment[count] != NULL) {
		count++;
	}
	char **entries = calloc(count + ACT_FACTS + 1, sizeof(*entries));
	if (entries == NULL) {
		return ENOMEM;
	}
	memcpy(entries, environment, count * sizeof(*entries));
	for (size_t i = 0; i < facts->count; i++) {
		entries[count + i] = (char *)(uintptr_t)facts->entries[i];
	}
	char *stacks = mmap(NULL, 2 * STACK_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stacks == MAP_FAILED) {
		free(entries);
		return ENOMEM;
	}
	struct start start = { arguments, entries, stacks + 2 * STACK_SIZE, { { 0 } }, 0 };
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &start.signals);
	/*
	 * Without a signal for its end: the program's SIGCHLD handler hears nothing, and its
	 * wait() does not find a child that it does not know. With CLONE_VFORK this thread goes on
	 * when the one between has ended, which does not take long.
	 */
	pid_t between = clone(start_command, stacks + STACK_SIZE, CLONE_VM | CLONE_VFORK, &start);
	if (between < 0) {
		start.error = errno;
	} else {
		while (waitpid(between, NULL, (int)__WCLONE) < 0 && errno == EINTR) {
		}
	}
	pthread_sigmask(SIG_SETMASK, &start.signals, NULL);
	munmap(stacks, 2 * STACK_SIZE);
	free(entries);
	return start.error;
}

int act_write(const char *path, const char *line, size_t length)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
		      0600);
	if (fd < 0) {
		return errno;
	}
	ssize_t written = quiet_write(fd, line, length);
	int error = written == (ssize_t)length ? 0 : written < 0 ? errno : ENOSPC;
	close(fd);
	return error;
}
