/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy that changes its table in open, by set_callbacks: to what its arguments say, "null",
 * "small" (a struct_size that no table has), "filled" (an entry of a later header), "half" (an allocator that gives nothing back) or
 * "later" (a good one); and again in its callback, when it is too late. It says what each call
 * returned, "tables first" in the exported callback and "tables later" in the other one.
 */
#include <cuweir/policy.h>

#include <stdio.h>
#include <string.h>

static const uint64_t mark = 1024;

static const uint64_t *marks(void *state, size_t *ret_count)
{
	*ret_count = 1;
	return &mark;
}

static void say(const struct cuweir_host *host, const char *what, int status)
{
	char line[80];
	snprintf(line, sizeof(line), "tables %s %d", what, status);
	host->log(host, line);
}

static int on_later(void *state, uint64_t total, const struct cuweir_event *event)
{
	say(state, "later", event->status);
	return CUWEIR_SUCCESS;
}

static void *take(void *state, uint64_t size, uint64_t alignment, uint32_t flags, void *stream)
{
	return NULL;
}

static const struct cuweir_allocator half = { .struct_size = sizeof(half), .allocate_async = take };

static void later(void)
{
}

static const struct cuweir_policy tables[] = {
	{ .struct_size = 4, .version = CUWEIR_POLICY_VERSION, .name = "small" },
	{ .struct_size = sizeof(struct cuweir_policy), .version = CUWEIR_POLICY_VERSION,
	  .name = "filled", .reserved = { later } },
	{ .struct_size = sizeof(struct cuweir_policy), .version = CUWEIR_POLICY_VERSION,
	  .name = "half", .allocator = &half },
	{ .struct_size = sizeof(struct cuweir_policy), .version = CUWEIR_POLICY_VERSION,
	  .name = "later", .kinds = CUWEIR_KIND_BIT(CUWEIR_KIND_MANAGED),
	  .get_alloc_thresholds = marks, .on_alloc_threshold = on_later },
};

static const struct cuweir_policy *table_of(const char *name)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (strncmp(tables[i].name, name, strlen(tables[i].name)) == 0) {
			return &tables[i];
		}
	}
	return NULL;
}

static int open_tables(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	say(host, arguments, host->set_callbacks(host, table_of(arguments)));
	*ret_state = (void *)host;
	return CUWEIR_SUCCESS;
}

static int on_first(void *state, uint64_t total, const struct cuweir_event *event)
{
	const struct cuweir_host *host = state;
	say(host, "first", host->set_callbacks(host, table_of("later")));
	return CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "tables",
	.open = open_tables,
	.get_alloc_thresholds = marks,
	.on_alloc_threshold = on_first,
};
