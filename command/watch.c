/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2,
				 SIGALRM, SIGWINCH, SIGCONT };

static volatile sig_atomic_t child;

/* What the terminal sends goes to the program anyway, which is in the same group. */
static void forward(int number, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	(void)context;
	if (child > 0 && info->si_code != SI_KERNEL) {
		kill((pid_t)child, number);
	}
	errno = saved_errno;
}

/* With all of them blocked until both processes are ready, so that none is lost. */
static void block_signals(sigset_t *ret_before)
{
	sigset_t all;

	sigemptyset(&all);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++) {
		sigaddset(&all, forwarded[i]);
	}
	sigprocmask(SIG_BLOCK, &all, ret_before);
}

/* An ignored one stays so: nohup(1) means the program, too. */
static void forward_signals(void)
{
	struct sigaction action = { .sa_sigaction = forward, .sa_flags = SA_RESTART | SA_SIGINFO };
	struct sigaction before;

	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++) {
		if (sigaction(forwarded[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
			sigaction(forwarded[i], &action, NULL);
		}
	}
}

/* Each process that the shim was in has added a line "live N refused N". */
static unsigned long long findings(const char *file)
{
	FILE *stream = fopen(file, "re");
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

/* The program's end as our own, by the same signal where it was one; one core is enough. */
static int end_as(int status)
{
	const struct rlimit none = { 0, 0 };

	if (WIFSIGNALED(status)) {
		setrlimit(RLIMIT_CORE, &none);
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
	sigset_t before;
	int status;

	if (fd < 0) {
		refuse("--error-exitcode: cannot make a file in /tmp: %s", strerror(errno));
	}
	close(fd);
	setenv("CUWEIR_RESULT", file, 1);
	block_signals(&before);
	child = fork();
	if (child < 0) {
		unlink(file);
		refuse("cannot fork: %s", strerror(errno));
	}
	if (child == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		execvp(path, argv);
		complain("%s: cannot be executed: %s", path, strerror(errno));
		_exit(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE);
	}
	forward_signals();
	sigprocmask(SIG_SETMASK, &before, NULL);
	while (waitpid((pid_t)child, &status, 0) < 0 && errno == EINTR) {
	}
	found = findings(file);
	unlink(file);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && found > 0) {
		return exitcode;
	}
	return end_as(status);
}
