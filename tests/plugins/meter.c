/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy for tests that answers memory queries, and writes a line for each: what it was
 * asked, with the figures as they came, and what the books say just then. A program that asks
 * how much memory there is so makes the gauges visible.
 *
 * Arguments: file=NAME, required; total=SIZE and free=SIZE, to which the figures are lowered;
 * device=N, the only device they are lowered for; raise=1: they are doubled instead; nested=1:
 * it asks the driver itself, and shows that answer too.
 */
#include "args.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

struct meter {
	const struct cuweir_host *host;
	int fd;
	int device; /* -1: any */
	bool raise;
	bool nested;
	uint64_t total;
	uint64_t free;
};

static uint64_t total_of(const struct meter *meter, int device, int kind)
{
	struct cuweir_totals totals = { .struct_size = sizeof(totals) };

	return meter->host->totals(meter->host, device, kind, &totals) == CUWEIR_SUCCESS
		       ? totals.current
		       : UINT64_MAX;
}

/* As any library would: through the hooks. */
static void ask_nested(const struct meter *meter)
{
	int (*get_info)(size_t *, size_t *);
	size_t free_bytes = 0, total_bytes = 0;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int status;

	*(void **)&get_info = driver != NULL ? dlsym(driver, "cuMemGetInfo_v2") : NULL;
	status = get_info != NULL ? get_info(&free_bytes, &total_bytes) : -1;
	dprintf(meter->fd, "nested status=%d free=%zu total=%zu\n", status, free_bytes,
		total_bytes);
}

static void memory_info(void *state, struct cuweir_memory_info *info)
{
	const struct meter *meter = state;

	dprintf(meter->fd, "query call=%s device=%d free=%llu total=%llu used=%llu planned=%llu\n",
		info->call, info->device, (unsigned long long)info->free_bytes,
		(unsigned long long)info->total_bytes,
		(unsigned long long)total_of(meter, info->device, CUWEIR_KIND_DEVICE),
		(unsigned long long)total_of(meter, info->device, CUWEIR_KIND_GRAPH_PLANNED));
	if (meter->nested) {
		ask_nested(meter);
	}
	if (meter->raise) {
		info->total_bytes *= 2;
		info->free_bytes *= 2;
	} else if (meter->device < 0 || meter->device == info->device) {
		info->total_bytes = meter->total < info->total_bytes ? meter->total
								     : info->total_bytes;
		info->free_bytes = meter->free < info->free_bytes ? meter->free
								  : info->free_bytes;
	}
}

static bool read_pair(struct meter *meter, const struct args_pair *pair)
{
	char path[PATH_MAX];
	uint64_t number;

	if (args_is(pair->key, "file") && pair->value.length < sizeof(path)) {
		memcpy(path, pair->value.start, pair->value.length);
		path[pair->value.length] = '\0';
		meter->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
		return meter->fd >= 0;
	}
	if (args_is(pair->key, "device") && args_number(pair->value, &number)) {
		meter->device = (int)number;
		return true;
	}
	if (args_is(pair->key, "raise")) {
		meter->raise = true;
		return true;
	}
	if (args_is(pair->key, "nested")) {
		meter->nested = true;
		return true;
	}
	return (args_is(pair->key, "total") && args_size(pair->value, &meter->total)) ||
	       (args_is(pair->key, "free") && args_size(pair->value, &meter->free));
}

static int open_meter(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	struct meter *meter = calloc(1, sizeof(*meter));

	if (meter == NULL) {
		return host->refuse(host, "no memory");
	}
	*meter = (struct meter){ .host = host, .fd = -1, .device = -1, .total = UINT64_MAX,
				 .free = UINT64_MAX };
	while (args_next(&rest, &pair)) {
		if (!read_pair(meter, &pair)) {
			return args_refuse(host, &pair,
					   "file=, total=, free=, device=, raise=1 or nested=1");
		}
	}
	*ret_state = meter;
	return meter->fd >= 0 ? CUWEIR_SUCCESS : host->refuse(host, "no file=");
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "meter",
	.open = open_meter,
	.memory_info = memory_info,
};
