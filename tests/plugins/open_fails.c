/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy that does not open: argument "silent" gives a status and no reason, any other text
 * is the reason. None of its callbacks may be called, and the budget that it sets does not stay.
 */
#include <cuweir/policy.h>

#include <stdlib.h>
#include <string.h>

static int open_fails(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	if (host->set_budget(host, 0, 0, 1) != CUWEIR_SUCCESS) {
		abort();
	}
	if (strcmp(arguments, "silent") == 0) {
		return CUWEIR_ERROR_NOT_PERMITTED;
	}
	return host->refuse(host, arguments[0] != '\0' ? arguments : "want another world");
}

static void close_fails(void *state)
{
	abort();
}

static const uint64_t *thresholds(void *state, size_t *ret_count)
{
	abort();
}

static int admit(void *state, const struct cuweir_event *event)
{
	abort();
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "open_fails",
	.open = open_fails,
	.close = close_fails,
	.get_alloc_thresholds = thresholds,
	.get_dealloc_thresholds = thresholds,
	.admit = admit,
};
