/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory figures that a policy may lower: what the doors share that hear the question. A figure
 * is answered once for a call of the program's, by the innermost door that hears it; a question
 * that a policy asks within a callback is the driver's alone to answer. Any thread.
 */
#ifndef CW_QUERY_H
#define CW_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "hooks.h"

struct cw_query {
	const char *call;
	int device;
	uint64_t free_bytes;  /* 0 where it was not asked for */
	uint64_t total_bytes;
};

/* Whether any policy is to be asked. Opens the policies at the first call (D-16). */
bool cw_query_wanted(void);

/* Asks the policies, innermost first; the figures are what the program gets. */
void cw_query_answer(struct cw_query *query);

/* The function that the program is told to have called: this hook's, or the runtime's query. */
const char *cw_query_call(enum cw_hook_id hook);

/* The total that the driver door answered last for a device: runtimes keep it and show it. */
void cw_query_note_total(int device, uint64_t total);
bool cw_query_total_told(int device, uint64_t total);

#endif
