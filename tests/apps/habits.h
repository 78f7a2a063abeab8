/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of habits.c: what a thread and a process keep, and a library that ends late. */
#ifndef HABITS_H
#define HABITS_H

/* Called by the destructor of the library that habits.c is linked to. */
extern void (*habits_at_unload)(void);

/* WAY. */
extern const char *habits_how;

/* Threads, descriptors, signal handlers and mask, file mode mask. */
void print_process(void);

void keep_errno(void);
void keep_dlerror(void);
void keep_process(void);
void under_signals(void);

#endif
