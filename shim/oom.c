/* SPDX-License-Identifier: Apache-2.0 */
#include "oom.h"

#include <cuweir/policy.h>
#include <errno.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "budget.h"
#include "config.h"
#include "message.h"
#include "query.h"
#include "report.h"
#include "resolve.h"
#include "sites.h"
#include "totals.h"
#include "where.h"

enum { BLOCKS_SHOWN = 3, SECONDS_BETWEEN = 10, HOLDERS_SHOWN = 5, HOLDERS_CALLERS = 3,
       BLOCK_SIZE = 12288 };

typedef CUresult (*get_info_fn)(size_t *, size_t *);

/* One write for the whole block, so that no other thread's line comes between. */
struct block {
	char text[BLOCK_SIZE];
	size_t length;
};

/* What is known when an allocation has failed. */
struct facts {
	const struct cw_request *request;
	size_t free_bytes;  /* of the driver, where it could be asked */
	size_t total_bytes;
	bool asked;
	bool limited;       /* there is a limit */
	uint64_t limit;
	uint64_t taken;     /* of it, with what is reserved */
	uint64_t reserved;
	uint64_t left;      /* what a program that asks is told is free */
	bool lowered;       /* by policies, below the driver's figure and the limit's */
};

static void put(struct block *block, const char *format, ...) CW_PRINTF(2, 3);

static void put(struct block *block, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	block->length += cw_vformat(block->text + block->length, BLOCK_SIZE - block->length, format,
				    arguments);
	va_end(arguments);
}

static void begin_line(struct block *block)
{
	put(block, "cuweir[%d]: ", (int)getpid());
}

static bool is_wanted(void)
{
	return cw_config.verbose >= CW_NOTICE ||
	       (cw_config.verbose >= CW_ERROR && (cw_config.run || cw_config.report != NULL));
}

/* A program that fails, frees and goes on does so a thousand times (P-60). */
static bool is_due(void)
{
	static unsigned int shown;
	static int64_t next;
	struct timespec now;
	int64_t due = __atomic_load_n(&next, __ATOMIC_RELAXED);

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec >= due && __atomic_load_n(&shown, __ATOMIC_RELAXED) < BLOCKS_SHOWN &&
	       __atomic_compare_exchange_n(&next, &due, now.tv_sec + SECONDS_BETWEEN, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
	       __atomic_fetch_add(&shown, 1, __ATOMIC_RELAXED) < BLOCKS_SHOWN;
}

/* What the device has of memory says nothing of this. */
static bool of_host(const struct cw_request *request)
{
	return request->kind == CUWEIR_KIND_HOST || request->kind == CUWEIR_KIND_REGISTERED;
}

/*
 * Not while a capture is open: nobody promises that it would survive the question. And the
 * driver answers for the current device alone.
 */
static void ask_driver(struct facts *facts)
{
	get_info_fn get_info = (get_info_fn)cw_real_of(CW_HOOK_cuMemGetInfo_v2);
	struct cw_where where;

	if (cw_capture_open() || get_info == NULL) {
		return;
	}
	cw_where_current(&where);
	facts->asked = !of_host(facts->request) && where.context != NULL &&
		       where.device == facts->request->device &&
		       get_info(&facts->free_bytes, &facts->total_bytes) == CUDA_SUCCESS;
}

/* A limit that processes share is in no book of ours; but its policy tells what is left of it. */
static void ask_policies(struct facts *facts)
{
	struct cw_query query = {
		.call = cw_hook_base(facts->request->call),
		.device = facts->request->device,
		.free_bytes = facts->free_bytes,
		.total_bytes = facts->total_bytes,
	};

	if (facts->asked && cw_query_wanted()) {
		cw_query_answer(&query);
		facts->left = query.free_bytes;
		facts->lowered = facts->left < facts->free_bytes &&
				 (!facts->limited || facts->taken > facts->limit ||
				  facts->left < facts->limit - facts->taken);
	}
}

static void gather(struct facts *facts, const struct cw_request *request)
{
	const struct cw_budget *budget = cw_budget_of(request->device, request->kind);

	facts->request = request;
	if (budget != NULL) {
		facts->limit = __atomic_load_n(&budget->limit, __ATOMIC_RELAXED);
		facts->taken = __atomic_load_n(&budget->taken, __ATOMIC_RELAXED);
		facts->reserved = __atomic_load_n(&budget->reserved, __ATOMIC_RELAXED);
		facts->limited = facts->limit != UINT64_MAX;
	}
	ask_driver(facts);
	ask_policies(facts);
}

static void put_callers(struct block *block, uint64_t stack, unsigned int most)
{
	char place[CW_SITE_TEXT];

	for (unsigned int i = 1; i <= most && i < cw_stack_frames(stack); i++) {
		begin_line(block);
		put(block, "    called from %s\n", cw_site_text(place, stack, i));
	}
}

static void put_asked(struct block *block, const struct cw_request *request)
{
	uint64_t stack = cw_stack_of(request->site);
	char place[CW_SITE_TEXT];
	char size[16];

	begin_line(block);
	put(block, "out of memory: %s asked for %s (%llu B) of %s memory",
	    cw_hook_base(request->call), cw_human_size(size, request->requested),
	    (unsigned long long)request->requested, cw_kind_name(request->kind));
	put(block, " on device %d, from %s; tried %lld time%s\n", request->device,
	    cw_site_text(place, stack, 0), (long long)request->retries + 1,
	    request->retries == 0 ? "" : "s");
	put_callers(block, stack, CW_STACK_MAX);
}

static void put_use(struct block *block, int device)
{
	const char *separator = " ";
	char size[16];

	begin_line(block);
	put(block, "  in use by this process:");
	for (unsigned int kind = CUWEIR_KIND_DEVICE; kind < CUWEIR_KIND_COUNT; kind++) {
		uint64_t bytes = cw_total_current(device, kind);

		if (bytes != 0) {
			put(block, "%s%s %s", separator, cw_kind_name(kind),
			    cw_human_size(size, bytes));
			separator = ", ";
		}
	}
	put(block, *separator == ' ' ? " nothing" : "");
	if (cw_total_held(device, CUWEIR_KIND_DEVICE) != 0) {
		put(block, "; held back by policies %s",
		    cw_human_size(size, cw_total_held(device, CUWEIR_KIND_DEVICE)));
	}
	put(block, "\n");
}

static void put_limits(struct block *block, const struct facts *facts)
{
	char limit[16];
	char reserved[16];
	char taken[16];

	if (facts->limited) {
		begin_line(block);
		put(block, "  limit %s, of it taken %s, and of that reserved %s\n",
		    cw_human_size(limit, facts->limit), cw_human_size(taken, facts->taken),
		    cw_human_size(reserved, facts->reserved));
	}
	if (facts->asked) {
		begin_line(block);
		put(block, "  the driver has %s of %s free\n",
		    cw_human_size(taken, facts->free_bytes),
		    cw_human_size(limit, facts->total_bytes));
	}
	if (facts->lowered) {
		begin_line(block);
		put(block, "  of that, programs are told %s\n",
		    cw_human_size(taken, facts->left));
	}
}

static void put_holders(struct block *block, int device)
{
	struct cw_site sites[HOLDERS_SHOWN];
	size_t all;
	size_t count = cw_sites_collect(sites, HOLDERS_SHOWN, device, &all);

	for (size_t i = 0; i < count; i++) {
		char place[CW_SITE_TEXT];
		char size[16];

		begin_line(block);
		put(block, "  holds %s in %llu: %s memory by %s from %s\n",
		    cw_human_size(size, sites[i].bytes), (unsigned long long)sites[i].count,
		    cw_kind_name(sites[i].kind), cw_hook_base(sites[i].hook),
		    cw_site_text(place, sites[i].site, 0));
		put_callers(block, sites[i].site, HOLDERS_CALLERS);
	}
}

static const char *advice(const struct facts *facts)
{
	const struct cw_request *request = facts->request;
	bool is_padded = request->budget != NULL && request->refused != 0;
	uint64_t counted = is_padded ? request->refused : request->requested;

	if (facts->limited && counted > facts->limit) {
		return is_padded ? "with its padding it is larger than the limit"
				 : "it is larger than the limit";
	}
	if (facts->limited && (facts->taken >= facts->limit ||
			       counted > facts->limit - facts->taken)) {
		return "the limit refuses it: raise it, or have -p retry wait for a free";
	}
	if (of_host(request)) {
		return "the host's memory is short, or what may be locked of it (ulimit -l, other programs' "
		       "pinned memory)";
	}
	/* Managed memory may be more than a device has. */
	if (facts->asked && request->kind != CUWEIR_KIND_MANAGED &&
	    request->requested > facts->total_bytes) {
		return "it is larger than the device";
	}
	if (facts->lowered && request->requested > facts->left &&
	    request->requested <= facts->free_bytes) {
		return "a policy leaves less than that, by what other processes have of a limit that "
		       "they share: raise it, or have -p retry wait for them";
	}
	if (facts->asked && request->requested <= facts->free_bytes) {
		return "there is enough: a policy refuses it, or it is not to be had in one piece "
		       "or by this pool: -p retry synchronizes and trims pools";
	}
	if (cw_total_held(request->device, CUWEIR_KIND_DEVICE) >= request->requested) {
		return "policies hold back enough of it: -p retry has them give it back";
	}
	return "give back what the largest holders keep; -p retry, if other threads will; other "
	       "processes on this GPU (nvidia-smi)";
}

static void tell(const struct cw_request *request)
{
	struct block block = { .length = 0 };
	struct facts facts = { .asked = false };

	gather(&facts, request);
	put_asked(&block, request);
	put_use(&block, request->device);
	put_limits(&block, &facts);
	put_holders(&block, request->device);
	begin_line(&block);
	put(&block, "  try: %s\n", advice(&facts));
	cw_write_message(block.text, block.length);
}

CW_COLD void cw_oom_tell(const struct cw_request *request)
{
	int saved_errno = errno;

	if (is_wanted() && is_due()) {
		tell(request);
	}
	errno = saved_errno;
}
