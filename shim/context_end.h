/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a context (D-17): begin takes its records out of the ledger before the real call,
 * finish puts them back when the call failed, or else moves the totals and tells the policies.
 */
#ifndef CW_CONTEXT_END_H
#define CW_CONTEXT_END_H

#include <stdbool.h>
#include <stdint.h>

#include "batch.h"
#include "cuda_api.h"
#include "hooks.h"

struct cw_context_end {
	struct cw_batch batch;
	int device;
	uint32_t thread;             /* that ends it */
	struct cw_context_end *next; /* of those under way */
};

void cw_context_end_begin(struct cw_context_end *end, CUcontext context, int device,
			  enum cw_hook_id hook, const void *site);

/* The status of a dealloc-threshold callback, or 0. */
int cw_context_end_finish(struct cw_context_end *end, bool ended);

/*
 * A context has been made that may have the handle of one that another thread is ending: its end
 * is told before anything of the new one. A policy that takes for ever is not waited for.
 */
void cw_context_end_wait(CUcontext context);

void cw_context_end_postfork_child(void);

/* False also where nobody can be asked: while a capture is open. */
bool cw_primary_is_active(CUdevice dev);

/*
 * One reference to a device's primary context is given up by `perform`, whichever call that is;
 * with the last the context ends. driver_context.c.
 */
CUresult cw_primary_give_up(enum cw_hook_id hook, const void *site, CUdevice dev,
			    CUresult (*perform)(void *real, uint64_t argument), void *real,
			    uint64_t argument);

#endif
