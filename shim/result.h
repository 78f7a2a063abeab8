/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `cuweir run --error-exitcode` learns of each process: a slot in a file that it has made
 * and all of them map, kept true at each operation, so that it holds however a process ends:
 * by _exit, by a signal, by exec. `command/watch.c` is the reader.
 */
#ifndef CW_RESULT_H
#define CW_RESULT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "proc_stat.h"

#define CW_RESULT_SLOTS 4095

/* The file's: then its maker's pid, a '-', and the namespace of pids that this is in. */
#define CW_RESULT_NAME "/cuweir-result-"

struct cw_result_slot {
	uint64_t live;    /* allocations */
	uint64_t refused; /* allocations that failed for want of memory, as the program got it */
	uint32_t pid;     /* 0: not filled in yet */
	uint32_t lost;    /* 1: a fatal error took the context, and what was live with it */
	/* Who that pid was: in clock ticks since the boot, and in which namespace of pids. */
	uint64_t started;
	uint64_t pid_namespace;
	uint64_t unused[3];
};

struct cw_result_file {
	uint64_t taken; /* slots asked for, which may be more than there are */
	uint64_t unused[7];
	struct cw_result_slot slots[CW_RESULT_SLOTS];
};

/* This process's, of "pid:[4026531836]"; 0: unknown. */
static inline uint64_t cw_result_namespace(void)
{
	char text[64];
	ssize_t length = readlink("/proc/self/ns/pid", text, sizeof(text) - 1);
	const char *at;

	text[length > 0 ? length : 0] = '\0';
	at = strchr(text, '[');
	return at != NULL ? proc_number(at + 1) : 0;
}

/* Takes a slot for this process; without one nothing is told. Before any call is plain. */
void cw_result_open(const char *path);
void cw_result_refused(void);
void cw_result_lost(void);
/* The slot is the parent's; the child takes its own when it has anything to tell. */
void cw_result_postfork_child(void);

#endif
