/* SPDX-License-Identifier: Apache-2.0 */
#include "limit_directory.h"

#include "old_glibc.h"
#include "start_environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "XDG_RUNTIME_DIR"

/*
 * The value at the start of the program: all that were started alike shall meet. 0; ENOENT where
 * there was none; else why it cannot be read.
 */
static int read_at_start(char *ret_value, size_t size)
{
	struct start_environment environment = start_environment_read();
	const char *value = start_environment_get(&environment, VARIABLE);
	int error = environment.error;
	if (error == 0 && value == NULL) {
		error = ENOENT;
	} else if (error == 0 && (size_t)snprintf(ret_value, size, "%s", value) >= size) {
		error = ENAMETOOLONG;
	}
	free(environment.text);
	return error;
}

/* Nothing of this process's own is short: it is the same for others that are started alike. */
static bool is_for_all(int error)
{
	return error != EMFILE && error != ENFILE && error != ENOMEM;
}

/* Not there, or not this user's alone: the next one is meant, for all. */
static bool means_next(int error)
{
	return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM ||
	       error == ELOOP;
}

/* 0 with the path, or with "" where there is none; else an errno. */
static int read_variable(struct limit_directory *directory)
{
	int error = read_at_start(directory->path, sizeof(directory->path));
	if (error == 0 || error == ENAMETOOLONG || !is_for_all(error)) {
		return error;
	}
	const char *value = getenv(VARIABLE);
	if (value == NULL && error != ENOENT) {
		snprintf(directory->note, sizeof(directory->note),
			 "the environment of the start cannot be read, and " VARIABLE
			 " is not set now");
	}
	int length = snprintf(directory->path, sizeof(directory->path), "%s",
			      value != NULL ? value : "");
	return (size_t)length < sizeof(directory->path) ? 0 : ENAMETOOLONG;
}

/* A directory that nobody but the user can write to; no link. -1 with errno. */
static int open_own(const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		return -1;
	}
	if (old_fstat(fd, &status) != 0 || status.st_uid != geteuid() ||
	    (status.st_mode & 077) != 0) {
		close(fd);
		errno = EPERM;
		return -1;
	}
	return fd;
}

/* That of the variable. -1 with errno: ENOENT where it is not set. */
static int open_named(struct limit_directory *directory)
{
	char text[80];
	int error = read_variable(directory);
	if (error != 0) {
		snprintf(directory->path, sizeof(directory->path), "$" VARIABLE);
		errno = error;
		return -1;
	}
	if (directory->path[0] == '\0') {
		errno = ENOENT;
		return -1;
	}
	int fd = -1;
	errno = ENOTDIR;
	if (directory->path[0] == '/') {
		fd = open_own(directory->path);
	}
	if (fd < 0 && means_next(errno)) {
		error = errno;
		snprintf(directory->note, sizeof(directory->note), VARIABLE "=%s is not used: %s",
			 directory->path, strerror_r(error, text, sizeof(text)));
		errno = error;
	}
	return fd;
}

int limit_directory_open(bool make, struct limit_directory *ret_directory)
{
	ret_directory->note[0] = '\0';
	int fd = open_named(ret_directory);
	if (fd >= 0 || !means_next(errno)) {
		return fd;
	}
	unsigned int user = (unsigned int)geteuid();
	snprintf(ret_directory->path, sizeof(ret_directory->path), "/run/user/%u", user);
	fd = open_own(ret_directory->path);
	if (fd >= 0 || !means_next(errno)) {
		return fd;
	}
	snprintf(ret_directory->path, sizeof(ret_directory->path), "/tmp/cuweir-%u", user);
	if (make && mkdir(ret_directory->path, 0700) != 0 && errno != EEXIST) {
		return -1;
	}
	return open_own(ret_directory->path);
}
