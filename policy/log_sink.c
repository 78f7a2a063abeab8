/* SPDX-License-Identifier: Apache-2.0 */
#include "log_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Keeps the log off 0, 1 and 2, which a program that closed its standard files would write to
 * next. A raw call, since fcntl with 64-bit offsets is a symbol that glibc before 2.28 lacks.
 */
static int move_above_standard(int fd)
{
	if (fd > STDERR_FILENO) {
		return fd;
	}
	int moved = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int saved = errno;
	close(fd);
	errno = saved;
	return moved;
}

int log_sink_open(struct log_sink *sink, const struct cuweir_host *host, const char *path,
		  bool block)
{
	*sink = (struct log_sink){ .host = host, .fd = -1, .owner = getpid() };
	pthread_mutex_init(&sink->lock, NULL);
	if (path == NULL) {
		return 0;
	}
	/* O_APPEND: a row is one write at the end, whichever thread or child it comes from. */
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
	if (fd >= 0) {
		fd = move_above_standard(fd);
	}
	if (fd < 0) {
		return errno;
	}
	if (block) {
		sink->block = malloc(LOG_BLOCK_SIZE);
		if (sink->block == NULL) {
			close(fd);
			return ENOMEM;
		}
	}
	sink->buffered = block;
	sink->fd = fd;
	return 0;
}

static void tell_failure(struct log_sink *sink, int error)
{
	if (atomic_exchange(&sink->failure_told, true)) {
		return;
	}
	char line[160];
	char text[80];
	snprintf(line, sizeof(line), "cuweir[%d]: log: a row could not be written: %s",
		 (int)getpid(), strerror_r(error, text, sizeof(text)));
	sink->host->log(sink->host, line);
}

static unsigned long long count_rows(const char *bytes, size_t length)
{
	unsigned long long rows = 0;
	for (size_t i = 0; i < length; i++) {
		rows += bytes[i] == '\n';
	}
	return rows;
}

/* Whole rows to the file; false, with errno, when some of them did not get there. */
static bool write_all(struct log_sink *sink, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(sink->fd, bytes, length);
		if (written < 0 && errno == EINTR) {
			continue;
		}
		if (written <= 0) {
			atomic_fetch_add(&sink->lost, count_rows(bytes, length));
			errno = written == 0 ? EIO : errno;
			return false;
		}
		bytes += written;
		length -= (size_t)written;
	}
	return true;
}

static bool put_in_block(struct log_sink *sink, const char *row, size_t length)
{
	bool good = true;
	pthread_mutex_lock(&sink->lock);
	if (sink->block == NULL) {
		good = write_all(sink, row, length);
	} else {
		if (sink->used + length > LOG_BLOCK_SIZE) {
			good = write_all(sink, sink->block, sink->used);
			sink->used = 0;
		}
		memcpy(sink->block + sink->used, row, length);
		sink->used += length;
	}
	int saved = errno;
	pthread_mutex_unlock(&sink->lock);
	errno = saved;
	return good;
}

void log_sink_put(struct log_sink *sink, char *row, size_t length)
{
	int saved = errno;
	if (sink->fd < 0) {
		row[length - 1] = '\0'; /* host->log adds the newline */
		sink->host->log(sink->host, row);
		errno = saved;
		return;
	}
	/*
	 * The block of a forked child is its parent's, who will write it, and the lock may have
	 * been another thread's at the fork: the child touches neither.
	 */
	bool good = sink->buffered && sink->owner == getpid() ?
			    put_in_block(sink, row, length) :
			    write_all(sink, row, length);
	if (!good) {
		tell_failure(sink, errno);
	}
	errno = saved;
}

void log_sink_close(struct log_sink *sink)
{
	int saved = errno;
	if (sink->buffered && sink->owner == getpid()) {
		pthread_mutex_lock(&sink->lock);
		bool good = write_all(sink, sink->block, sink->used);
		int error = errno;
		free(sink->block);
		sink->block = NULL;
		sink->used = 0;
		pthread_mutex_unlock(&sink->lock);
		if (!good) {
			tell_failure(sink, error);
		}
	}
	unsigned long long lost = atomic_load(&sink->lost);
	if (lost > 0) {
		char line[120];
		snprintf(line, sizeof(line), "cuweir[%d]: log: %llu rows are missing in its file",
			 (int)getpid(), lost);
		sink->host->log(sink->host, line);
	}
	errno = saved;
}
