/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit of device memory: SIZE for every device, or DEVICE=SIZE[,DEVICE=SIZE...]. Exact and
 * inclusive, by the budget of the shim, which counts what is taken from the driver and what is
 * reserved. A program that asks how much memory there is sees the limit.
 */
#include <stdlib.h>

#include "args.h"

enum { LIMIT_DEVICES = 64 };

static const char want[] = "SIZE, or DEVICE=SIZE, as in 8GiB or 0=8GiB,1=512MiB";

struct limit {
	const struct cuweir_host *host;
	uint64_t bytes[LIMIT_DEVICES]; /* UINT64_MAX: none */
};

static void set_all(struct limit *limit, uint64_t bytes)
{
	for (int device = 0; device < LIMIT_DEVICES; device++) {
		limit->bytes[device] = bytes;
	}
}

/* One argument; false where it cannot be read. */
static bool read_pair(struct limit *limit, const struct args_pair *pair)
{
	uint64_t device;
	uint64_t bytes;

	if (pair->value.start == NULL) {
		if (!args_size(pair->key, &bytes)) {
			return false;
		}
		set_all(limit, bytes);
		return true;
	}
	if (!args_number(pair->key, &device) || device >= LIMIT_DEVICES ||
	    !args_size(pair->value, &bytes)) {
		return false;
	}
	limit->bytes[device] = bytes;
	return true;
}

static int set_budgets(const struct limit *limit)
{
	for (int device = 0; device < LIMIT_DEVICES; device++) {
		int status;

		if (limit->bytes[device] == UINT64_MAX) {
			continue;
		}
		status = limit->host->set_budget(limit->host, device, 0, limit->bytes[device]);
		if (status != CUWEIR_SUCCESS) {
			return limit->host->refuse(limit->host, "the budget could not be set");
		}
	}
	return CUWEIR_SUCCESS;
}

static int open_limit(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	struct limit *limit;
	int status;

	if (rest.start == NULL) {
		return host->refuse(host, "no limit: want SIZE, or DEVICE=SIZE");
	}
	limit = malloc(sizeof(*limit));
	if (limit == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	limit->host = host;
	set_all(limit, UINT64_MAX);
	while (args_next(&rest, &pair)) {
		if (!read_pair(limit, &pair)) {
			free(limit);
			return args_refuse(host, &pair, want);
		}
	}
	status = set_budgets(limit);
	if (status != CUWEIR_SUCCESS) {
		free(limit);
		return status;
	}
	*ret_state = limit;
	return CUWEIR_SUCCESS;
}

static uint64_t lower_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The budget's own figures: it may have been changed since. */
static void memory_info(void *state, struct cuweir_memory_info *info)
{
	const struct limit *limit = state;
	uint64_t bytes;
	uint64_t used;
	uint64_t reserved;

	if (info->device < 0 || info->device >= LIMIT_DEVICES ||
	    limit->bytes[info->device] == UINT64_MAX ||
	    limit->host->get_budget(limit->host, info->device, &bytes, &used, &reserved) !=
		    CUWEIR_SUCCESS) {
		return;
	}
	info->total_bytes = lower_of(info->total_bytes, bytes);
	info->free_bytes = lower_of(info->free_bytes,
				    used + reserved < bytes ? bytes - used - reserved : 0);
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "limit",
	.summary = "no more device memory than this",
	.arguments = "SIZE for every device, or DEVICE=SIZE,...: 8GiB, or 0=8GiB,1=512MiB",
	.open = open_limit,
	.memory_info = memory_info,
};
