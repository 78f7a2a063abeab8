/* SPDX-License-Identifier: Apache-2.0 */
#include "limit_file.h"

#include "../shim/quiet_write.h"
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

static const char magic[8] = "cuweirL1";

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

/* A directory that nobody but the user can write to; no link. -1 with errno. */
static int open_directory(const char *path)
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

/* The user's runtime directory, or one in /tmp that stands for it and is made if `make`. */
static int open_runtime_directory(bool make, char *ret_path, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	if (runtime != NULL && runtime[0] == '/') {
		snprintf(ret_path, size, "%s", runtime);
		int fd = open_directory(ret_path);
		if (fd >= 0) {
			return fd;
		}
	}
	snprintf(ret_path, size, "/run/user/%u", (unsigned int)geteuid());
	int fd = open_directory(ret_path);
	if (fd >= 0) {
		return fd;
	}
	snprintf(ret_path, size, "/tmp/cuweir-%u", (unsigned int)geteuid());
	if (make && mkdir(ret_path, 0700) != 0 && errno != EEXIST) {
		return -1;
	}
	return open_directory(ret_path);
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

static void read_boot(char boot[40])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	memset(boot, 0, 40);
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

/*
 * 0, or an errno; EPROTO for a file of another kind. Who begins it has it locked. Without `make`
 * one that is to be begun is left alone.
 */
static int map(int fd, bool make, struct shared_file **ret_file)
{
	struct stat status;
	char boot[40];
	read_boot(boot);
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
	static const char nothing[8];
	if (memcmp(file->magic, nothing, sizeof(magic)) == 0 ||
	    memcmp(file->boot, boot, sizeof(boot)) != 0) {
		error = make ? begin(file, boot) : 0;
	} else if (memcmp(file->magic, magic, sizeof(magic)) != 0 || file->size != sizeof(*file)) {
		error = EPROTO;
	}
	if (error != 0) {
		munmap(file, sizeof(*file));
		return error;
	}
	*ret_file = file;
	return 0;
}

static uint64_t pid_namespace(void)
{
	struct stat status;
	return old_stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

struct shared_file *shared_file_map(const char *name, bool make, uint64_t *ret_namespace,
				    char *ret_reason, size_t size)
{
	char directory[256];
	char text[80];
	struct shared_file *file = NULL;
	int error = 0;
	int directory_fd = open_runtime_directory(make, directory, sizeof(directory));
	int fd = directory_fd >= 0 ? open_file(directory_fd, name, make) : -1;
	ret_reason[0] = '\0';
	if (fd < 0) {
		error = errno == ENOENT && !make ? 0 : errno;
	} else {
		while (flock(fd, LOCK_EX) != 0 && errno == EINTR) {
		}
		error = map(fd, make, &file);
		flock(fd, LOCK_UN);
		close(fd);
	}
	if (directory_fd >= 0) {
		close(directory_fd);
	}
	if (error != 0) {
		snprintf(ret_reason, size, "shared=%s: %s/cuweir-limit-%s: %s; want %s", name,
			 directory, name,
			 error == EPROTO ? "of another version, or damaged" :
					   strerror_r(error, text, sizeof(text)),
			 error == EPROTO ? "it removed when no process uses it" :
					   "a directory and a file of this user's, without links, that "
					   "nobody else may use");
		return NULL;
	}
	*ret_namespace = pid_namespace();
	return file;
}
