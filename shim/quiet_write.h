/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing where the program's own signals must not come of it: a reader that has gone (SIGPIPE),
 * a file that may not grow further (SIGXFSZ). The write fails with EPIPE or EFBIG instead, as if
 * both were ignored, in this thread and for so long. Nothing else of the shim's is here: the
 * policies include it, too.
 */
#ifndef CW_QUIET_WRITE_H
#define CW_QUIET_WRITE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

struct quiet_write {
	sigset_t signals;
	sigset_t before;
	sigset_t pending; /* of the program's own, which stay */
	int cancel_state; /* a write is a point of cancellation, and no CUDA call is */
};

static inline void quiet_write_begin(struct quiet_write *quiet)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet->cancel_state);
	sigemptyset(&quiet->signals);
	sigaddset(&quiet->signals, SIGPIPE);
	sigaddset(&quiet->signals, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &quiet->signals, &quiet->before);
	sigpending(&quiet->pending);
}

/* `error`: that of the write, 0 where there was none. */
static inline void quiet_write_end(struct quiet_write *quiet, int error)
{
	struct timespec no_time = { 0 };
	int number = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;

	if (number != 0 && sigismember(&quiet->pending, number) == 0) {
		sigemptyset(&quiet->signals);
		sigaddset(&quiet->signals, number);
		sigtimedwait(&quiet->signals, NULL, &no_time);
	}
	sigprocmask(SIG_SETMASK, &quiet->before, NULL);
	pthread_setcancelstate(quiet->cancel_state, NULL);
}

static inline ssize_t quiet_write(int fd, const void *bytes, size_t length)
{
	struct quiet_write quiet;
	ssize_t written;
	int error;

	quiet_write_begin(&quiet);
	written = write(fd, bytes, length);
	error = written < 0 ? errno : 0;
	quiet_write_end(&quiet, error);
	errno = error;
	return written;
}

/*
 * All of a file that is going to be mapped: a hole that the disk has no room for would be a
 * signal at some later store. 0, or the error.
 */
static inline int quiet_allocate(int fd, size_t size)
{
	struct quiet_write quiet;
	int error;

	quiet_write_begin(&quiet);
	error = posix_fallocate(fd, 0, (off_t)size);
	quiet_write_end(&quiet, error);
	return error;
}

/* Whether a write to a file can bring SIGXFSZ; the program may set the limit at any time. */
static inline bool quiet_write_is_limited(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

#endif
