/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../shim/quiet_write.h"
#include "../shim/result.h"
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

child_handler *hear_children(void)
{
	return signal(SIGCHLD, SIG_DFL);
}

pid_t wait_for(pid_t pid, int *ret_status)
{
	pid_t ended;

	do {
		ended = waitpid(pid, ret_status, 0);
	} while (ended < 0 && errno == EINTR);
	return ended;
}

static bool read_process(uint32_t pid, struct proc_stat *ret)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%u/stat", pid);
	return proc_stat_read(name, ret);
}

/* In a time namespace of its own, a process has read another time than we do. */
static bool has_our_time(uint32_t pid)
{
	char name[64];
	char ours[64] = "";
	char its[64] = "";

	snprintf(name, sizeof(name), "/proc/%u/ns/time", pid);
	return readlink("/proc/self/ns/time", ours, sizeof(ours) - 1) < 0 ||
	       readlink(name, its, sizeof(its) - 1) < 0 || strcmp(ours, its) == 0;
}

/*
 * By its pid, unless that is another process's by now, as far as that can be known. One that waits
 * for its parent to ask for its status is at its end, if all its threads are. Of what another
 * namespace calls so nothing is known here: it counts as ended.
 */
static bool still_runs(const struct cw_result_slot *slot, uint64_t here)
{
	struct proc_stat found;

	if (slot->pid_namespace != here) {
		return false;
	}
	if (!read_process(slot->pid, &found)) {
		/* It is not there, or cannot be seen: no /proc, no descriptors. */
		return kill((pid_t)slot->pid, 0) == 0 || errno == EPERM;
	}
	return ((found.state != 'Z' && found.state != 'X') || found.threads > 1) &&
	       (slot->started == found.start || slot->started == 0 || !has_our_time(slot->pid));
}

/*
 * What the processes held when they ended, and what they were refused. One that still runs, as a
 * daemon does, has not leaked yet.
 */
static unsigned long long findings(const struct cw_result_file *file)
{
	uint64_t taken = __atomic_load_n(&file->taken, __ATOMIC_RELAXED);
	uint64_t here = cw_result_namespace();
	unsigned long long sum = 0;

	if (taken > CW_RESULT_SLOTS) {
		complain("--error-exitcode: of %llu processes that used CUDA, only the first %d are "
			 "looked at", (unsigned long long)taken, CW_RESULT_SLOTS);
		taken = CW_RESULT_SLOTS;
	}
	for (uint64_t i = 0; i < taken; i++) {
		const struct cw_result_slot *slot = &file->slots[i];
		uint64_t live = __atomic_load_n(&slot->live, __ATOMIC_RELAXED);

		sum += __atomic_load_n(&slot->refused, __ATOMIC_RELAXED);
		if (live != 0 && slot->lost == 0 && !still_runs(slot, here)) {
			sum += live;
		}
	}
	return sum;
}

/*
 * For the programs' processes to find by its name, until it is unlinked; who does not find it
 * learns from the name whether we are still there. All of it is there: in a hole that the disk
 * has no room for, they would get a signal.
 */
static const struct cw_result_file *make_file(char name[PATH_SIZE])
{
	const char *directory = getenv("TMPDIR");
	void *memory = MAP_FAILED;
	int error;
	int fd;

	directory = directory != NULL && directory[0] == '/' ? directory : "/tmp";
	snprintf(name, PATH_SIZE, "%s" CW_RESULT_NAME "%d-%llu-XXXXXX", directory, (int)getpid(),
		 (unsigned long long)cw_result_namespace());
	fd = mkstemp(name);
	error = fd >= 0 ? quiet_allocate(fd, sizeof(struct cw_result_file)) : errno;
	if (error == 0) {
		memory = mmap(NULL, sizeof(struct cw_result_file), PROT_READ, MAP_SHARED, fd, 0);
		error = errno;
	}
	if (fd >= 0) {
		close(fd);
	}
	if (memory == MAP_FAILED) {
		if (fd >= 0) {
			unlink(name);
		}
		refuse("--error-exitcode: cannot make a file of %zu KiB in %s: %s; want TMPDIR to "
		       "name a directory with room", sizeof(struct cw_result_file) / 1024, directory,
		       strerror(error));
	}
	return memory;
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
	char name[PATH_SIZE];
	const struct cw_result_file *file;
	unsigned long long found;
	child_handler *before_children;
	sigset_t before;
	pid_t ended;
	int status;

	before_children = hear_children();
	block_signals(&before);
	file = make_file(name);
	setenv("CUWEIR_RESULT", name, 1);
	child = fork();
	if (child < 0) {
		unlink(name);
		refuse("cannot fork: %s", strerror(errno));
	}
	if (child == 0) {
		signal(SIGCHLD, before_children);
		sigprocmask(SIG_SETMASK, &before, NULL);
		execvp(path, argv);
		complain("%s: cannot be executed: %s", path, strerror(errno));
		_exit(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE);
	}
	forward_signals();
	sigprocmask(SIG_SETMASK, &before, NULL);
	ended = wait_for((pid_t)child, &status);
	found = findings(file);
	unlink(name);
	if (ended < 0) {
		refuse("cannot wait for the program: its status is lost");
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && found > 0) {
		return exitcode;
	}
	return end_as(status);
}
