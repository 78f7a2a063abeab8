/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of the test's own for the files of shared=. A value that the program was started
 * with counts more than a present one: where there is one, the test starts itself once more.
 */
#ifndef TESTS_TEST_LIMIT_START_H
#define TESTS_TEST_LIMIT_START_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The directory too: 0 where nothing else was in it. */
static inline int remove_files(const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unlink(path_of(names[i]));
	}
	return rmdir(directory);
}

#endif
