/* SPDX-License-Identifier: Apache-2.0 */
#include "log_files.h"

#include "../shim/own_file.h"
#include "../shim/proc_stat.h"
#include "../shim/quiet_write.h"
#include "old_glibc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TAIL_SIZE ((size_t)LOG_BUFFERS * LOG_BUFFER_SIZE)
#define NS_PER_S 1000000000ll
#define CLOCKS_APART_NS 100000000ll /* the kernel's clocks tick, each by itself */

static bool write_bytes(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = quiet_write(fd, bytes, length);
		if (written < 0 && errno == EINTR) {
			continue;
		}
		if (written <= 0) {
			return false;
		}
		bytes += written;
		length -= (size_t)written;
	}
	return true;
}

/* ---- after exec --------------------------------------------------------------------------- */

/* When this process began, which is before whatever it executed; 0 where that is not known. */
static long long process_start_ns(void)
{
	struct proc_stat line;
	struct timespec now, since_boot;
	if (!proc_stat_read("/proc/self/stat", &line)) {
		return 0;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &since_boot);
	long long boot = (now.tv_sec - since_boot.tv_sec) * NS_PER_S + now.tv_nsec -
			 since_boot.tv_nsec;
	return boot + (long long)(line.start * (unsigned long long)NS_PER_S /
				  (unsigned long long)sysconf(_SC_CLK_TCK));
}

/*
 * Whether the file was written by this very process, before it executed what it is now. Where
 * its start is not known, by any with its id: old rows are better than rows that are gone.
 */
static bool is_our_own(const char *path, long long start)
{
	struct stat status;
	return old_stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
	       status.st_uid == geteuid() && status.st_size > 0 &&
	       status.st_ctim.tv_sec * NS_PER_S + status.st_ctim.tv_nsec >=
		       start - CLOCKS_APART_NS;
}

/* Rows that were still in the buffers then; the rest of the tail is NUL. */
static void take_over(const struct log_sink *sink, const char *tail_path)
{
	char *bytes = malloc(LOG_BUFFER_SIZE);
	int tail = open(tail_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	while (bytes != NULL && tail >= 0) {
		ssize_t got = read(tail, bytes, LOG_BUFFER_SIZE);
		if (got <= 0) {
			break;
		}
		size_t used = 0;
		for (ssize_t i = 0; i < got; i++) {
			bytes[used] = bytes[i];
			used += bytes[i] != '\0';
		}
		write_bytes(sink->file.fd, bytes, used);
	}
	if (tail >= 0) {
		close(tail);
	}
	free(bytes);
	unlink(tail_path); /* else what this process executes finds them again */
}

/* ---- the tail ----------------------------------------------------------------------------- */

/* Backed by a file with all its blocks: touching it cannot fail on a full disk. */
static char *map_tail(const char *tail_path)
{
	struct stat status;
	int fd = open(tail_path,
		      O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK,
		      0644);
	if (fd < 0) {
		return NULL;
	}
	char *bytes = MAP_FAILED;
	if (old_fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    quiet_allocate(fd, TAIL_SIZE) == 0) {
		bytes = mmap(NULL, TAIL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	close(fd);
	if (bytes == MAP_FAILED) {
		unlink(tail_path);
		return NULL;
	}
	return bytes;
}

static int open_tail(struct log_sink *sink, const char *tail_path)
{
	struct stat status;
	/* A pipe or a device has no place beside it; its buffers are the process's own. */
	if (old_fstat(sink->file.fd, &status) == 0 && S_ISREG(status.st_mode)) {
		sink->tail = map_tail(tail_path);
	}
	sink->has_tail_file = sink->tail != NULL;
	if (sink->tail == NULL) {
		sink->tail = mmap(NULL, TAIL_SIZE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (sink->tail == MAP_FAILED) {
			sink->tail = NULL;
			return ENOMEM;
		}
	}
	for (unsigned int i = 0; i < LOG_BUFFERS; i++) {
		sink->room = LOG_BUFFER_SIZE;
		sink->buffers[i].bytes = sink->tail + (size_t)i * LOG_BUFFER_SIZE;
	}
	return 0;
}

static bool tail_name(const struct log_sink *sink, char tail_path[PATH_MAX])
{
	return (size_t)snprintf(tail_path, PATH_MAX, "%s.tail", sink->path) < PATH_MAX;
}

/* Whether the file could be opened, without making or emptying it: 0 or an errno. */
static int try_file(const char *path)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno != ENOENT) {
		return errno == ENXIO ? 0 : errno; /* a FIFO that nobody reads yet */
	}
	int length = slash == NULL || slash == path ? 1 : (int)(slash - path);
	snprintf(directory, sizeof(directory), "%.*s", length, slash != NULL ? path : ".");
	return access(directory, W_OK | X_OK) == 0 ? 0 : errno;
}

int log_files_open(struct log_sink *sink)
{
	if ((sink->host->flags & CUWEIR_HOST_TRIAL) != 0) {
		return try_file(sink->path);
	}
	char tail_path[PATH_MAX];
	bool has_name = tail_name(sink, tail_path);
	bool resumable = sink->options.resumable;
	long long start = resumable ? process_start_ns() : 0;
	/* Of few rows all may be in the tail, and the file still be empty. */
	bool has_tail = resumable && has_name && is_our_own(tail_path, start);
	bool goes_on = has_tail || (resumable && is_our_own(sink->path, start));
	/* Appending: a row is one write at the end, whichever thread or child it comes from. */
	int error = own_file_open(&sink->file, sink->path, goes_on ? 0 : O_TRUNC);
	if (error != 0) {
		return error;
	}
	/* A pipe has no end. */
	if (lseek(sink->file.fd, 0, SEEK_END) <= 0 &&
	    !write_bytes(sink->file.fd, sink->options.header, strlen(sink->options.header))) {
		sink->lost += sink->options.header[0] != '\0';
	}
	if (has_tail) {
		take_over(sink, tail_path);
	}
	struct stat status;
	if (old_fstat(sink->file.fd, &status) == 0) {
		sink->written = (unsigned long long)status.st_size;
	}
	if (!sink->options.buffered) {
		return 0;
	}
	error = has_name ? open_tail(sink, tail_path) : ENAMETOOLONG;
	if (error != 0) {
		close(sink->file.fd);
		sink->file.fd = -1;
	}
	return error;
}

void log_files_close(struct log_sink *sink)
{
	char tail_path[PATH_MAX];
	if (sink->has_tail_file && tail_name(sink, tail_path)) {
		unlink(tail_path);
	}
}

/* ---- rotation ----------------------------------------------------------------------------- */

int log_files_rotate(struct log_sink *sink)
{
	char older[PATH_MAX + 16];
	char newer[PATH_MAX + 16];
	for (unsigned int i = sink->options.keep; i > 0; i--) {
		snprintf(older, sizeof(older), "%s.%u", sink->path, i);
		if (i > 1) {
			snprintf(newer, sizeof(newer), "%s.%u", sink->path, i - 1);
		} else {
			snprintf(newer, sizeof(newer), "%s", sink->path);
		}
		if (rename(newer, older) != 0 && errno != ENOENT) {
			return errno;
		}
	}
	struct own_file next = { .fd = -1 };
	int error = own_file_open(&next, sink->path, O_TRUNC);
	if (error != 0) {
		return error;
	}
	/* In place before anybody writes to it; then the number changes files in one step. */
	write_bytes(next.fd, sink->options.header, strlen(sink->options.header));
	int fd = sink->file.fd;
	if (own_file_is(&sink->file, fd) && dup3(next.fd, fd, O_CLOEXEC) >= 0) {
		close(next.fd);
		next.fd = fd;
	}
	sink->file = next;
	return 0;
}
