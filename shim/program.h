/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event handler that a program sets by cuweir.h: place 0 of the chain, the outermost. It
 * comes and goes while other threads allocate; after cw_program_clear has returned, no callback
 * of it runs or begins in another thread.
 */
#ifndef CW_PROGRAM_H
#define CW_PROGRAM_H

#include <cuweir/cuweir.h>

#include "chain.h"

/* Fills place 0, at the opening. */
void cw_program_place(struct cw_policy *policy);

/* The outermost place but that one; while no handler is set, it is the first to be told. */
void cw_program_set_outer(uint32_t outer);

/* CUWEIR_ERROR_NOT_PERMITTED where one is set already, which stays. */
int cw_program_set(const struct cuweir_event_handler *handler, void *state, bool debug);
void cw_program_clear(void);

/* Threads that were in the handler are not in the child, but for the one that forked. */
void cw_program_postfork_child(void);

#endif
