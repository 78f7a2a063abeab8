/* SPDX-License-Identifier: Apache-2.0 */
#include "plain.h"

#include <errno.h>
#include <sys/mman.h>

#include "config.h"
#include "grant.h"
#include "peaks.h"

uint32_t cw_plain_reasons_ = CW_PLAIN_NOT_OPEN;
CW_TLS struct cw_plain_place cw_plain_place_;

/*
 * For each kind, the thresholds of all policies that watch it, of allocations and frees alike:
 * what lies in one band of these is in no policy's way. Written at the opening.
 */
static struct cw_thresholds bands[CW_TOTAL_KINDS];

/* Where there was no memory for that: every call is looked at. */
static const uint64_t narrow[2] = { UINT64_MAX, 0 };
static const uint64_t wide[2] = { 0, UINT64_MAX };

void cw_plain_set(uint32_t reason)
{
	__atomic_fetch_or(&cw_plain_reasons_, reason, __ATOMIC_ACQ_REL);
}

void cw_plain_clear(uint32_t reason)
{
	__atomic_fetch_and(&cw_plain_reasons_, ~reason, __ATOMIC_ACQ_REL);
}

static void add_list(uint64_t *values, size_t *count, const struct cw_thresholds *list)
{
	if (list->values == NULL) {
		return;
	}
	/* Without the two of ours, at both ends. */
	for (size_t i = 1; i + 1 < list->count; i++) {
		if (values != NULL) {
			values[*count] = list->values[i];
		}
		++*count;
	}
}

/* With values NULL, only counts. */
static size_t collect(uint32_t policies, unsigned int kind, uint64_t *values)
{
	size_t count = 0;

	for (uint32_t i = 0; i < policies; i++) {
		const struct cw_policy *policy = &cw_chain.policies[i];

		if (i != CW_PLACE_PROGRAM && (policy->kinds & CUWEIR_KIND_BIT(kind)) != 0) {
			add_list(values, &count, policy->alloc);
			add_list(values, &count, policy->dealloc);
		}
	}
	return count;
}

/* Where a band of this kind begins: the lowest one. */
static const uint64_t *make_bands(uint32_t policies, unsigned int kind)
{
	size_t count = collect(policies, kind, NULL);
	size_t bytes = count * sizeof(uint64_t);
	uint64_t *values;
	int result;

	if (count == 0) {
		return wide;
	}
	values = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (values == MAP_FAILED) {
		return narrow;
	}
	collect(policies, kind, values);
	result = cw_thresholds_init(&bands[kind], values, count);
	munmap(values, bytes);
	return result == 0 ? bands[kind].values : narrow;
}

void cw_plain_open(void)
{
	uint32_t policies = cw_chain_count();

	for (unsigned int kind = 0; kind < CW_TOTAL_KINDS; kind++) {
		const uint64_t *first = make_bands(policies, kind);

		for (unsigned int row = 0; row < CW_TOTAL_DEVICES + 2; row++) {
			struct cw_total *total = &cw_totals_[row][kind];

			__atomic_store_n(&total->band, first, __ATOMIC_RELAXED);
		}
	}
	if (cw_chain_wants(CW_CHAIN_ASKS | CW_CHAIN_BEFORE_FREE)) {
		cw_plain_set(CW_PLAIN_ASKS);
	}
	if (!cw_config.driver_off) {
		cw_plain_clear(CW_PLAIN_NOT_OPEN);
	}
}

/* The place names an origin of the parent's, and the stripe goes by the thread's id. */
void cw_plain_postfork_child(void)
{
	cw_plain_place_.caller = NULL;
	cw_thread.counts = NULL;
}

/* Any band that is true will do, so several threads may be at it. */
CW_COLD void cw_plain_move_band(int device, unsigned int kind, uint64_t now)
{
	const struct cw_thresholds *list = &bands[kind < CW_TOTAL_KINDS ? kind : 0];

	if (list->values != NULL) {
		__atomic_store_n(&cw_total_cell(device, kind)->band,
				 list->values + cw_thresholds_search(list, now), __ATOMIC_RELAXED);
	}
}

/* Within a runtime call: that is what the program called, and from where. */
static void name_call(struct cw_origin *origin, enum cw_hook_id hook, const void *caller)
{
	bool within = cw_thread.runtime_hook != 0;

	origin->hook = (uint16_t)(within ? cw_thread.runtime_hook - 1 : (int)hook);
	origin->site = (uint64_t)(uintptr_t)(within ? cw_thread.runtime_site : caller);
}

__attribute__((noinline)) bool cw_plain_find_place(enum cw_hook_id hook, const void *caller)
{
	struct cw_plain_place *place = &cw_plain_place_;
	struct cw_origin origin = {
		.kind = cw_hooks[hook].kind,
		.flags = CW_ORIGIN_CONTEXT_BOUND,
		.device = cw_thread.device,
		.context = (uint64_t)(uintptr_t)cw_thread.context,
	};
	uint32_t index;

	if (!cw_thread.context_known) {
		return false;
	}
	name_call(&origin, hook, caller);
	index = cw_origin_intern(&origin);
	if (index == CW_ORIGIN_UNKNOWN) {
		return false;
	}
	place->caller = caller;
	place->runtime_site = cw_thread.runtime_site;
	place->context = cw_thread.context;
	place->how = cw_thread_how();
	place->total = cw_total_cell(origin.device, origin.kind);
	place->count = cw_count_cell(origin.device, origin.kind);
	place->origin = index;
	return true;
}

/*
 * The books had a record of this address: its free took a way that no door hears; that the
 * address came again says that it is gone. False: there was no room for the new one.
 */
CW_COLD bool cw_plain_replaced(int result, const struct cw_record *stale)
{
	if (result < 0) {
		return false;
	}
	cw_settle_stale(stale);
	return true;
}

__attribute__((noinline)) void cw_plain_raise_peak(uint64_t after)
{
	const struct cw_plain_place *place = &cw_plain_place_;

	cw_total_raise_peak_(place->total, after);
	if (CW_UNLIKELY(cw_peaks_wanted)) {
		const struct cw_origin *origin = cw_origin_get(place->origin);
		struct cw_request request = {
			.call = (enum cw_hook_id)origin->hook,
			.stack = origin->site,
			.device = origin->device,
			.kind = origin->kind,
			.after = after,
		};

		cw_peak_note(&request);
	}
}

CW_COLD void cw_plain_return(const struct cw_total *total, uint64_t bytes)
{
	size_t index = (size_t)(total - &cw_totals_[0][0]);
	int device = (int)(index / CW_TOTAL_KINDS) - 1;

	cw_budget_return(cw_budget_of(device, (unsigned int)(index % CW_TOTAL_KINDS)), bytes);
}

CW_COLD uint64_t cw_plain_mend(struct cw_total *total, int64_t before, uint64_t bytes)
{
	cw_total_mend_(&total->current, &total->underflows, before, (int64_t)bytes);
	cw_wait_freed();
	return before < 0 ? 0 : (uint64_t)before;
}
