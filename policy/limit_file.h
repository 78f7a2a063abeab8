/* SPDX-License-Identifier: Apache-2.0 */
/* The file of limit_shared.c: what is in it, where it lies, and how it is begun. */
#ifndef CUWEIR_POLICY_LIMIT_FILE_H
#define CUWEIR_POLICY_LIMIT_FILE_H

#include "limit_life.h"
#include "limit_shared.h"

#include <pthread.h>

#define SHARED_PLACES 256

/*
 * One process. Its pid and bytes are atomic, and read without the lock as well; only the process
 * itself changes its bytes, and it takes no lock for that unless the sum must not be above a limit.
 */
struct shared_place {
	struct life life; /* pid 0: none */
	uint64_t bytes[SHARED_DEVICES];
};

struct shared_file {
	char magic[8];     /* written last, when the rest is there */
	uint32_t size;     /* of this struct: programs of 32 and 64 bits differ */
	uint32_t used;     /* places that were ever used; atomic */
	char boot[40];     /* the lock of another boot may be held for ever; zeros: not known */
	pthread_mutex_t lock;
	uint32_t devices;  /* atomic: identities are only added */
	uint32_t reserved;
	unsigned char identities[SHARED_DEVICES][16];
	struct shared_place places[SHARED_PLACES];
};

/*
 * Maps the file, which is made where it is not there, if `make`; *ret_file is NULL where it was
 * not. 0, and ret_text is a line that is to be told, or ""; -1 with the reason in it.
 */
int shared_file_map(const char *name, bool make, struct shared_file **ret_file, char *ret_text,
		    size_t size);

#endif
