/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy with the deprecated failure callback alone: says "legacy_failure SIZE CALL" (its
 * calls counted from 1 over the whole run) and yes to the first two.
 */
#include <cuweir/policy.h>

#include <stdatomic.h>
#include <stdio.h>

static atomic_uint calls;

static int open_legacy(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	*ret_state = (void *)host;
	return CUWEIR_SUCCESS;
}

static bool on_alloc_failure_size(void *state, uint64_t size)
{
	const struct cuweir_host *host = state;
	unsigned int call = atomic_fetch_add(&calls, 1) + 1;
	char line[80];
	snprintf(line, sizeof(line), "legacy_failure %llu %u", (unsigned long long)size, call);
	host->log(host, line);
	return call <= 2;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "legacy_failure",
	.open = open_legacy,
	.on_alloc_failure_size = on_alloc_failure_size,
};
