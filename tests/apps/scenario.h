/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of a scenario, and the ways into CUDA that perform them. A status is a
 * CUresult or a cudaError_t, whichever the way has; both number the common ones alike.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct stream {
	void *handle; /* NULL: the default one */
	bool per_thread;
};

/* NULL where a way has no such call; the scenario then ends with 77. */
struct way {
	/* Opens what there is to open and makes device 0 current; `how` is after the "=". */
	int (*start)(const char *how);
	int (*alloc)(unsigned long long *p, size_t size);
	int (*alloc_pitch)(unsigned long long *p, size_t *pitch, size_t width, size_t height);
	int (*alloc_managed)(unsigned long long *p, size_t size);
	int (*free)(unsigned long long p);
	int (*alloc_async)(unsigned long long *p, size_t size, struct stream s);
	int (*free_async)(unsigned long long p, struct stream s);
	int (*alloc_host)(unsigned long long *p, size_t size);
	int (*host_alloc)(unsigned long long *p, size_t size);
	int (*free_host)(unsigned long long p);
	int (*info)(size_t *free_bytes, size_t *total_bytes);
	int (*stream_create)(void **stream);
	int (*stream_destroy)(void *stream);
	int (*capture_begin)(struct stream s);
	int (*capture_end)(struct stream s);
	int (*device)(int device);
	int (*device_reset)(int device);
	int (*synchronize)(void);
	int (*context_create)(int device);
	int (*context_destroy)(void);
	int (*context_pop)(void);
	int (*primary_release)(int device);
	int (*last_error)(bool clear);
};

/* Defined by the one way_*.c that a program is built with. */
extern const struct way way;

#define MAX_SLOTS 512

struct slot {
	char name[24];
	int by; /* what its memory was allocated by, and so has to be freed by */
	unsigned long long value;
};

struct slots {
	int count;
	struct slot slots[MAX_SLOTS];
};

/* A thread of the scenario: the words that it runs and the names of its own. */
struct strand {
	int begin;
	int end;
	int device;
	pthread_t thread;
	struct slots own;
};

/* commands.c: performs one command and gives its status. */
int scenario_command(struct strand *self, char **word, int count);

/* The script is wrong, not what it found: ends the program with 2. */
_Noreturn void scenario_die(const char *what, const char *which);

#endif
