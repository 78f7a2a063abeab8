/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy with COUNT[:STEP] alloc and dealloc thresholds, STEP bytes apart (1 TiB: none is
 * crossed). It does nothing but count its calls.
 */
#include <cuweir/policy.h>

#include <stdlib.h>

static uint64_t *list;
static size_t list_length;
static uint64_t calls;

static int open_policy(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	char *end;
	uint64_t step = UINT64_C(1) << 40;

	(void)ret_state;
	list_length = strtoul(arguments, &end, 10);
	if (*end == ':') {
		step = strtoull(end + 1, &end, 10);
	}
	if (end == arguments || *end != '\0') {
		return host->refuse(host, "want COUNT[:STEP]");
	}
	list = calloc(list_length, sizeof(*list));
	if (list == NULL) {
		return host->refuse(host, "COUNT[:STEP] thresholds");
	}
	for (size_t i = 0; i < list_length; i++) {
		list[i] = (i + 1) * step;
	}
	return CUWEIR_SUCCESS;
}

static const uint64_t *thresholds(void *state, size_t *ret_count)
{
	(void)state;
	*ret_count = list_length;
	return list;
}

static int crossed(void *state, uint64_t total, const struct cuweir_event *event)
{
	(void)state;
	(void)total;
	(void)event;
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	return CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "bench",
	.open = open_policy,
	.get_alloc_thresholds = thresholds,
	.get_dealloc_thresholds = thresholds,
	.on_alloc_threshold = crossed,
	.on_dealloc_threshold = crossed,
};
