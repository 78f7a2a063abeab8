/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks (CUWEIR_STACK): who called who called CUDA, for reports. Off by default; then a
 * call site is one address, and nothing here costs anything. On, a call site is the address of
 * a stack that is stored once, in an arena of fixed size, so that it can stand wherever a
 * site does: in origins, in peaks. Where there is no room, or no stack, it is one address again.
 *
 * glibc's backtrace() does the walking: with its tables loaded at the opening it takes no memory.
 * Any thread; no lock is held while it walks.
 */
#ifndef CW_STACKS_H
#define CW_STACKS_H

#include <stdint.h>

#include "common.h"

enum { CW_STACK_MAX = 32 };

extern CW_HIDDEN unsigned int cw_stack_depth_; /* 0: off */

/* Of at most `depth` frames; at the opening, before any call is plain. */
void cw_stacks_open(unsigned int depth);

/* What to store as the site of the program's call that returns to `site`. */
uint64_t cw_stack_take_(const void *site);

static inline uint64_t cw_stack_of(const void *site)
{
	return CW_LIKELY(cw_stack_depth_ == 0) ? (uint64_t)(uintptr_t)site : cw_stack_take_(site);
}

/* A stored site's frames, the program's call first; 1 where it is one address. */
unsigned int cw_stack_frames(uint64_t site);
/* 0 beyond the last. */
uint64_t cw_stack_frame(uint64_t site, unsigned int index);

void cw_stacks_postfork_child(void);

#endif
