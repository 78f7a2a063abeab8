/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What several processes of one user hold of each device, in a file that they map. Each process
 * has a place of its own in it, and the sum is made anew at each question, over the places of
 * processes that live: nothing can be left wrong by one that is killed. Only what must not pass
 * the limit waits for the lock: what is given back counts at once, whoever was stopped with it.
 * All functions may be called from any thread; none calls CUDA or a policy.
 */
#ifndef CUWEIR_POLICY_LIMIT_SHARED_H
#define CUWEIR_POLICY_LIMIT_SHARED_H

#include "limit_life.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARED_NAME_MAX 64
#define SHARED_DEVICES 16

struct shared_file;
struct shared_place;

struct shared {
	struct shared_file *file;
	struct life self; /* with the lock held; of the parent in a child, until it has it */
	_Atomic(struct shared_place *) own; /* written with the lock held */
	atomic_bool is_stuck; /* the lock was waited for in vain: not so long again */
	atomic_int pending_pid;
	_Atomic(int64_t) pending[SHARED_DEVICES]; /* of a process that has no place yet */
};

/* How an operation ended. */
enum shared_result {
	SHARED_DONE,
	SHARED_OVER,  /* the sum would be above the limit */
	SHARED_STUCK, /* the lock is not to be had, or there is no place left */
};

/* True for a name that can be a file's. */
bool shared_name_is_good(const char *name, size_t length);

/* Whether it could be opened, as far as that is known without making anything. 0, or -1. */
int shared_check(const char *name, char *ret_reason, size_t size);

/* 0, and ret_text is a line that is to be told, or ""; or -1 with the reason in it. */
int shared_open(struct shared *shared, const char *name, char *ret_text, size_t size);

/*
 * At the exit: gives up the place of a process whose end the others cannot see, as it knows no
 * namespace of its own.
 */
void shared_close(struct shared *shared);

/* The number of the device in the file, by what identifies it; -1 where there is no room. */
int shared_device(struct shared *shared, const unsigned char identity[16]);

/* Adds `bytes` to this process's share if the sum of all is not above `limit` then. */
enum shared_result shared_claim(struct shared *shared, int device, uint64_t limit,
				uint64_t bytes);

/* Adds what is there already, or takes away: at once, without the lock. */
void shared_add(struct shared *shared, int device, uint64_t bytes);
void shared_subtract(struct shared *shared, int device, uint64_t bytes);

/* The sum of the processes that live; of those last seen alive if the lock is not to be had. */
enum shared_result shared_sum(struct shared *shared, int device, uint64_t *ret_bytes);

#endif
