/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"

static volatile sig_atomic_t child;

static void forward(int signal_number)
{
	if (child > 0) {
		kill((pid_t)child, signal_number);
	}
}

static void forward_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	struct sigaction action = { .sa_handler = forward, .sa_flags = SA_RESTART };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigaction(signals[i], &action, NULL);
	}
}

/* Each process that the shim was in has added a line "live N refused N". */
static unsigned long long findings(const char *file)
{
	FILE *stream = fopen(file, "r");
	unsigned long long sum = 0;
	unsigned long long live;
	unsigned long long refused;

	if (stream == NULL) {
		return 0;
	}
	while (fscanf(stream, "live %llu refused %llu\n", &live, &refused) == 2) {
		sum += live + refused;
	}
	fclose(stream);
	return sum;
}

/* The program's end as our own, by the same signal where it was one. */
static int end_as(int status)
{
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	return WEXITSTATUS(status);
}

int watch(char **argv, const char *path, int exitcode)
{
	char file[] = "/tmp/cuweir-result-XXXXXX";
	int fd = mkstemp(file);
	unsigned long long found;
	int status;

	if (fd < 0) {
		refuse("--error-exitcode: cannot make a file in /tmp: %s", strerror(errno));
	}
	close(fd);
	setenv("CUWEIR_RESULT", file, 1);
	child = fork();
	if (child < 0) {
		refuse("cannot fork: %s", strerror(errno));
	}
	if (child == 0) {
		execv(path, argv);
		complain("%s: %s", path, strerror(errno));
		_exit(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE);
	}
	forward_signals();
	while (waitpid((pid_t)child, &status, 0) < 0 && errno == EINTR) {
	}
	found = findings(file);
	unlink(file);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && found > 0) {
		return exitcode;
	}
	return end_as(status);
}
