/* SPDX-License-Identifier: Apache-2.0 */
#include "limit_file.h"

#include "../shim/quiet_write.h"
#include "limit_directory.h"
#include "old_glibc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = "cuweirL2";

bool shared_name_is_good(const char *name, size_t length)
{
	if (name == NULL || length == 0 || length > SHARED_NAME_MAX || name[0] == '.') {
		return false;
	}
	for (size_t i = 0; i < length; i++) {
		char c = name[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '.' || c == '_' || c == '-')) {
			return false;
		}
	}
	return true;
}

static int open_file(int directory, const char *name, bool make)
{
	struct stat status;
	char file[SHARED_NAME_MAX + 32];
	snprintf(file, sizeof(file), "cuweir-limit-%s", name);
	int fd = openat(directory, file,
			O_RDWR | (make ? O_CREAT : 0) | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
	if (fd < 0) {
		return -1;
	}
	if (old_fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
	    status.st_nlink != 1 || (status.st_mode & 077) != 0) {
		close(fd);
		errno = EPERM;
		return -1;
	}
	return fd;
}

/* Zeros where it cannot be read: no /proc, or no descriptor is left. */
static void read_boot(char boot[40])
{
	memset(boot, 0, 40);
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, boot, 36) != 36) {
			memset(boot, 0, 40);
		}
		close(fd);
	}
}

static int begin(struct shared_file *file, const char boot[40])
{
	pthread_mutexattr_t attributes;
	memset(file, 0, sizeof(*file));
	file->size = sizeof(*file);
	memcpy(file->boot, boot, sizeof(file->boot));
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	int error = pthread_mutex_init(&file->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	memcpy(file->magic, magic, sizeof(magic));
	return error;
}

/* Whether the file was made in this boot, as far as that is known. */
static bool is_of_boot(const struct shared_file *file, const char boot[40])
{
	return boot[0] == '\0' || file->boot[0] == '\0' ||
	       memcmp(file->boot, boot, sizeof(file->boot)) == 0;
}

/*
 * A file that is in use is never begun anew, whoever cannot read the boot's id: who has joined
 * without knowing it leaves zeros, so that nobody takes the file for one of another boot, and the
 * next who knows it fills it in.
 */
static int begin_or_join(struct shared_file *file, const char boot[40], bool make)
{
	static const char nothing[8];
	if (memcmp(file->magic, nothing, sizeof(magic)) == 0) {
		return make ? begin(file, boot) : 0;
	}
	if (memcmp(file->magic, magic, sizeof(magic)) != 0 || file->size != sizeof(*file)) {
		return EPROTO;
	}
	if (!make) {
		return 0;
	}
	if (!is_of_boot(file, boot)) {
		return begin(file, boot);
	}
	memcpy(file->boot, boot, sizeof(file->boot));
	return 0;
}

/*
 * 0, or an errno; EPROTO for a file of another kind. Who begins it has it locked. Without `make`
 * one that is to be begun is left alone.
 */
static int map(int fd, const char boot[40], bool make, struct shared_file **ret_file)
{
	struct stat status;
	if (old_fstat(fd, &status) != 0) {
		return errno;
	}
	bool is_new = status.st_size == 0;
	if (is_new && !make) {
		return 0;
	}
	int error = is_new ? quiet_allocate(fd, sizeof(struct shared_file)) : 0;
	if (error != 0) {
		return error;
	}
	if (!is_new && status.st_size != (off_t)sizeof(struct shared_file)) {
		return EPROTO;
	}
	struct shared_file *file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED,
					fd, 0);
	if (file == MAP_FAILED) {
		return errno;
	}
	error = begin_or_join(file, boot, make);
	if (error != 0) {
		munmap(file, sizeof(*file));
		return error;
	}
	*ret_file = file;
	return 0;
}

static const char *want_of(int error)
{
	switch (error) {
	case EPROTO:
		return "it removed when no process uses it";
	case EMFILE:
	case ENFILE:
		return "two descriptors that are free at the first CUDA call";
	case ENOMEM:
	case ENOSPC:
		return "more room";
	default:
		return "a directory and a file of this user's, without links, that nobody else may "
		       "use";
	}
}

int shared_file_map(const char *name, bool make, struct shared_file **ret_file, char *ret_text,
		    size_t size)
{
	struct limit_directory directory;
	char boot[40];
	char text[80];
	int error = 0;
	*ret_file = NULL;
	ret_text[0] = '\0';
	read_boot(boot); /* before the others take the last descriptors */
	int directory_fd = limit_directory_open(make, &directory);
	int fd = directory_fd >= 0 ? open_file(directory_fd, name, make) : -1;
	if (fd < 0) {
		error = errno == ENOENT && !make ? 0 : errno;
	} else {
		while (flock(fd, LOCK_EX) != 0 && errno == EINTR) {
		}
		error = map(fd, boot, make, ret_file);
		flock(fd, LOCK_UN);
		close(fd);
	}
	if (directory_fd >= 0) {
		close(directory_fd);
	}
	if (error != 0) {
		snprintf(ret_text, size, "shared=%s: %.200s/cuweir-limit-%s: %s; want %s", name,
			 directory.path, name,
			 error == EPROTO ? "of another version, or damaged" :
					   strerror_r(error, text, sizeof(text)),
			 want_of(error));
		return -1;
	}
	if (directory.note[0] != '\0') {
		snprintf(ret_text, size, "shared=%s: %.200s; the file is in %.100s", name,
			 directory.note, directory.path);
	}
	return 0;
}
