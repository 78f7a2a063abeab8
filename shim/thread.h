/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shim knows of the calling thread. Zero is a valid start; nothing is torn down.
 * Kept small: it lies in the static TLS block (128 bytes are always to be had there).
 */
#ifndef CW_THREAD_H
#define CW_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common.h"

struct cw_count;
struct cw_request;
struct cuweir_event;

struct cw_thread {
	uint32_t in_callback;       /* a bit for each policy in a callback of this thread */
	uint32_t silent;            /* doors only forward: an outer door does the work */
	void *context;              /* the current CUcontext, where context_known */
	const void *runtime_site;   /* who called the runtime function we are in */
	uint16_t runtime_hook;      /* id of the runtime function we are in, plus 1 */
	int16_t device;             /* of `context`, where context_known */
	bool context_known;         /* set by a hook, not by a query: see where.h */
	uint8_t zero[3];
	uint32_t tid;               /* the kernel's id, 0 until asked */
	struct cw_count *counts;    /* this thread's share of counts.h; NULL: not chosen yet */
	const struct cw_request *request; /* the operation that a callback is about, or NULL */
	const struct cuweir_event *event; /* its facts */
};

_Static_assert(offsetof(struct cw_thread, silent) == 4, "read at once");
_Static_assert(offsetof(struct cw_thread, runtime_hook) % 8 == 0 &&
	       offsetof(struct cw_thread, tid) == offsetof(struct cw_thread, runtime_hook) + 8,
	       "compared at once");

extern CW_HIDDEN CW_TLS struct cw_thread cw_thread;

typedef uint64_t __attribute__((may_alias)) cw_two_words;

/* Neither in a callback nor silent: one load. */
static inline bool cw_thread_is_free(void)
{
	return !CW_IS_SET(*(const cw_two_words *)&cw_thread, __ATOMIC_RELAXED);
}

/* The runtime call, the device and whether the context is known: to be compared as a whole. */
static inline uint64_t cw_thread_how(void)
{
	uint64_t how;

	__builtin_memcpy(&how, &cw_thread.runtime_hook, sizeof(how));
	return how;
}

uint32_t cw_thread_ask_id(void);

static inline uint32_t cw_thread_id(void)
{
	return CW_LIKELY(cw_thread.tid != 0) ? cw_thread.tid : cw_thread_ask_id();
}

#endif
