/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory limit: bytes=SIZE[,device=N][,kinds=NAME+NAME]. The shim's budget enforces it
 * exactly where there is one; else each request is compared with the totals, which lets
 * threads that ask at the same moment pass together.
 */
#include "args.h"

#include <stdlib.h>

struct limit {
	const struct cuweir_host *host;
	uint64_t bytes;
	uint32_t kinds;
	int device;
	bool budget;
};

static uint64_t used_bytes(const struct limit *limit)
{
	uint64_t used = 0;
	for (int kind = 1; kind < CUWEIR_KIND_COUNT; kind++) {
		struct cuweir_totals totals = { .struct_size = sizeof(totals) };
		if ((limit->kinds & CUWEIR_KIND_BIT(kind)) != 0 &&
		    limit->host->totals(limit->host, limit->device, kind, &totals) == 0) {
			used += totals.current + totals.held;
		}
	}
	return used;
}

static int admit(void *state, const struct cuweir_event *event)
{
	struct limit *limit = state;
	if (limit->budget || event->device != limit->device ||
	    (limit->kinds & CUWEIR_KIND_BIT(event->kind)) == 0) {
		return CUWEIR_SUCCESS;
	}
	uint64_t used = used_bytes(limit);
	return used <= limit->bytes && event->requested <= limit->bytes - used ?
		       CUWEIR_SUCCESS :
		       CUWEIR_ERROR_OUT_OF_MEMORY;
}

/* A program that sizes itself by what is free must come out below the limit. */
static void memory_info(void *state, struct cuweir_memory_info *info)
{
	struct limit *limit = state;
	uint64_t bytes = limit->bytes, used = 0, reserved = 0;
	if (info->device != limit->device) {
		return;
	}
	if (!limit->budget || limit->host->get_budget(limit->host, limit->device, &bytes, &used,
						      &reserved) != CUWEIR_SUCCESS) {
		used = used_bytes(limit);
	}
	used += reserved;
	uint64_t left = used < bytes ? bytes - used : 0;
	info->total_bytes = info->total_bytes < bytes ? info->total_bytes : bytes;
	info->free_bytes = info->free_bytes < left ? info->free_bytes : left;
}

static int open_limit(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct limit limit = { .host = host, .kinds = CUWEIR_KIND_BIT(CUWEIR_KIND_DEVICE) };
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	uint64_t device = 0;
	while (args_next(&rest, &pair)) {
		if (!(args_is(pair.key, "bytes") && args_size(pair.value, &limit.bytes)) &&
		    !(args_is(pair.key, "device") && args_number(pair.value, &device)) &&
		    !(args_is(pair.key, "kinds") && args_kinds(pair.value, &limit.kinds))) {
			return args_refuse(host, &pair, "bytes=SIZE, device=N or kinds=NAME");
		}
	}
	limit.device = (int)device;
	if (limit.bytes == 0) {
		return host->refuse(host, "no limit: want bytes=SIZE");
	}
	int status = host->set_budget(host, limit.device, limit.kinds, limit.bytes);
	if (status != CUWEIR_SUCCESS && status != CUWEIR_ERROR_NOT_SUPPORTED) {
		return host->refuse(host, "the budget was not taken: want a device that exists");
	}
	limit.budget = status == CUWEIR_SUCCESS;
	struct limit *copy = malloc(sizeof(*copy));
	if (copy == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	*copy = limit;
	*ret_state = copy;
	return CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "sketch_limit",
	.open = open_limit,
	.admit = admit,
	.memory_info = memory_info,
};
