/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that we write to in a program that may close any descriptor, and then have a file of its
 * own behind the number: it is known again by its inode, before each write. As far from the
 * program's numbers as there is room. Nothing else of the shim's is here: the policy log includes
 * it, too.
 */
#ifndef CW_OWN_FILE_H
#define CW_OWN_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct own_file {
	int fd; /* -1: none */
	bool is_regular;
	uint64_t device;
	uint64_t inode;
};

/* Raw calls: fstat() and fcntl() have versions that older C libraries lack. */
static inline bool own_file_facts(int fd, struct stat *ret_status)
{
	return syscall(SYS_fstat, fd, ret_status) == 0;
}

/* Above what programs count on: from 700, or at the limit's end. */
static inline int own_file_move_up(int fd)
{
	enum { FROM = 700, BELOW_LIMIT = 16 };
	struct rlimit limit;
	long moved = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FROM);

	if (moved < 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 2 * BELOW_LIMIT) {
		moved = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, (int)limit.rlim_cur - BELOW_LIMIT);
	}
	if (moved < 0 && fd <= STDERR_FILENO) {
		moved = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	}
	if (moved < 0) {
		return fd;
	}
	close(fd);
	return (int)moved;
}

/* For appending; `flags` are added. 0, or an errno. */
static inline int own_file_open(struct own_file *file, const char *path, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | flags, 0644);
	struct stat status;

	if (fd < 0) {
		return errno;
	}
	fd = own_file_move_up(fd);
	if (own_file_facts(fd, &status)) {
		file->is_regular = S_ISREG(status.st_mode);
		__atomic_store_n(&file->device, (uint64_t)status.st_dev, __ATOMIC_RELAXED);
		__atomic_store_n(&file->inode, (uint64_t)status.st_ino, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&file->fd, fd, __ATOMIC_RELEASE);
	return 0;
}

static inline bool own_file_is(const struct own_file *file, int fd)
{
	struct stat status;

	return own_file_facts(fd, &status) &&
	       status.st_ino == __atomic_load_n(&file->inode, __ATOMIC_RELAXED) &&
	       status.st_dev == __atomic_load_n(&file->device, __ATOMIC_RELAXED);
}

/*
 * The descriptor to write to now. Where the program has closed it, the file is opened again;
 * -1, with errno, where that cannot be. Threads may do so at once.
 */
static inline int own_file_now(struct own_file *file, const char *path)
{
	int fd = __atomic_load_n(&file->fd, __ATOMIC_ACQUIRE);
	struct own_file again = { .fd = -1 };
	int error;

	if (fd >= 0 && own_file_is(file, fd)) {
		return fd;
	}
	if (fd < 0 || !file->is_regular) {
		errno = EBADF;
		return -1;
	}
	error = own_file_open(&again, path, 0);
	if (error != 0) {
		errno = error;
		return -1;
	}
	__atomic_store_n(&file->device, again.device, __ATOMIC_RELAXED);
	__atomic_store_n(&file->inode, again.inode, __ATOMIC_RELAXED);
	if (!__atomic_compare_exchange_n(&file->fd, &fd, again.fd, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE)) {
		close(again.fd);
		return fd;
	}
	return again.fd;
}

#endif
