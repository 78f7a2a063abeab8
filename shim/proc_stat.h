/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc/PID/stat says of a process. Nothing else of the shim's is here: the policies and the
 * command include it, too.
 */
#ifndef CW_PROC_STAT_H
#define CW_PROC_STAT_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

struct proc_stat {
	char state;
	uint64_t threads;
	uint64_t start; /* in ticks since the boot, as the reader's namespace of time has it */
};

/* The decimal number that the text begins with; strtoull() has a version that is too new. */
static inline uint64_t proc_number(const char *text)
{
	uint64_t number = 0;

	for (; *text >= '0' && *text <= '9'; text++) {
		number = number * 10 + (uint64_t)(*text - '0');
	}
	return number;
}

/* False where it cannot be read, with what could be. No malloc, no stdio. */
static inline bool proc_stat_read(const char *path, struct proc_stat *ret)
{
	enum { STATE = 3, THREADS = 20, START = 22 }; /* fields, from 1 */
	char text[1024];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	const char *at;

	*ret = (struct proc_stat){ 0 };
	if (fd >= 0) {
		close(fd);
	}
	text[length > 0 ? length : 0] = '\0';
	/* The name, the second one, is in parentheses and may have anything in it. */
	at = strrchr(text, ')');
	for (int field = STATE; at != NULL && field <= START; field++) {
		at = strchr(at + 1, ' ');
		if (at != NULL && field == STATE) {
			ret->state = at[1];
		} else if (at != NULL && field == THREADS) {
			ret->threads = proc_number(at + 1);
		} else if (at != NULL && field == START) {
			ret->start = proc_number(at + 1);
		}
	}
	return at != NULL;
}

#endif
