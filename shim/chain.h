/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of policies: loading them at the opening, and what each place in the chain holds.
 * Policy 0 is the outermost, nearest to the program; behind the last stands the driver (D-12).
 * Written once, under the opening; read by any thread after it.
 */
#ifndef CW_CHAIN_H
#define CW_CHAIN_H

#include <cuweir/policy.h>
#include <stdbool.h>
#include <stdint.h>

#include "common.h"
#include "thresholds.h"

/*
 * Place 0 is the program's own handler (program.h), the outermost; it is there even without
 * any policy, and does nothing until the program sets one. Then come the built-in lines, which
 * tell of what the program is given, not of what a policy takes for it; and the named policies.
 */
enum { CW_PLACE_PROGRAM, CW_PLACE_LINES, CW_PLACE_NAMED, CW_CHAIN_MAX = CW_PLACE_NAMED + 16 };

struct cw_policy {
	struct cuweir_policy table; /* our copy; entries that an older plugin lacks are NULL */
	void *state;
	uint32_t bit;               /* in cw_thread.in_callback */
	uint32_t kinds;             /* CUWEIR_KIND_BITs of its thresholds */
	uint32_t serves;            /* CUWEIR_KIND_BITs of what its allocator is asked for; 0: none */
	struct cw_thresholds lists[2];
	/* Loaded with cw_list: those of the program's handler are exchanged while it runs. */
	struct cw_thresholds *alloc;
	struct cw_thresholds *dealloc;
	struct cuweir_host host;
	bool is_opening;            /* in its open */
	const char *setting;        /* its part of CUWEIR_POLICY, for messages */
	char refusal[256];          /* what host->refuse said */
};

enum {
	CW_CHAIN_ASKS = 1u << 0, /* admits or serves */
	CW_CHAIN_SERVES = 1u << 1,
	CW_CHAIN_BEFORE_FREE = 1u << 2,
	CW_CHAIN_MEMORY_INFO = 1u << 3,
	CW_CHAIN_SHOWS_EVENTS = 1u << 4, /* debug events that are not for its books alone */
};

struct cw_chain {
	/* 0 before the opening and after the closing: then policies are not called. */
	uint32_t count;
	uint32_t first;   /* 0 while the program has set a handler, else `outer` */
	uint32_t outer;   /* the outermost place that is taken, the program's aside */
	uint32_t served;  /* CUWEIR_KIND_BITs of which some policy serves memory */
	uint32_t wants;   /* CW_CHAIN_...: what some policy has; see cw_chain_wants */
	struct cw_policy *policies;
};

extern struct cw_chain cw_chain;

static inline struct cw_thresholds *cw_list(struct cw_thresholds *const *list)
{
	return __atomic_load_n(list, __ATOMIC_ACQUIRE);
}

/* Relaxed: before the opening is done nothing comes of it, as there are no policies yet. */
static inline bool cw_chain_wants(uint32_t what)
{
	return (__atomic_load_n(&cw_chain.wants, __ATOMIC_RELAXED) & what) != 0;
}

/* Acquire: the policies are complete before the count says so. */
static inline uint32_t cw_chain_count(void)
{
	return __atomic_load_n(&cw_chain.count, __ATOMIC_ACQUIRE);
}

/* The outermost place that there is anything to tell. */
static inline uint32_t cw_chain_first(void)
{
	return __atomic_load_n(&cw_chain.first, __ATOMIC_ACQUIRE);
}

/* The tables of the plugins that CUWEIR_POLICY names, in its order; NULL: not loaded. */
struct cw_plugins {
	const struct cuweir_policy *entries[CW_CHAIN_MAX];
};

/* Loads them and nothing else: any thread may, and none needs to be first. */
void cw_chain_load(const char *setting, struct cw_plugins *ret_plugins);

/*
 * Opens what CUWEIR_POLICY names, and loads what is not loaded, or says why it cannot be; NULL:
 * nothing. With `lines` the built-in ones stand before them, unless a policy shows events itself.
 * Returns the number that failed to open.
 */
int cw_chain_open(const char *setting, const struct cw_plugins *plugins, bool lines);

/* For a policy in its open: the host's set_callbacks. */
int cw_chain_set_callbacks(struct cw_policy *policy, const struct cuweir_policy *table);

/* No callback starts after this; each policy's close is called unless `quietly`. */
void cw_chain_close(bool quietly);

#endif
