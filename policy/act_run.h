/* SPDX-License-Identifier: Apache-2.0 */
/* The deeds of the policy `act`. None waits for anybody, and none touches CUDA. Any thread. */
#ifndef CUWEIR_POLICY_ACT_RUN_H
#define CUWEIR_POLICY_ACT_RUN_H

#include <stdbool.h>
#include <stddef.h>

#define ACT_FACTS 10

/* "NAME=value" for a command's environment. */
struct act_facts {
	char entries[ACT_FACTS][160];
	size_t count;
};

/*
 * A copy of the environment that a command gets, without what would preload cuweir into it;
 * room for facts at its end. NULL where there is no memory.
 */
char **act_environment(void);

/*
 * Starts `command` by /bin/sh and leaves it: it is no child of this process, which neither gets
 * a SIGCHLD nor has anything to wait for. Its output goes to stderr. 0 or an errno.
 */
int act_run(const char *command, char **environment, const struct act_facts *facts);

/*
 * Appends `line` to a file, or writes it to a FIFO that has a reader; never blocks, and raises
 * no SIGPIPE. 0 or an errno: ENXIO for a FIFO that nobody reads.
 */
int act_write(const char *path, const char *line, size_t length);

#endif
