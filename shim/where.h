/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an operation takes place: which context and device, and whether a capture is open.
 * Contexts, streams and captures are followed through the hooks; the driver is asked, with
 * read-only queries, only where nothing was heard, and never while a capture is open but for
 * cuStreamIsCapturing (D-15). What a query said of the current context is not remembered: a
 * program may have ways of changing it that no door hears.
 */
#ifndef CW_WHERE_H
#define CW_WHERE_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_api.h"
#include "thread.h"

struct cw_where {
	CUcontext context; /* NULL: none */
	int device;        /* -1: none */
};

/* Number of stream captures open in the process, as far as heard. */
extern uint32_t cw_captures_open_;

static inline bool cw_capture_open(void)
{
	return __atomic_load_n(&cw_captures_open_, __ATOMIC_RELAXED) != 0;
}

void cw_where_ask_current(struct cw_where *ret);

static inline void cw_where_current(struct cw_where *ret)
{
	if (CW_LIKELY(cw_thread.context_known)) {
		ret->context = cw_thread.context;
		ret->device = cw_thread.device;
	} else {
		cw_where_ask_current(ret);
	}
}

/* Of a stream as the program gave it; `per_thread` says what a NULL stream means. */
void cw_where_of_stream(CUstream stream, struct cw_where *ret);

/* Whether this very stream is being captured; a query only while a capture is open. */
bool cw_stream_is_capturing(CUstream stream, bool per_thread);

/*
 * The size of memory that was imported: neither the handle nor the call tells it, and only the
 * driver knows. 0 where it may not be asked (docs/decisions/0003-size-of-imports.md).
 */
uint64_t cw_ask_size(CUdeviceptr pointer);

/* What the hooks heard. */
void cw_heard_current(CUcontext context);         /* is now this thread's current one */
void cw_heard_current_lost(void);                 /* some other one is, by a pop */
void cw_heard_context(CUcontext context, int device);
void cw_heard_context_end(CUcontext context);
void cw_heard_stream(CUstream stream);            /* created in the current context */
void cw_heard_stream_end(CUstream stream);
/* False where this capture was heard of before. */
bool cw_heard_capture_begin(CUstream stream, bool per_thread);
void cw_heard_capture_end(CUstream stream, bool per_thread);

/* Primary contexts: the context of a device, NULL where none was heard of, and references. */
void cw_heard_primary_retain(CUcontext context, int device);
CUcontext cw_primary_context(int device, int *ret_references);
/* A reference that came without the context's handle, by a green context. */
void cw_heard_primary_reference(int device);
/* Returns the references that are left, or -1 where none was known. */
int cw_heard_primary_release(int device);
void cw_heard_primary_reset(int device); /* ended, although references are left */

/*
 * Another handle of a device's primary context, as green contexts convert to: what is done with
 * it current is the primary context's. Where that was not heard of, the alias stands for it.
 */
void cw_heard_alias(CUcontext alias, int device);
void cw_heard_alias_end(CUcontext alias);
void cw_heard_stream_of_primary(CUstream stream, int device);

void cw_where_postfork_child(void);

#endif
