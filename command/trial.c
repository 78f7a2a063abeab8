/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy is opened once on trial before the program depends on it: by the shim itself, so
 * that what is said is what the program would have been told, in a process that ends at once.
 * CUWEIR_TRIAL=1 tells policies, by CUWEIR_HOST_TRIAL, to leave nothing behind.
 */
#include "command.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS_TO_OPEN = 30, NOT_PRELOADED = 3, STRICT_STATUS = 127 };

_Noreturn void be_tried(void)
{
	/* Any function of cuweir.h opens the policies. */
	void *symbol = dlsym(RTLD_DEFAULT, "cuweir_hears_cuda");

	if (symbol == NULL) {
		_exit(NOT_PRELOADED);
	}
	(void)((bool (*)(void))symbol)();
	_exit(0);
}

/* Out of the way of the standard files, of which the caller may have given us few. */
static int above_standard_files(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static void become_trial(int writing_end)
{
	static const char *const left_out[] = {
		/* The command has looked at these itself, or they are for the end. */
		"CUWEIR_LOG", "CUWEIR_RESULT", "CUWEIR_RUN", "CUWEIR_ONLY", "CUWEIR_SKIP",
	};
	const char *verbose = getenv("CUWEIR_VERBOSE");
	int complaints = above_standard_files(writing_end);
	int nothing = above_standard_files(open("/dev/null", O_RDWR));
	char self[PATH_SIZE];

	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++) {
		unsetenv(left_out[i]);
	}
	/* What would silence a complaint; one that is wrong is complained of. */
	if (verbose != NULL && verbose[0] >= '0' && verbose[0] <= '3' && verbose[1] == '\0') {
		unsetenv("CUWEIR_VERBOSE");
	}
	setenv("CUWEIR_TRIAL", "1", 1);
	dup2(nothing, STDIN_FILENO);
	dup2(nothing, STDOUT_FILENO);
	dup2(complaints, STDERR_FILENO);
	alarm(SECONDS_TO_OPEN);
	find_self(self);
	execl(self, "cuweir", TRIAL_ARGUMENT, (char *)NULL);
	_exit(NOT_PRELOADED);
}

static void read_all(int fd, char *buffer, size_t size)
{
	size_t length = 0;
	ssize_t got;
	char rest[256];

	while ((got = read(fd, buffer + length, size - 1 - length)) > 0 ||
	       (got < 0 && errno == EINTR)) {
		length += got > 0 ? (size_t)got : 0;
		if (length == size - 1) {
			break;
		}
	}
	buffer[length] = '\0';
	while (read(fd, rest, sizeof(rest)) > 0) {
	}
}

/* Cuts `text` down to its first line of the shim's, without who says it. */
static const char *first_complaint(char *text)
{
	char *line = strstr(text, "cuweir[");
	char *begin = line != NULL ? strstr(line, "]: ") : NULL;

	if (begin == NULL) {
		return NULL;
	}
	begin += strlen("]: ");
	begin[strcspn(begin, "\n")] = '\0';
	return begin;
}

/* Of an end that is not the shim's own refusal. */
static const char *strange_end(char *buffer, size_t size, int status)
{
	static const char by_loader[] = "libcuweir.so is not preloaded: ";
	const char *chain = getenv("CUWEIR_POLICY");
	char said[512];

	snprintf(said, sizeof(said), "%.*s", (int)strcspn(buffer, "\n"), buffer);
	chain = chain != NULL ? chain : "none";
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
		snprintf(buffer, size, "a policy of \"%s\" has not opened within %d s", chain,
			 SECONDS_TO_OPEN);
	} else if (WIFSIGNALED(status)) {
		snprintf(buffer, size, "a policy of \"%s\" ends the process by signal %d (%s)",
			 chain, WTERMSIG(status), strsignal(WTERMSIG(status)));
	} else if (WEXITSTATUS(status) == NOT_PRELOADED) {
		snprintf(buffer, size, "%s%s", by_loader, said);
	} else {
		snprintf(buffer, size, "a policy of \"%s\" ends the process with status %d", chain,
			 WEXITSTATUS(status));
	}
	return buffer;
}

/* Its output in the buffer, and its end; false, with errno, where there was none, or it is lost. */
static bool run_trial(char *buffer, size_t size, int *ret_status)
{
	int ends[2];
	pid_t child;
	pid_t ended;
	child_handler *before;

	if (pipe2(ends, O_CLOEXEC) != 0) {
		return false;
	}
	before = hear_children();
	child = fork();
	if (child == 0) {
		signal(SIGCHLD, before);
		become_trial(ends[1]);
	}
	close(ends[1]);
	if (child > 0) {
		read_all(ends[0], buffer, size);
	}
	close(ends[0]);
	ended = child > 0 ? wait_for(child, ret_status) : -1;
	signal(SIGCHLD, before);
	return ended > 0;
}

const char *try_settings(char *buffer, size_t size)
{
	const char *complaint;
	int status;

	if (!run_trial(buffer, size, &status)) {
		snprintf(buffer, size, "cannot try the settings in a process of their own: %s",
			 strerror(errno));
		return buffer;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		return NULL;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == STRICT_STATUS &&
	    (complaint = first_complaint(buffer)) != NULL) {
		return complaint;
	}
	return strange_end(buffer, size, status);
}
