/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shim knows of the calling thread. Zero is a valid start; nothing is torn down.
 * Kept small: it lies in the static TLS block (128 bytes are always to be had there).
 */
#ifndef CW_THREAD_H
#define CW_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "common.h"

struct cw_request;
struct cuweir_event;

struct cw_thread {
	const struct cw_request *request; /* the operation that a callback is about, or NULL */
	const struct cuweir_event *event; /* its facts */
	void *context;              /* the current CUcontext, where context_known */
	const void *runtime_site;   /* who called the runtime function we are in */
	uint32_t tid;               /* the kernel's id, 0 until asked */
	uint32_t in_callback;       /* a bit for each policy in a callback of this thread */
	uint16_t runtime_hook;      /* id of the runtime function we are in, plus 1 */
	uint8_t silent;             /* doors only forward: an outer door does the work */
	bool context_known;         /* set by a hook, not by a query: see where.h */
	int16_t device;             /* of `context`, where context_known */
};

extern CW_TLS struct cw_thread cw_thread;

uint32_t cw_thread_ask_id(void);

static inline uint32_t cw_thread_id(void)
{
	return CW_LIKELY(cw_thread.tid != 0) ? cw_thread.tid : cw_thread_ask_id();
}

#endif
