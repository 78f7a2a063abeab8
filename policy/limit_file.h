/* SPDX-License-Identifier: Apache-2.0 */
/* The file of limit_shared.c: what is in it, where it lies, and how it is begun. */
#ifndef CUWEIR_POLICY_LIMIT_FILE_H
#define CUWEIR_POLICY_LIMIT_FILE_H

#include "limit_shared.h"

#include <pthread.h>

#define SHARED_PLACES 256

/* One process. */
struct shared_place {
	int32_t pid; /* 0: none */
	uint32_t reserved;
	uint64_t start;     /* in ticks since the boot: pids come again */
	uint64_t namespace; /* of the pid */
	uint64_t bytes[SHARED_DEVICES];
};

struct shared_file {
	char magic[8];     /* written last, when the rest is there */
	uint32_t size;     /* of this struct: programs of 32 and 64 bits differ */
	uint32_t used;     /* places that were ever used */
	char boot[40];     /* the lock of another boot may be held for ever */
	pthread_mutex_t lock;
	uint32_t devices;
	uint32_t reserved;
	unsigned char identities[SHARED_DEVICES][16];
	struct shared_place places[SHARED_PLACES];
};

/*
 * Maps the file, which is made where it is not there, if `make`. *ret_namespace is that of this
 * process's id. NULL with the reason written, "" where there is nothing and nothing was made.
 */
struct shared_file *shared_file_map(const char *name, bool make, uint64_t *ret_namespace,
				    char *ret_reason, size_t size);

#endif
