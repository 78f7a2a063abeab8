/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of one operation: a door fills a request on its stack, and these carry it through
 * the policies, the driver, the ledger, the totals and the handlers. Any thread; no lock is
 * held while the driver or a policy runs.
 */
#ifndef CW_PIPELINE_H
#define CW_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_api.h"
#include "hooks.h"
#include "origins.h"

/*
 * What a record is found by. Linear memory goes by its address; arrays and the like are known
 * by opaque handles, which may equal an address, and so carry the number of their sort in the
 * top byte, which no address uses.
 */
enum cw_key_space {
	CW_KEY_ADDRESS = 0,
	CW_KEY_ARRAY = 1,
	CW_KEY_MIPMAPPED_ARRAY = 2,
	CW_KEY_PHYSICAL = 3, /* memory of cuMemCreate, by a number of ours */
	CW_KEY_RANGE = 4,    /* reserved address space */
	CW_KEY_EXTERNAL = 5,
	CW_KEY_REGISTERED = 6,
};

enum { CW_KEY_SHIFT = 56 };

static inline uint64_t cw_key(enum cw_key_space space, uint64_t handle)
{
	return (uint64_t)space << CW_KEY_SHIFT | handle;
}

static inline uint64_t cw_key_handle(uint64_t key)
{
	return key & (((uint64_t)1 << CW_KEY_SHIFT) - 1);
}

/* Namespace in handles.h: the requested bytes of pitched memory, by its address. */
enum { CW_PITCHED_SPACE = 80 };

struct cw_request {
	/* What the door knows. */
	enum cw_hook_id hook;    /* the function we stand in for */
	enum cw_hook_id call;    /* the function the program called: what events show */
	const void *site;        /* where the program called it */
	void *context;
	void *stream;
	void *stream_context;    /* that `stream` belongs to; NULL: not looked up */
	int device;
	uint8_t kind;            /* enum cuweir_kind */
	uint8_t origin_flags;
	uint8_t space;           /* enum cw_key_space, of `pointer` */
	uint32_t flags;          /* CUWEIR_EVENT_... */
	uint64_t requested;
	uint64_t charged;
	uint64_t pointer;        /* of a free from the start, of an allocation from success on */
	uint64_t stack;          /* the site as stacks.h has it; valid once it is in the books */

	/*
	 * The real call: perform sets `pointer`, and `charged` where only the driver knows it,
	 * and touches nothing of the program's. undo gives `pointer` back by the same family of
	 * call on the same stream; NULL where that cannot be done. A free has perform alone.
	 */
	CUresult (*perform)(struct cw_request *request);
	CUresult (*undo)(struct cw_request *request);
	/* The context became known only by performing; NULL: it cannot. */
	void (*locate)(struct cw_request *request);
	uint64_t arguments[4];   /* for perform */
	void *real;              /* the real function */

	/* What the pipeline keeps. */
	struct cw_budget *budget; /* what was claimed, and from which; see grant.c */
	uint64_t claimed;
	uint64_t refused;        /* with a budget: what it had no room for once the size was known, or 0 */
	bool servable;           /* a policy with an allocator may serve it */
	bool keep_claim;         /* a reservation's: given back only at the final outcome */
	uint16_t alignment;      /* that an allocator is asked for; 0: any */
	uint16_t owner;          /* the policy whose memory it is, as place + 1; 0: the driver's */
	int next_status;         /* how a policy's `next` failed for it, 0 where it did not */
	int next_freed;          /* what the driver said to a free through it; set by serve.c */
	uint64_t before;
	uint64_t after;
	int status;
	uint32_t in_callback;    /* policies that this thread is in a callback of already */
	int retry_count;         /* of the policy that is asked just now */
	int64_t retries;         /* of all policies together */
	uint32_t frees_seen;     /* see wait.h; valid when listening */
	bool listening;
	bool untold;             /* allocated, but not in the books */
	uint32_t resume;         /* see attempt.c; 0: nothing to resume */
	bool slow_told;
	bool hopeless;           /* there is no memory for our own books: not to be tried again */
	int64_t first_failure_ns;
};

static inline uint64_t cw_request_key(const struct cw_request *request)
{
	return cw_key((enum cw_key_space)request->space, request->pointer);
}

/* The status for the program; on success request->pointer (and charged) hold the result. */
CUresult cw_allocate(struct cw_request *request);

/* Gives request->pointer back; the facts of the record are filled in. */
CUresult cw_deallocate(struct cw_request *request);

/*
 * What began as plain (plain.h) and is not: the driver has answered, and where `entered` the
 * books have it, with before and after; a free's record is out of the ledger.
 */
struct cw_record;
/* What a record says, for the operation that ends it. */
void cw_facts_of(struct cw_request *request, const struct cw_record *detached);

CUresult cw_allocate_rest(struct cw_request *request, CUresult result, bool entered);
CUresult cw_deallocate_detached(struct cw_request *request, const struct cw_record *detached);
CUresult cw_deallocate_rest(struct cw_request *request, const struct cw_record *detached,
			    CUresult result, bool settled);

/*
 * Memory that came, or went, by an operation that is done and cannot be undone (a graph's launch,
 * what it frees): it is accounted and told. What request->claimed has of the budget already is
 * not counted again; what is missing is, over the limit too. A status of on_alloc_threshold is
 * told and ignored (D-06); cw_forget returns that of on_dealloc_threshold (D-08), and leaves the
 * facts of what has gone in the request, charged 0 where nothing was known.
 */
void cw_adopt(struct cw_request *request);
CUresult cw_forget(struct cw_request *request);

/*
 * Before such an operation: whether the policies admit request->requested bytes. And where it
 * will not be done: policies hear of the failure, as of an allocation's; `refused` by one of
 * ours, it is also counted and said.
 */
CUresult cw_ask_for_launch(struct cw_request *request);
void cw_refuse_launch(struct cw_request *request, CUresult status, bool refused);

/* Frees of addresses that nobody knew, and allocations that could not be recorded. */
uint64_t cw_untracked_frees(void);
uint64_t cw_retries(void);
void cw_count_retry(void);
uint64_t cw_failed_allocations(void); /* out of memory, as the program got it */
uint64_t cw_untracked_allocations(void);
void cw_count_untracked_allocation(void);
void cw_count_untracked_free(void);

/* An error that ended a context came back, after which what it held counts as gone (D-07). */
void cw_note_fatal(int status);

/* Whether an error that ended a context was seen. */
bool cw_context_lost(void);

#endif
