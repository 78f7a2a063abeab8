/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy `limit`: no more device memory than this. Exact and inclusive, by the budget of
 * the shim, which counts what is taken from the driver and what is reserved. A program that
 * asks how much memory there is sees the limit.
 *
 * With shared= the processes of a user keep to it together: bytes are claimed in a file before
 * the driver is asked, and settled by what came of it. The claim of an attempt that failed is
 * given back when that is told; the thread remembers it until then.
 */
#include "limit.h"

#include <stdlib.h>
#include <unistd.h>

/* As many as the chain has places. */
#define LIMITS 16

/* Small: what a library takes of the threads' static memory, others cannot have. */
struct claim {
	uint64_t bytes : 58;
	uint64_t device : 5; /* in the file */
	uint64_t is_open : 1;
};
#define CLAIM_MAX ((1ull << 58) - 1)

/*
 * The attempt of this thread that is on its way, of each limit that is shared, and the one within
 * a callback during it.
 */
static _Thread_local struct claim claims[LIMITS][2] __attribute__((tls_model("initial-exec")));
static atomic_uint limits;

static struct claim *claim_of(const struct limit *limit, const struct cuweir_event *event)
{
	return &claims[limit->slot][(event->flags & CUWEIR_EVENT_NESTED) != 0];
}

static bool is_limited(const struct limit *limit, const struct cuweir_event *event)
{
	return event->kind == CUWEIR_KIND_DEVICE && event->device >= 0 &&
	       event->device < LIMIT_DEVICES && limit->bytes[event->device] != LIMIT_NONE;
}

static bool is_shared(const struct limit *limit, const struct cuweir_event *event)
{
	return limit->shared_name[0] != '\0' && is_limited(limit, event);
}

static void tell_stuck(struct limit *limit)
{
	if (!atomic_exchange(&limit->told, true)) {
		char line[300];
		snprintf(line, sizeof(line),
			 "cuweir[%d]: limit: shared=%s cannot be asked: a stopped process holds "
			 "its lock, or there are too many processes; allocations fail meanwhile",
			 (int)getpid(), limit->shared_name);
		limit->host->log(limit->host, line);
	}
}

/*
 * A policy that keeps memory and stands behind this one takes and returns it unheard: only what
 * the program has is counted for others then. From before it everything is heard.
 */
static void watch_order(struct limit *limit, const struct cuweir_event *event)
{
	struct cuweir_totals totals = { .struct_size = sizeof(totals) };
	char line[300];
	if (atomic_load(&limit->order_is_known)) {
		return;
	}
	if ((event->flags & CUWEIR_EVENT_HELD) != 0) {
		atomic_store(&limit->order_is_known, true);
		return;
	}
	if (limit->host->totals(limit->host, event->device, CUWEIR_KIND_DEVICE, &totals) !=
		    CUWEIR_SUCCESS ||
	    totals.held == 0 || atomic_exchange(&limit->order_is_known, true)) {
		return;
	}
	snprintf(line, sizeof(line),
		 "cuweir[%d]: limit: shared=%s stands before a policy that keeps memory, and does "
		 "not count for others what that one keeps; want it behind: -p pool -p limit:...",
		 (int)getpid(), limit->shared_name);
	limit->host->log(limit->host, line);
}

/* ---- shared= ------------------------------------------------------------------------------ */

static void give_claim_back(struct limit *limit, struct claim *claim)
{
	if (claim->is_open) {
		claim->is_open = 0;
		shared_subtract(&limit->shared, claim->device, claim->bytes);
	}
}

static int claim_shared(struct limit *limit, const struct cuweir_event *event)
{
	struct claim *claim = claim_of(limit, event);
	int device = limit_shared_device(limit, event->device);
	watch_order(limit, event);
	give_claim_back(limit, claim); /* an attempt that nothing was told of */
	enum shared_result result =
		device < 0			? SHARED_STUCK :
		event->requested > CLAIM_MAX	? SHARED_OVER :
						  shared_claim(&limit->shared, device,
							       limit->bytes[event->device],
							       event->requested);
	if (result == SHARED_STUCK) {
		tell_stuck(limit);
	}
	if (result != SHARED_DONE) {
		return CUWEIR_ERROR_OUT_OF_MEMORY;
	}
	*claim = (struct claim){ event->requested & CLAIM_MAX, (unsigned int)device & 31, 1 };
	return CUWEIR_SUCCESS;
}

static int admit(void *state, const struct cuweir_event *event)
{
	struct limit *limit = state;
	if (atomic_load_explicit(&limit->is_pending, memory_order_acquire)) {
		limit_set_budgets(limit, true);
	}
	return is_shared(limit, event) ? claim_shared(limit, event) : CUWEIR_SUCCESS;
}

static bool on_alloc_failure(void *state, uint64_t size, int retry_count,
			     const struct cuweir_event *event)
{
	give_claim_back(state, claim_of(state, event));
	return false;
}

static void on_alloc_failed(void *state, const struct cuweir_event *event)
{
	give_claim_back(state, claim_of(state, event));
}

/* What the totals move by counts: pitched memory turned out larger, imports were not claimed. */
static void on_allocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	struct limit *limit = state;
	if (!is_shared(limit, event)) {
		return;
	}
	struct claim *claim = claim_of(limit, event);
	int device = limit_shared_device(limit, event->device);
	if (claim->is_open && (int)claim->device != device) {
		give_claim_back(limit, claim); /* it turned out to be on another one */
	}
	uint64_t claimed = claim->is_open ? claim->bytes : 0;
	claim->is_open = 0;
	if (device >= 0 && event->charged > claimed) {
		shared_add(&limit->shared, device, event->charged - claimed);
	} else if (device >= 0) {
		shared_subtract(&limit->shared, device, claimed - event->charged);
	}
}

static void on_deallocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	struct limit *limit = state;
	if (!is_shared(limit, event)) {
		return;
	}
	int device = limit_shared_device(limit, event->device);
	if (device >= 0) {
		shared_subtract(&limit->shared, device, event->charged);
	}
	watch_order(limit, event);
}

/* ---- what programs are told --------------------------------------------------------------- */

static uint64_t lower_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t left_of(uint64_t bytes, uint64_t used, uint64_t reserved)
{
	return used < bytes && reserved < bytes - used ? bytes - used - reserved : 0;
}

/* What all processes together leave of this limit; another one in the chain may be lower. */
static uint64_t left_shared(struct limit *limit, int device, uint64_t used, uint64_t reserved)
{
	uint64_t sum = 0;
	int number = limit_shared_device(limit, device);
	if (number >= 0 && shared_sum(&limit->shared, number, &sum) == SHARED_STUCK) {
		tell_stuck(limit);
	}
	return left_of(limit->bytes[device], used > sum ? used : sum, reserved);
}

/* The budget's own figures: it may have been changed since. */
static void memory_info(void *state, struct cuweir_memory_info *info)
{
	struct limit *limit = state;
	uint64_t bytes = 0, used = 0, reserved = 0;
	if (atomic_load(&limit->is_pending)) {
		limit_set_budgets(limit, false);
	}
	if (info->device < 0 || info->device >= LIMIT_DEVICES ||
	    limit->bytes[info->device] == LIMIT_NONE) {
		return;
	}
	if (limit->host->get_budget(limit->host, info->device, &bytes, &used, &reserved) !=
	    CUWEIR_SUCCESS) {
		/* NVML was asked before the driver was there: nothing is taken yet. */
		if (limit->percent[info->device] == 0) {
			return;
		}
		bytes = args_percent_of(info->total_bytes, limit->percent[info->device]);
	}
	uint64_t left = left_of(bytes, used, reserved);
	if (limit->shared_name[0] != '\0' && limit->bytes[info->device] != 0) {
		left = lower_of(left, left_shared(limit, info->device, used, reserved));
	}
	info->total_bytes = lower_of(info->total_bytes, bytes);
	left = lower_of(info->free_bytes, left);
	info->free_bytes = left > limit->safety ? left - limit->safety : 0;
}

/* ---- open --------------------------------------------------------------------------------- */

static int open_limit(const struct cuweir_host *host, const char *arguments, void **ret_state);

static void close_limit(void *state)
{
	struct limit *limit = state;
	if (limit->shared_name[0] != '\0') {
		shared_close(&limit->shared);
	}
}

#define FACTS                                                                                      \
	.struct_size = sizeof(struct cuweir_policy), .version = CUWEIR_POLICY_VERSION,             \
	.name = "limit", .summary = "no more device memory than this",                             \
	.arguments = LIMIT_ARGUMENTS, .open = open_limit, .memory_info = memory_info

const struct cuweir_policy cuweir_policy_entry = {
	FACTS,
	.close = close_limit,
	.flags = CUWEIR_POLICY_CAPTURE_SAFE | CUWEIR_POLICY_DEBUG | CUWEIR_POLICY_SILENT,
	.on_alloc_failure = on_alloc_failure,
	.on_allocated = on_allocated,
	.on_deallocated = on_deallocated,
	.admit = admit,
	.on_alloc_failed = on_alloc_failed,
};

/* The budgets are set, and no other process counts: the shim needs nobody to ask. */
static const struct cuweir_policy set_and_alone = { FACTS };

static int open_shared(struct limit *limit)
{
	char text[512];
	char line[600];
	if ((limit->host->flags & CUWEIR_HOST_TRIAL) != 0) {
		return shared_check(limit->shared_name, text, sizeof(text)) == 0 ?
			       CUWEIR_SUCCESS :
			       limit->host->refuse(limit->host, text);
	}
	limit->slot = atomic_load(&limits); /* policies are opened one after the other */
	if (limit->slot >= LIMITS) {
		return limit->host->refuse(limit->host, "shared= more than 16 times");
	}
	if (shared_open(&limit->shared, limit->shared_name, text, sizeof(text)) != 0) {
		return limit->host->refuse(limit->host, text);
	}
	if (text[0] != '\0') {
		snprintf(line, sizeof(line), "cuweir[%d]: limit: %s", (int)getpid(), text);
		limit->host->log(limit->host, line);
	}
	atomic_store(&limits, limit->slot + 1);
	return CUWEIR_SUCCESS;
}

static int open_limit(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct limit *limit = calloc(1, sizeof(*limit));
	if (limit == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	int status = limit_read(limit, host, arguments);
	if (status == CUWEIR_SUCCESS) {
		status = limit_set_budgets(limit, false);
	}
	if (status == CUWEIR_SUCCESS && limit->shared_name[0] != '\0') {
		status = open_shared(limit);
	}
	if (status != CUWEIR_SUCCESS) {
		free(limit);
		return status;
	}
	limit->is_open = true;
	*ret_state = limit;
	if (limit->shared_name[0] == '\0' && !atomic_load(&limit->is_pending) &&
	    host->set_callbacks != NULL) {
		return host->set_callbacks(host, &set_and_alone);
	}
	return CUWEIR_SUCCESS;
}
