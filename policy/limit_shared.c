/* SPDX-License-Identifier: Apache-2.0 */
#include "limit_shared.h"

#include "limit_file.h"
#include "old_glibc.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATIENCE_MS 5000
#define PATIENCE_STUCK_MS 10 /* enough for one that is not stopped */

/* ---- places ------------------------------------------------------------------------------- */

static int32_t pid_of(const struct shared_place *place)
{
	return __atomic_load_n(&place->life.pid, __ATOMIC_ACQUIRE);
}

/* Lock held, as in all that follow here. First of all it counts no more. */
static void clear(struct shared_place *place)
{
	__atomic_store_n(&place->life.pid, 0, __ATOMIC_RELEASE);
	for (int device = 0; device < SHARED_DEVICES; device++) {
		__atomic_store_n(&place->bytes[device], 0, __ATOMIC_RELAXED);
	}
}

static void clear_dead(const struct shared *shared)
{
	struct shared_file *file = shared->file;
	bool can_use_proc = life_can_use_proc();
	for (uint32_t i = 0; i < file->used; i++) {
		if (pid_of(&file->places[i]) != 0 &&
		    !life_goes_on(&shared->self, &file->places[i].life, can_use_proc)) {
			clear(&file->places[i]);
		}
	}
}

static struct shared_place *empty_place(struct shared_file *file)
{
	for (uint32_t i = 0; i < file->used; i++) {
		if (pid_of(&file->places[i]) == 0) {
			return &file->places[i];
		}
	}
	if (file->used == SHARED_PLACES) {
		return NULL;
	}
	struct shared_place *place = &file->places[file->used];
	__atomic_store_n(&file->used, file->used + 1, __ATOMIC_RELEASE);
	return place;
}

/*
 * One that this process has already; if `fresh` also what the program before an exec has left, or
 * a process that is gone and had the same number.
 */
static struct shared_place *find_place(const struct shared *shared, bool fresh)
{
	struct shared_file *file = shared->file;
	const struct life *self = &shared->self;
	for (uint32_t i = 0; i < file->used && self->namespace != 0; i++) {
		const struct life *life = &file->places[i].life;
		if (pid_of(&file->places[i]) == self->pid && life->namespace == self->namespace &&
		    (fresh || (life->start == self->start &&
			       life->time_namespace == self->time_namespace))) {
			return &file->places[i];
		}
	}
	return NULL;
}

/* Never below 0. Any thread of the process whose place it is, without the lock. */
static void move(struct shared_place *place, int device, uint64_t more, uint64_t less)
{
	uint64_t *bytes = &place->bytes[device];
	uint64_t held = __atomic_load_n(bytes, __ATOMIC_RELAXED);
	uint64_t next;
	do {
		next = held + more > less ? held + more - less : 0;
	} while (!__atomic_compare_exchange_n(bytes, &held, next, true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

/* What could not be counted while there was neither a place nor the lock. */
static void count_pending(struct shared *shared, struct shared_place *place)
{
	if (atomic_load(&shared->pending_pid) != shared->self.pid) {
		return;
	}
	for (int device = 0; device < SHARED_DEVICES; device++) {
		int64_t bytes = atomic_exchange(&shared->pending[device], 0);
		move(place, device, bytes > 0 ? (uint64_t)bytes : 0,
		     bytes < 0 ? 0 - (uint64_t)bytes : 0);
	}
}

/*
 * This process's. A child of fork gets one of its own, with nothing in it, as it has no CUDA
 * memory; so does a program that was executed, since it is found by `fresh`.
 */
static struct shared_place *own_place(struct shared *shared, bool fresh)
{
	struct shared_place *place = atomic_load(&shared->own);
	if (!fresh && place != NULL && pid_of(place) == shared->self.pid &&
	    place->life.namespace == shared->self.namespace) {
		count_pending(shared, place);
		return place;
	}
	place = find_place(shared, fresh);
	if (place == NULL || fresh) {
		place = place != NULL ? place : empty_place(shared->file);
		if (place == NULL) {
			clear_dead(shared);
			place = empty_place(shared->file);
		}
		if (place == NULL) {
			return NULL;
		}
		clear(place);
		place->life.start = shared->self.start;
		place->life.namespace = shared->self.namespace;
		place->life.time_namespace = shared->self.time_namespace;
		/* Last: with a pid it counts. */
		__atomic_store_n(&place->life.pid, shared->self.pid, __ATOMIC_RELEASE);
	}
	atomic_store(&shared->own, place);
	count_pending(shared, place);
	return place;
}

/* ---- the lock ----------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * By trying: a wait with a deadline would be one by the clock of the wall, which may be set
 * meanwhile (pthread_mutex_clocklock is newer than the oldest glibc that we run on).
 */
static int wait_for_lock(struct shared *shared)
{
	struct timespec pause = { .tv_nsec = 20 * 1000 };
	int64_t end = now_ms() +
		      (atomic_load(&shared->is_stuck) ? PATIENCE_STUCK_MS : PATIENCE_MS);
	int error = EBUSY;
	for (int turn = 0; error == EBUSY && (turn < 20 || now_ms() < end); turn++) {
		if (turn < 20) {
			sched_yield(); /* it is held for less than a microsecond, most times */
		} else {
			nanosleep(&pause, NULL);
			pause.tv_nsec *= pause.tv_nsec < 1000 * 1000 ? 2 : 1;
		}
		error = pthread_mutex_trylock(&shared->file->lock);
	}
	return error;
}

/*
 * One that was killed with the lock held leaves at most its own place, which is cleared, half
 * written. One that was stopped with it is not waited for without end.
 */
static bool lock(struct shared *shared)
{
	int error = pthread_mutex_trylock(&shared->file->lock);
	if (error == EBUSY) {
		error = wait_for_lock(shared);
	}
	if (error != 0 && error != EOWNERDEAD) {
		atomic_store(&shared->is_stuck, true);
		return false;
	}
	if (shared->self.pid != (int32_t)getpid()) {
		life_of_self(&shared->self);
	}
	if (error == EOWNERDEAD) {
		pthread_mutex_consistent(&shared->file->lock);
		clear_dead(shared);
	}
	if (atomic_load(&shared->is_stuck)) {
		atomic_store(&shared->is_stuck, false);
	}
	return true;
}

static void unlock(const struct shared *shared)
{
	pthread_mutex_unlock(&shared->file->lock);
}

/* ---- what the policy asks ----------------------------------------------------------------- */

static uint64_t sum_of(const struct shared_file *file, int device)
{
	uint64_t sum = 0;
	uint32_t used = __atomic_load_n(&file->used, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < used && i < SHARED_PLACES; i++) {
		uint64_t bytes = pid_of(&file->places[i]) == 0 ?
					 0 :
					 __atomic_load_n(&file->places[i].bytes[device],
							 __ATOMIC_ACQUIRE);
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
			move(place, device, bytes, 0);
			result = SHARED_DONE;
		}
	}
	unlock(shared);
	return result;
}

/*
 * The place that this process has, which takes the lock only where it has none yet, as a child of
 * fork whose first memory was not claimed. NULL: neither is to be had.
 */
static struct shared_place *place_to_move(struct shared *shared)
{
	struct shared_place *place = atomic_load(&shared->own);
	if (place != NULL && pid_of(place) == (int32_t)getpid()) {
		return place;
	}
	if (!lock(shared)) {
		return NULL;
	}
	place = own_place(shared, false);
	unlock(shared);
	return place;
}

static void keep_pending(struct shared *shared, int device, int64_t bytes)
{
	int pid = (int)getpid();
	if (atomic_exchange(&shared->pending_pid, pid) != pid) {
		for (int i = 0; i < SHARED_DEVICES; i++) {
			atomic_store(&shared->pending[i], 0); /* its parent's */
		}
	}
	atomic_fetch_add(&shared->pending[device], bytes);
}

static void move_or_keep(struct shared *shared, int device, uint64_t more, uint64_t less)
{
	struct shared_place *place = more != less ? place_to_move(shared) : NULL;
	if (place != NULL) {
		move(place, device, more, less);
	} else if (more != less) {
		keep_pending(shared, device, (int64_t)(more - less));
	}
}

void shared_add(struct shared *shared, int device, uint64_t bytes)
{
	move_or_keep(shared, device, bytes, 0);
}

void shared_subtract(struct shared *shared, int device, uint64_t bytes)
{
	move_or_keep(shared, device, 0, bytes);
}

enum shared_result shared_sum(struct shared *shared, int device, uint64_t *ret_bytes)
{
	bool is_locked = lock(shared);
	if (is_locked) {
		clear_dead(shared);
	}
	*ret_bytes = sum_of(shared->file, device);
	if (is_locked) {
		unlock(shared);
	}
	return is_locked ? SHARED_DONE : SHARED_STUCK;
}

static int find_device(const struct shared_file *file, const unsigned char identity[16])
{
	uint32_t count = __atomic_load_n(&file->devices, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < count && i < SHARED_DEVICES; i++) {
		if (memcmp(file->identities[i], identity, 16) == 0) {
			return (int)i;
		}
	}
	return -1;
}

int shared_device(struct shared *shared, const unsigned char identity[16])
{
	struct shared_file *file = shared->file;
	int device = find_device(file, identity);
	if (device >= 0 || !lock(shared)) {
		return device;
	}
	device = find_device(file, identity);
	if (device < 0 && file->devices < SHARED_DEVICES) {
		device = (int)file->devices;
		memcpy(file->identities[device], identity, 16);
		__atomic_store_n(&file->devices, (uint32_t)device + 1, __ATOMIC_RELEASE);
	}
	unlock(shared);
	return device;
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

void shared_close(struct shared *shared)
{
	struct shared_place *place = atomic_load(&shared->own);
	if (place != NULL && shared->self.namespace == 0 && lock(shared)) {
		if (pid_of(place) == shared->self.pid) {
			clear(place);
		}
		unlock(shared);
	}
}
