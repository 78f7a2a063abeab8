/* SPDX-License-Identifier: Apache-2.0 */
#include "log_sink.h"

#include "log_files.h"
#include "../shim/quiet_write.h"
#include "old_glibc.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static atomic_uint threads_seen;

/* From 1; the number of this thread's buffer follows from it. */
static _Thread_local unsigned int thread_number __attribute__((tls_model("initial-exec")));

/* ---- whose buffers these are -------------------------------------------------------------- */

/*
 * A page that the kernel empties in every child of fork, also in those that no fork handler
 * hears of. NULL before Linux 4.14: the process is asked for its id then.
 */
static const pid_t *owner_page(void)
{
	static const pid_t *page;
	if (page == NULL) {
		void *bytes = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (bytes == MAP_FAILED) {
			return NULL;
		}
		if (madvise(bytes, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) != 0) {
			munmap(bytes, (size_t)sysconf(_SC_PAGESIZE));
			return NULL;
		}
		*(pid_t *)bytes = getpid();
		page = bytes;
	}
	return page;
}

static bool is_owner(const struct log_sink *sink)
{
	return (sink->owner_now != NULL ? *sink->owner_now : getpid()) == sink->owner;
}

/* ---- a buffer's lock: two instructions where nobody else is there -------------------------- */

static void wait_for_buffer(struct log_buffer *buffer)
{
	int saved = errno;
	while (__atomic_exchange_n(&buffer->lock, 2, __ATOMIC_ACQUIRE) != 0) {
		syscall(SYS_futex, &buffer->lock, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
	}
	errno = saved;
}

static inline void lock_buffer(struct log_buffer *buffer)
{
	uint32_t expected = 0;
	if (__builtin_expect(!__atomic_compare_exchange_n(&buffer->lock, &expected, 1, false,
							  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED),
			     0)) {
		wait_for_buffer(buffer);
	}
}

static inline void unlock_buffer(struct log_buffer *buffer)
{
	if (__builtin_expect(__atomic_exchange_n(&buffer->lock, 0, __ATOMIC_RELEASE) == 2, 0)) {
		int saved = errno;
		syscall(SYS_futex, &buffer->lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		errno = saved;
	}
}

/* ---- writing ------------------------------------------------------------------------------ */

/* Each once. Below 0: of a rotation, at which no row is lost. */
static void tell_failure(struct log_sink *sink, int error)
{
	bool written = error < 0;
	if (atomic_exchange(written ? &sink->rotation_told : &sink->failure_told, true)) {
		return;
	}
	char line[PATH_MAX + 160];
	char text[80];
	const char *reason = strerror_r(written ? -error : error, text, sizeof(text));
	if (written) {
		snprintf(line, sizeof(line),
			 "cuweir[%d]: log: rotate=: the files of %s could not be moved on: %s; rows go "
			 "on in the last one",
			 (int)getpid(), sink->path, reason);
	} else {
		snprintf(line, sizeof(line),
			 "cuweir[%d]: log: a row could not be written to %s: %s", (int)getpid(),
			 sink->path, reason);
	}
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

/* 0, or the errno of the failure, by which some did not get there. */
static int write_rows(struct log_sink *sink, const char *bytes, size_t length)
{
	while (length > 0) {
		int fd = own_file_now(&sink->file, sink->path);
		ssize_t written = fd < 0	 ? -1 :
				  sink->is_quiet || quiet_write_is_limited() ?
					   quiet_write(fd, bytes, length) :
					   write(fd, bytes, length);
		if (written < 0 && errno == EINTR) {
			continue;
		}
		if (written <= 0) {
			atomic_fetch_add(&sink->lost, count_rows(bytes, length));
			return written == 0 ? EIO : errno;
		}
		bytes += written;
		length -= (size_t)written;
	}
	return 0;
}

/* One thread at a time: a file that others write to while it is renamed grows without an end. */
static __attribute__((noinline)) int write_rotating(struct log_sink *sink, const char *bytes,
						    size_t length)
{
	pthread_mutex_lock(&sink->rotation);
	int error = write_rows(sink, bytes, length);
	sink->written += error == 0 ? length : 0;
	if (sink->written >= sink->options.rotate) {
		int failed = log_files_rotate(sink);
		error = error != 0 ? error : -failed;
		sink->written = strlen(sink->options.header);
	}
	pthread_mutex_unlock(&sink->rotation);
	return error;
}

/*
 * Whole rows to the file; 0, an errno, or below 0 the errno of a rotation alone. Children of
 * fork leave the files, and the lock, to their parent.
 */
static int write_all(struct log_sink *sink, const char *bytes, size_t length)
{
	return sink->options.rotate != 0 && is_owner(sink) ?
		       write_rotating(sink, bytes, length) :
		       write_rows(sink, bytes, length);
}

/* The lock is held. Emptied after it is written: a kill in between doubles rows, none is lost. */
static __attribute__((noinline)) int flush_buffer(struct log_sink *sink, struct log_buffer *buffer)
{
	int saved = errno;
	int error = write_all(sink, buffer->bytes, buffer->used);
	for (size_t at = 0; at < buffer->used; at += 256) {
		memset(buffer->bytes + at, 0, 256); /* the size is a multiple of it */
	}
	buffer->used = 0;
	errno = saved;
	return error;
}

/* The lock is held. The buffer is full, or has been closed. */
static __attribute__((noinline)) int make_room(struct log_sink *sink, struct log_buffer *buffer,
					       const char *row, size_t length, bool *ret_room)
{
	int saved = errno;
	int error = flush_buffer(sink, buffer);
	*ret_room = __atomic_load_n(&sink->room, __ATOMIC_RELAXED) != 0;
	if (!*ret_room) {
		error = write_all(sink, row, length);
	}
	errno = saved;
	return error;
}

static inline int put_in_buffer(struct log_sink *sink, const char *row, size_t length)
{
	int error = 0;
	bool has_room = true;
	if (__builtin_expect(thread_number == 0, 0)) {
		thread_number = atomic_fetch_add(&threads_seen, 1) + 1;
	}
	struct log_buffer *buffer = &sink->buffers[thread_number % LOG_BUFFERS];
	lock_buffer(buffer);
	if (__builtin_expect(buffer->used + length > __atomic_load_n(&sink->room, __ATOMIC_RELAXED),
			     0)) {
		error = make_room(sink, buffer, row, length, &has_room);
	}
	if (__builtin_expect(has_room, 1)) {
		memcpy(buffer->bytes + buffer->used, row, length);
		buffer->used += length;
	}
	unlock_buffer(buffer);
	return error;
}

static __attribute__((noinline)) void put_elsewhere(struct log_sink *sink, char *row, size_t length)
{
	int saved = errno;
	if (sink->file.fd < 0) {
		row[length - 1] = '\0'; /* host->log adds the newline */
		sink->host->log(sink->host, row);
	} else {
		/*
		 * The buffers of a forked child are its parent's, who will write them, and a lock
		 * may have been another thread's at the fork: the child touches neither.
		 */
		int error = write_all(sink, row, length);
		if (error != 0) {
			tell_failure(sink, error);
		}
	}
	errno = saved;
}

void log_sink_put(struct log_sink *sink, char *row, size_t length)
{
	if (sink->tail == NULL || !is_owner(sink)) {
		put_elsewhere(sink, row, length);
		return;
	}
	int error = put_in_buffer(sink, row, length);
	if (error != 0) {
		tell_failure(sink, error);
	}
}

int log_sink_open(struct log_sink *sink, const struct cuweir_host *host, const char *path,
		  const struct log_sink_options *options)
{
	memset(sink, 0, sizeof(*sink));
	sink->host = host;
	sink->options = *options;
	sink->file.fd = -1;
	sink->owner = getpid();
	pthread_mutex_init(&sink->rotation, NULL);
	if (path == NULL) {
		if (options->header[0] != '\0') {
			char line[128];
			snprintf(line, sizeof(line), "%s", options->header);
			log_sink_put(sink, line, strlen(line));
		}
		return 0;
	}
	sink->owner_now = owner_page();
	if (sink->owner_now != NULL && *sink->owner_now != sink->owner) {
		sink->owner_now = NULL; /* opened in a child of fork: the page was its parent's */
	}
	sink->path = strdup(path);
	if (sink->path == NULL) {
		return ENOMEM;
	}
	int error = log_files_open(sink);
	sink->is_quiet = error == 0 && lseek(sink->file.fd, 0, SEEK_CUR) < 0;
	if (error == 0 && sink->lost != 0) {
		tell_failure(sink, ENOSPC);
	}
	if (error != 0) {
		free(sink->path);
		sink->path = NULL;
	}
	return error;
}

void log_sink_close(struct log_sink *sink)
{
	int saved = errno;
	int error = 0;
	if (sink->tail != NULL && is_owner(sink)) {
		/* Not unmapped: a callback in another thread may still be running. */
		__atomic_store_n(&sink->room, 0, __ATOMIC_RELEASE);
		for (unsigned int i = 0; i < LOG_BUFFERS; i++) {
			struct log_buffer *buffer = &sink->buffers[i];
			lock_buffer(buffer);
			int status = buffer->used != 0 ? flush_buffer(sink, buffer) : 0;
			error = status != 0 ? status : error;
			unlock_buffer(buffer);
		}
		log_files_close(sink);
	}
	if (error != 0) {
		tell_failure(sink, error);
	}
	unsigned long long lost = atomic_load(&sink->lost);
	if (lost > 0) {
		char line[PATH_MAX + 120];
		snprintf(line, sizeof(line), "cuweir[%d]: log: %llu rows are missing in %s",
			 (int)getpid(), lost, sink->path);
		sink->host->log(sink->host, line);
	}
	errno = saved;
}
