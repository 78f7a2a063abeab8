/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of shared= have in common, first a directory of their own. A value that the
 * program was started with counts more than a present one: where there is one, the test starts
 * itself once more.
 */
#ifndef TESTS_TEST_LIMIT_START_H
#define TESTS_TEST_LIMIT_START_H

#include "../../policy/limit_file.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_DIRECTORY "CUWEIR_TEST_LIMIT_DIRECTORY"

static const char *directory;
static char **test_arguments;

/* Not by /proc/self/exe, which under valgrind is valgrind. Returns where it cannot be done. */
static inline void start_again(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (length > 0) {
		path[length] = '\0';
		execv(path, test_arguments);
	}
}

__attribute__((constructor)) static void begin_in_directory(int argc, char **argv)
{
	static char made[] = "/tmp/cuweir-limit-XXXXXX";
	bool has_another = getenv("XDG_RUNTIME_DIR") != NULL;
	test_arguments = argv;
	directory = getenv(TEST_DIRECTORY);
	if (directory != NULL) {
		return;
	}
	directory = mkdtemp(made);
	if (directory == NULL || setenv(TEST_DIRECTORY, made, 1) != 0 ||
	    setenv("XDG_RUNTIME_DIR", made, 1) != 0) {
		_exit(99);
	}
	if (has_another) {
		start_again();
		_exit(99);
	}
}

static inline const char *path_of(const char *name)
{
	static char path[200];
	snprintf(path, sizeof(path), "%s/cuweir-limit-%s", directory, name);
	return path;
}

static inline struct shared_file *map_file(const char *name)
{
	int fd = open(path_of(name), O_RDWR | O_CLOEXEC);
	void *file = mmap(NULL, sizeof(struct shared_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  0);
	close(fd);
	assert_ptr_not_equal(file, MAP_FAILED);
	return file;
}

/* A child of fork counts for itself: one that has the event's bytes and stands still. */
static inline pid_t stop_with_memory(void *limit, const struct cuweir_event *event)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		_exit(policy->admit(limit, event) == CUWEIR_SUCCESS ? raise(SIGSTOP) : 1);
	}
	waitpid(child, &status, WUNTRACED);
	assert_true(WIFSTOPPED(status));
	return child;
}

/* The directory too: 0 where nothing else was in it. */
static inline int remove_files(const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unlink(path_of(names[i]));
	}
	return rmdir(directory);
}

#endif
