/* SPDX-License-Identifier: Apache-2.0 */
/* What the program of opening.c does for the constructor of its library. */
#ifndef OPENING_H
#define OPENING_H

#include <pthread.h>
#include <stdatomic.h>

void opening_start(void);    /* a thread that allocates 1000 bytes; it is well under way then */
void opening_allocate(void); /* 2000 bytes */
void opening_allocate_joined(void); /* 2000 bytes, by a thread that is waited for */

extern pthread_t opening_thread;

/* How far things have come; a wait of 20 s at most. The policy slow_open knows two by name. */
extern atomic_bool opening_first_call;
extern atomic_bool opening_in_open;
extern atomic_bool opening_in_constructor;
void opening_wait(atomic_bool *flag);

#endif
