/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries again where memory ran out: retries=N,wait=MILLISECONDS,trim=0|1. First what the
 * driver keeps unused is given back, then frees of other threads are awaited, each time twice
 * as long. Never during stream capture: the policy does not declare itself capture-safe.
 */
#include "args.h"

#include <stdlib.h>

#define LONGEST_WAIT_NS 10000000000ull

struct retry {
	const struct cuweir_host *host;
	uint64_t retries;
	uint64_t wait_ms;
	uint64_t trim;
};

static bool on_alloc_failure(void *state, uint64_t size, int retry_count,
			     const struct cuweir_event *event)
{
	struct retry *retry = state;
	if ((uint64_t)retry_count >= retry->retries ||
	    (event->flags & CUWEIR_EVENT_CAPTURING) != 0) {
		return false;
	}
	if (retry_count == 0 && retry->trim != 0 && event->device >= 0 &&
	    retry->host->trim(retry->host, event->device) == CUWEIR_SUCCESS) {
		return true;
	}
	unsigned int doublings = retry_count < 20 ? (unsigned int)retry_count : 20;
	uint64_t wait = (retry->wait_ms * 1000000) << doublings;
	retry->host->wait_for_free(retry->host, wait < LONGEST_WAIT_NS ? wait : LONGEST_WAIT_NS);
	return true;
}

static int open_retry(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct retry retry = { .host = host, .retries = 3, .wait_ms = 100, .trim = 1 };
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	while (args_next(&rest, &pair)) {
		if (!(args_is(pair.key, "retries") && args_number(pair.value, &retry.retries)) &&
		    !(args_is(pair.key, "wait") && args_number(pair.value, &retry.wait_ms) &&
		      retry.wait_ms <= 10000) &&
		    !(args_is(pair.key, "trim") && args_number(pair.value, &retry.trim))) {
			return args_refuse(host, &pair,
					   "retries=N, wait=MILLISECONDS to 10000, or trim=0|1");
		}
	}
	struct retry *copy = malloc(sizeof(*copy));
	if (copy == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	*copy = retry;
	*ret_state = copy;
	return CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "sketch_retry",
	.open = open_retry,
	.on_alloc_failure = on_alloc_failure,
};
