/* SPDX-License-Identifier: Apache-2.0 */
#include "limit_shared.h"

#include "limit_file.h"
#include "old_glibc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#define LOCK_SECONDS 5

/* ---- who lives ---------------------------------------------------------------------------- */

enum life { LIFE_GONE, LIFE_UNKNOWN, LIFE_THERE };

/* The state, the number of threads and the start time of a process, if it is there. */
static enum life read_stat(int pid, char *ret_state, long *ret_threads, uint64_t *ret_start)
{
	char path[40];
	char text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0) {
		close(fd);
	}
	if (length <= 0) {
		/* The program may be out of descriptors, or see no /proc. */
		return kill(pid, 0) != 0 && errno == ESRCH ? LIFE_GONE : LIFE_UNKNOWN;
	}
	text[length] = '\0';
	/* The name in parentheses may have anything in it. */
	const char *at = strrchr(text, ')');
	unsigned long long start = 0;
	if (at == NULL ||
	    sscanf(at + 1,
		   " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d "
		   "%llu",
		   ret_state, ret_threads, &start) != 3) {
		return LIFE_UNKNOWN;
	}
	*ret_start = start;
	return LIFE_THERE;
}

/*
 * Where nothing can be known, as of another namespace of process ids, it counts as living: too
 * little for others is better than too much for all. A zombie has given its memory back already,
 * unless only its first thread has ended.
 */
static bool is_alive(const struct shared *shared, const struct shared_place *place)
{
	char state = 0;
	long threads = 0;
	uint64_t start = 0;
	if (place->namespace != shared->namespace) {
		return true;
	}
	enum life life = read_stat(place->pid, &state, &threads, &start);
	if (life != LIFE_THERE) {
		return life == LIFE_UNKNOWN;
	}
	if ((state == 'Z' || state == 'X') && threads <= 1) {
		return false;
	}
	/* A place without a start was taken by one that could not read its own. */
	return place->start == 0 || place->start == start;
}

/* The lock is held. */
static void clear_dead(const struct shared *shared)
{
	struct shared_file *file = shared->file;
	for (uint32_t i = 0; i < file->used; i++) {
		if (file->places[i].pid != 0 && !is_alive(shared, &file->places[i])) {
			memset(&file->places[i], 0, sizeof(file->places[i]));
		}
	}
}

/* ---- the lock ----------------------------------------------------------------------------- */

/* Its timedlock takes EOWNERDEAD for a failure. */
static void tell_tsan_of_lock(pthread_mutex_t *mutex)
{
#ifdef __SANITIZE_THREAD__
	__tsan_mutex_pre_lock(mutex, __tsan_mutex_try_lock);
	__tsan_mutex_post_lock(mutex, __tsan_mutex_try_lock, 0);
#else
	(void)mutex;
#endif
}

/*
 * One that was killed with the lock held leaves at most its own place, which is cleared, half
 * written. One that was stopped with it is not waited for without end.
 */
static bool lock(const struct shared *shared)
{
	struct timespec deadline;
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += LOCK_SECONDS;
	int error = pthread_mutex_timedlock(&shared->file->lock, &deadline);
	if (error == EOWNERDEAD) {
		tell_tsan_of_lock(&shared->file->lock);
		pthread_mutex_consistent(&shared->file->lock);
		clear_dead(shared);
		error = 0;
	}
	return error == 0;
}

static void unlock(const struct shared *shared)
{
	pthread_mutex_unlock(&shared->file->lock);
}

/* ---- places ------------------------------------------------------------------------------- */

static struct shared_place *empty_place(struct shared_file *file)
{
	for (uint32_t i = 0; i < file->used; i++) {
		if (file->places[i].pid == 0) {
			return &file->places[i];
		}
	}
	return file->used < SHARED_PLACES ? &file->places[file->used++] : NULL;
}

/*
 * This process's; the lock is held. A child of fork gets one of its own, with nothing in it, as
 * it has no CUDA memory; so does a program that was executed, since it is found by `fresh`.
 */
static struct shared_place *own_place(struct shared *shared, bool fresh)
{
	struct shared_file *file = shared->file;
	int pid = (int)getpid();
	if (!fresh && shared->own != NULL && shared->own->pid == pid &&
	    shared->own->namespace == shared->namespace) {
		return shared->own;
	}
	char state;
	long threads;
	uint64_t start = 0;
	read_stat(pid, &state, &threads, &start);
	struct shared_place *place = NULL;
	for (uint32_t i = 0; i < file->used && place == NULL; i++) {
		if (file->places[i].pid == pid &&
		    (file->places[i].start == start || file->places[i].start == 0) &&
		    file->places[i].namespace == shared->namespace) {
			place = &file->places[i];
		}
	}
	if (place == NULL || fresh) {
		place = place != NULL ? place : empty_place(file);
		if (place == NULL) {
			clear_dead(shared);
			place = empty_place(file);
		}
		if (place == NULL) {
			return NULL;
		}
		memset(place, 0, sizeof(*place));
		place->start = start;
		place->namespace = shared->namespace;
		/* Last: with a pid it counts. */
		__atomic_store_n(&place->pid, pid, __ATOMIC_RELEASE);
	}
	shared->own = place;
	return place;
}

/* ---- what the policy asks ----------------------------------------------------------------- */

static uint64_t sum_of(const struct shared_file *file, int device)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < file->used; i++) {
		uint64_t bytes = file->places[i].pid != 0 ? file->places[i].bytes[device] : 0;
		sum = sum > UINT64_MAX - bytes ? UINT64_MAX : sum + bytes;
	}
	return sum;
}

static bool fits(const struct shared_file *file, int device, uint64_t limit, uint64_t bytes)
{
	uint64_t sum = sum_of(file, device);
	return sum <= limit && bytes <= limit - sum;
}

enum shared_result shared_claim(struct shared *shared, int device, uint64_t limit, uint64_t bytes)
{
	enum shared_result result = SHARED_OVER;
	if (!lock(shared)) {
		return SHARED_STUCK;
	}
	struct shared_place *place = own_place(shared, false);
	if (place == NULL) {
		result = SHARED_STUCK;
	} else {
		if (!fits(shared->file, device, limit, bytes)) {
			clear_dead(shared);
		}
		if (fits(shared->file, device, limit, bytes)) {
			place->bytes[device] += bytes;
			result = SHARED_DONE;
		}
	}
	unlock(shared);
	return result;
}

void shared_add(struct shared *shared, int device, uint64_t bytes)
{
	if (bytes == 0 || !lock(shared)) {
		return;
	}
	struct shared_place *place = own_place(shared, false);
	if (place != NULL) {
		place->bytes[device] += bytes;
	}
	unlock(shared);
}

void shared_subtract(struct shared *shared, int device, uint64_t bytes)
{
	if (bytes == 0 || !lock(shared)) {
		return;
	}
	struct shared_place *place = own_place(shared, false);
	if (place != NULL) {
		uint64_t held = place->bytes[device];
		place->bytes[device] = held > bytes ? held - bytes : 0;
	}
	unlock(shared);
}

bool shared_sum(struct shared *shared, int device, uint64_t *ret_bytes)
{
	if (!lock(shared)) {
		return false;
	}
	clear_dead(shared);
	*ret_bytes = sum_of(shared->file, device);
	unlock(shared);
	return true;
}

int shared_device(struct shared *shared, const unsigned char identity[16])
{
	struct shared_file *file = shared->file;
	int device = -1;
	if (!lock(shared)) {
		return -1;
	}
	for (uint32_t i = 0; i < file->devices && device < 0; i++) {
		device = memcmp(file->identities[i], identity, 16) == 0 ? (int)i : -1;
	}
	if (device < 0 && file->devices < SHARED_DEVICES) {
		memcpy(file->identities[file->devices], identity, 16);
		device = (int)file->devices++;
	}
	unlock(shared);
	return device;
}

static uint64_t pid_namespace(void)
{
	struct stat status;
	return old_stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

int shared_check(const char *name, char *ret_reason, size_t size)
{
	struct shared_file *file = NULL;
	int result = shared_file_map(name, false, &file, ret_reason, size);
	if (file != NULL) {
		munmap(file, sizeof(*file));
	}
	return result;
}

int shared_open(struct shared *shared, const char *name, char *ret_text, size_t size)
{
	if (shared_file_map(name, true, &shared->file, ret_text, size) != 0) {
		return -1;
	}
	shared->namespace = pid_namespace();
	bool good = lock(shared);
	if (good) {
		clear_dead(shared);
		good = own_place(shared, true) != NULL;
		unlock(shared);
	}
	if (!good) {
		snprintf(ret_text, size,
			 "shared=%s: no place in its file for one more process, or a stopped "
			 "process holds its lock; want another name",
			 name);
		return -1;
	}
	return 0;
}
