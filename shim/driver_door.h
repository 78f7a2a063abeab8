/* SPDX-License-Identifier: Apache-2.0 */
/* What the bodies of the driver door share: whether to act at all, and filling a request. */
#ifndef CW_DRIVER_DOOR_H
#define CW_DRIVER_DOOR_H

#include <cuweir/policy.h>
#include <stdbool.h>

#include "config.h"
#include "lifecycle.h"
#include "pipeline.h"
#include "resolve.h"
#include "thread.h"
#include "totals.h"
#include "where.h"

/* False: forward the call and nothing else. Opens policies and logs on the first call. */
static inline bool cw_driver_door_open(void)
{
	return cw_ready() && CW_LIKELY(!cw_thread.silent) && CW_LIKELY(!cw_config.driver_off);
}

/* Everything but perform, undo and the place. */
static inline void cw_driver_request(struct cw_request *request, enum cw_hook_id hook,
				     const void *site, void *real, uint64_t bytes)
{
	request->hook = hook;
	request->call = hook;
	request->site = site;
	if (cw_thread.runtime_hook != 0) {
		/* Within a runtime call: that is what the program called, and from where. */
		request->call = (enum cw_hook_id)(cw_thread.runtime_hook - 1);
		request->site = cw_thread.runtime_site;
	}
	request->context = NULL;
	request->stream = NULL;
	request->stream_context = NULL;
	request->device = -1;
	request->kind = cw_hooks[hook].kind;
	request->origin_flags = 0;
	request->space = CW_KEY_ADDRESS;
	request->flags = 0;
	request->requested = bytes;
	request->charged = bytes;
	request->pointer = 0;
	request->undo = NULL;
	request->locate = NULL;
	request->real = real;
	request->status = CUDA_SUCCESS;
	request->retry_count = 0;
	request->retries = 0;
	request->first_failure_ns = 0;
	request->listening = false;
	request->budget = NULL;
	request->claimed = 0;
	request->servable = false;
	request->keep_claim = false;
	request->alignment = 0;
	request->owner = 0;
	request->next_status = CUDA_SUCCESS;
	request->untold = false;
	request->resume = 0;
	request->slow_told = false;
	request->hopeless = false;
}

/* Memory of the current context, which goes with it. */
static inline void cw_driver_here(struct cw_request *request)
{
	struct cw_where where;

	cw_where_current(&where);
	request->context = where.context;
	request->device = where.device;
	request->origin_flags = CW_ORIGIN_CONTEXT_BOUND;
}

/* Memory of a pool: of the stream's device, and of no context (D-17). */
static inline void cw_driver_on_stream(struct cw_request *request, CUstream stream,
				       bool per_thread)
{
	struct cw_where where;

	cw_where_of_stream(stream, &where);
	request->device = where.device;
	request->stream = stream;
	request->stream_context = where.context;
	request->flags = CUWEIR_EVENT_STREAM_ORDERED | (per_thread ? CUWEIR_EVENT_PER_THREAD : 0u);
}

/* Of linear memory of all sorts: by cuMemFree. */
CUresult cw_driver_undo_free(struct cw_request *request);

#endif
