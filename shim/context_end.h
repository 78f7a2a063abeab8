/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a context (D-17): begin takes its records out of the ledger before the real call,
 * finish puts them back when the call failed, or else moves the totals and tells the policies.
 */
#ifndef CW_CONTEXT_END_H
#define CW_CONTEXT_END_H

#include <stdbool.h>

#include "cuda_api.h"
#include "hooks.h"
#include "ledger.h"

struct cw_context_end {
	struct cw_record_list records;
	CUcontext context;
	int device;
	enum cw_hook_id call;
	const void *site;
};

void cw_context_end_begin(struct cw_context_end *end, CUcontext context, int device,
			  enum cw_hook_id call, const void *site);

/* The status of a dealloc-threshold callback, or 0. */
int cw_context_end_finish(struct cw_context_end *end, bool ended);

#endif
