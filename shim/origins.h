/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Origins: what many allocations have in common (call, kind, device, context, owning policy,
 * call site), stored once and named by a 32-bit index in the ledger's records.
 *
 * Append-only: an index, and the pointer that cw_origin_get gives for it, stay valid for the
 * life of the process (a fork child starts anew). Any thread, any time, as ledger.h.
 *
 * At most 2^20 origins, and when room gets short, detail is dropped, the least needed first,
 * so that what accounting and a free need is kept to the end: from CW_ORIGIN_FULL_LIMIT on a
 * new tuple is stored without its site; from CW_ORIGIN_SITELESS_LIMIT on without site, context
 * and hook (kind, flags, device and policy stay; the end of a context no longer finds such
 * records). Only when that is full too (65,536 different such tuples), or memory is
 * refused by the kernel, the index is CW_ORIGIN_UNKNOWN: the caller then treats the allocation
 * as untracked, as for -ENOMEM of the ledger.
 */
#ifndef CW_ORIGINS_H
#define CW_ORIGINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common.h"

#define CW_ORIGIN_UNKNOWN 0u
#define CW_ORIGIN_LIMIT (1u << 20)
#define CW_ORIGIN_FULL_LIMIT (CW_ORIGIN_LIMIT - (1u << 17))
#define CW_ORIGIN_SITELESS_LIMIT (CW_ORIGIN_LIMIT - (1u << 16))

/* Flags of an origin (struct cw_origin). */
enum {
	CW_ORIGIN_CONTEXT_BOUND = 1u << 0, /* goes with its context (D-17) */
	CW_ORIGIN_PITCHED = 1u << 1,       /* asked for less than is charged */
	CW_ORIGIN_DIRECT = 1u << 2,        /* handed out by cuweir.h */
	CW_ORIGIN_RESIZABLE = 1u << 3,     /* the same, and may be given to cuweir_reallocate */
};

/* No padding: compared and hashed as three words. Zero what is not known; device -1: none. */
struct cw_origin {
	uint16_t hook;    /* enum cw_hook_id */
	uint8_t kind;     /* enum cuweir_kind */
	uint8_t flags;    /* the pipeline's */
	int16_t device;
	uint16_t policy;  /* who owns it; 0 is the driver */
	uint64_t context;
	uint64_t site;    /* return address, or a stack (stacks.h); 0: not recorded */
};

_Static_assert(sizeof(struct cw_origin) == 24, "compared as three words");

#define CW_ORIGIN_CHUNK 2048u
#define CW_ORIGIN_FIRST 256u

/* For the inline functions only. The first chunk is static, and no mmap is needed for it. */
struct cw_total;

struct cw_origin_entry {
	struct cw_origin origin;
	/* That it counts in; NULL where a free takes more than that: a policy's, or pitched. */
	struct cw_total *total;
};

extern CW_HIDDEN const struct cw_origin_entry cw_origin_unknown_;
extern CW_HIDDEN struct cw_origin_entry cw_origin_first_[CW_ORIGIN_FIRST];
extern CW_HIDDEN struct cw_origin_entry *cw_origin_chunks_[CW_ORIGIN_LIMIT / CW_ORIGIN_CHUNK];
extern CW_HIDDEN uint32_t cw_origin_count_;
extern _Thread_local uint32_t cw_origin_recent_[4] __attribute__((tls_model("initial-exec")));
uint32_t cw_origin_intern_slow_(const struct cw_origin *origin, uint32_t *recent);

/*
 * Never NULL. CW_ORIGIN_UNKNOWN, and an index that was never given out, lead to an entry of
 * zeros, but for the device, -1.
 */
static inline const struct cw_origin_entry *cw_origin_entry(uint32_t index)
{
	/* Acquire: an entry is complete before the count covers it. 0 is below all. */
	if (index - 1 >= __atomic_load_n(&cw_origin_count_, __ATOMIC_ACQUIRE) - 1) {
		return &cw_origin_unknown_;
	}
	if (index < CW_ORIGIN_FIRST) {
		return &cw_origin_first_[index];
	}
	return &__atomic_load_n(&cw_origin_chunks_[index / CW_ORIGIN_CHUNK],
		__ATOMIC_ACQUIRE)[index % CW_ORIGIN_CHUNK];
}

static inline const struct cw_origin *cw_origin_get(uint32_t index)
{
	return &cw_origin_entry(index)->origin;
}

/*
 * Of a record with this index from the ledger: the index was given out, and needs no comparison
 * with the count.
 */
static inline struct cw_total *cw_origin_total(uint32_t index)
{
	if (__builtin_expect(index < CW_ORIGIN_FIRST, 1)) {
		return cw_origin_first_[index].total;
	}
	return cw_origin_entry(index)->total;
}

static inline bool cw_origin_equal(const struct cw_origin *a, const struct cw_origin *b)
{
	uint64_t head_a, head_b;

	__builtin_memcpy(&head_a, a, sizeof(head_a));
	__builtin_memcpy(&head_b, b, sizeof(head_b));
	return head_a == head_b && a->context == b->context && a->site == b->site;
}

/* The index of this tuple, stored now if it is new. */
static inline uint32_t cw_origin_intern(const struct cw_origin *origin)
{
	uint32_t *recent = &cw_origin_recent_[(origin->hook + (origin->site >> 4)) & 3];

	if (__builtin_expect(*recent != CW_ORIGIN_UNKNOWN &&
			cw_origin_equal(cw_origin_get(*recent), origin), 1)) {
		return *recent;
	}
	return cw_origin_intern_slow_(origin, recent);
}

uint32_t cw_origin_count(void);

/* How many interned tuples lost detail or became unknown, counted at each interning. */
uint64_t cw_origin_degraded(void);

/* In a fork child, as in ledger.h. */
void cw_origins_postfork_child(void);

#endif
