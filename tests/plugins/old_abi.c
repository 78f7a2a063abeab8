/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy of an older header, whose table ended after on_dealloc_threshold. Behind it is what
 * a shim that reads further would call. It says "old_abi alloc TOTAL" and "old_abi dealloc
 * TOTAL" when the total passes 1 KiB.
 */
#include <cuweir/policy.h>

#include <stdio.h>

struct old_policy {
	size_t struct_size;
	uint32_t version;
	uint32_t flags;
	uint32_t kinds;
	uint32_t serves;
	const char *name;
	const char *summary;
	const char *arguments;
	int (*open)(const struct cuweir_host *host, const char *arguments, void **ret_state);
	void (*close)(void *state);
	const uint64_t *(*get_alloc_thresholds)(void *state, size_t *ret_count);
	const uint64_t *(*get_dealloc_thresholds)(void *state, size_t *ret_count);
	int (*on_alloc_threshold)(void *state, uint64_t total, const struct cuweir_event *event);
	int (*on_dealloc_threshold)(void *state, uint64_t total,
				    const struct cuweir_event *event);
};

_Static_assert(sizeof(struct old_policy) == offsetof(struct cuweir_policy, on_alloc_failure),
	       "the table as it is, cut");

struct old_table {
	struct old_policy policy;
	uintptr_t beyond[40];
};

static const uint64_t mark = 1024;

static int open_old(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	*ret_state = (void *)host;
	return CUWEIR_SUCCESS;
}

static const uint64_t *thresholds(void *state, size_t *ret_count)
{
	*ret_count = 1;
	return &mark;
}

static int tell(const struct cuweir_host *host, const char *what, uint64_t total)
{
	char line[80];
	snprintf(line, sizeof(line), "old_abi %s %llu", what, (unsigned long long)total);
	host->log(host, line);
	return CUWEIR_SUCCESS;
}

static int on_alloc_threshold(void *state, uint64_t total, const struct cuweir_event *event)
{
	return tell(state, "alloc", total);
}

static int on_dealloc_threshold(void *state, uint64_t total, const struct cuweir_event *event)
{
	return tell(state, "dealloc", total);
}

extern CUWEIR_EXPORT const struct old_table old_entry __asm__("cuweir_policy_entry");
const struct old_table old_entry = {
	.policy = {
		.struct_size = sizeof(struct old_policy),
		.version = 1,
		.name = "old_abi",
		.open = open_old,
		.get_alloc_thresholds = thresholds,
		.get_dealloc_thresholds = thresholds,
		.on_alloc_threshold = on_alloc_threshold,
		.on_dealloc_threshold = on_dealloc_threshold,
	},
	.beyond = { [0 ... 39] = 0x10 },
};
