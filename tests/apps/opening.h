/* SPDX-License-Identifier: Apache-2.0 */
/* What the program of opening.c does for the constructor of its library. */
#ifndef OPENING_H
#define OPENING_H

#include <pthread.h>

void opening_start(void);    /* a thread that allocates 1000 bytes; it is well under way then */
void opening_allocate(void); /* 2000 bytes */
void opening_allocate_joined(void); /* 2000 bytes, by a thread that is waited for */

extern pthread_t opening_thread;

#endif
