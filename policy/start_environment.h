/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process was executed with: the program may have changed or emptied its environment
 * before its first CUDA call.
 */
#ifndef CUWEIR_POLICY_START_ENVIRONMENT_H
#define CUWEIR_POLICY_START_ENVIRONMENT_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct start_environment {
	char *text; /* the caller frees it; NULL: nothing could be read */
	size_t length;
	int error; /* why there is no more of it; 0: it is whole */
};

static inline struct start_environment start_environment_read(void)
{
	struct start_environment found = { 0 };
	size_t size = 4096;
	ssize_t got = -1;
	int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	found.error = fd >= 0 ? 0 : errno == ENOENT ? ENOSYS : errno;
	while (found.error == 0 && got != 0) {
		char *larger = realloc(found.text, size);
		found.text = larger != NULL ? larger : found.text;
		got = larger != NULL ? read(fd, found.text + found.length, size - found.length - 1) : -1;
		if (got < 0 && (larger == NULL || errno != EINTR)) {
			found.error = larger == NULL ? ENOMEM : errno;
		}
		found.length += got > 0 ? (size_t)got : 0;
		size = size - found.length > 1024 ? size : 2 * size;
	}
	if (fd >= 0) {
		close(fd);
	}
	if (found.text != NULL) {
		found.text[found.length] = '\0';
	}
	return found;
}

/* NULL where it is not set, or has been written over, as setproctitle does. */
static inline const char *start_environment_get(const struct start_environment *environment,
						const char *name)
{
	size_t length = strlen(name);
	for (size_t at = 0; at < environment->length; at += strlen(environment->text + at) + 1) {
		const char *entry = environment->text + at;
		if (strncmp(entry, name, length) == 0 && entry[length] == '=') {
			return entry + length + 1;
		}
	}
	return NULL;
}

#endif
