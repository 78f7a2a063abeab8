/* SPDX-License-Identifier: Apache-2.0 */
/* Who a process is to the others that share a limit, and whether one of them still lives. */
#ifndef CUWEIR_POLICY_LIMIT_LIFE_H
#define CUWEIR_POLICY_LIMIT_LIFE_H

#include <stdbool.h>
#include <stdint.h>

struct life {
	int32_t pid;
	uint64_t start;     /* in ticks since the boot: pids come again; 0: not known */
	uint64_t namespace; /* of the pid; 0: not known, and the same as no other */
	uint64_t time_namespace; /* `start` is told in it; 0: not known, and the same as no other */
};

/* Of this process, as far as /proc can be read. */
void life_of_self(struct life *ret_life);

/*
 * Whether /proc has this process's namespace of pids. Where it was mounted for another one, as
 * after `unshare -pf`, the same number is another process there.
 */
bool life_can_use_proc(void);

/* Whether `other` lives; true where that cannot be known. `can_use_proc`: as the one above says. */
bool life_goes_on(const struct life *self, const struct life *other, bool can_use_proc);

#endif
