/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What several processes of one user hold of each device, in a file that they map. Each process
 * has a place of its own in it, and the sum is made anew at each question, over the places of
 * processes that live: nothing can be left wrong by one that is killed. All functions may be
 * called from any thread and take the lock for a moment; none calls CUDA or a policy.
 */
#ifndef CUWEIR_POLICY_LIMIT_SHARED_H
#define CUWEIR_POLICY_LIMIT_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARED_NAME_MAX 64
#define SHARED_DEVICES 16

struct shared_file;
struct shared_place;

struct shared {
	struct shared_file *file;
	struct shared_place *own; /* written with the lock held */
	uint64_t namespace; /* of process ids */
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

/* The number of the device in the file, by what identifies it; -1 where there is no room. */
int shared_device(struct shared *shared, const unsigned char identity[16]);

/* Adds `bytes` to this process's share if the sum of all is not above `limit` then. */
enum shared_result shared_claim(struct shared *shared, int device, uint64_t limit,
				uint64_t bytes);

/* Adds what is there already, or takes away. */
void shared_add(struct shared *shared, int device, uint64_t bytes);
void shared_subtract(struct shared *shared, int device, uint64_t bytes);

/* The sum of the processes that live; false where the lock is not to be had. */
bool shared_sum(struct shared *shared, int device, uint64_t *ret_bytes);

#endif
