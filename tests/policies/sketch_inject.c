/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes allocations fail on purpose: nth=N or every=N, above=SIZE, call=NAME, status=S.
 * Attempts that `above` and `call` select are counted, retries of one allocation included;
 * without nth and every, each of them fails.
 */
#include "args.h"

#include <stdatomic.h>
#include <stdlib.h>

struct inject {
	struct args_text call; /* the arguments live as long as the process */
	uint64_t nth;
	uint64_t every;
	uint64_t above;
	uint64_t status;
	bool by_size;
	atomic_ullong seen;
};

static int admit(void *state, const struct cuweir_event *event)
{
	struct inject *inject = state;
	if ((event->flags & CUWEIR_EVENT_NESTED) != 0 ||
	    (inject->by_size && event->requested <= inject->above) ||
	    (inject->call.start != NULL && !args_is(inject->call, event->call))) {
		return CUWEIR_SUCCESS;
	}
	uint64_t number = atomic_fetch_add(&inject->seen, 1) + 1;
	bool hit = inject->nth != 0   ? number == inject->nth :
		   inject->every != 0 ? number % inject->every == 0 :
					true;
	return hit ? (int)inject->status : CUWEIR_SUCCESS;
}

static bool read_pair(struct inject *inject, const struct args_pair *pair)
{
	if (args_is(pair->key, "above")) {
		inject->by_size = true;
		return args_size(pair->value, &inject->above);
	}
	if (args_is(pair->key, "call")) {
		inject->call = pair->value;
		return pair->value.start != NULL && pair->value.length > 0;
	}
	if (args_is(pair->key, "status")) {
		return args_number(pair->value, &inject->status) && inject->status > 0 &&
		       inject->status <= CUWEIR_ERROR_UNKNOWN;
	}
	return (args_is(pair->key, "nth") && args_number(pair->value, &inject->nth) &&
		inject->nth > 0) ||
	       (args_is(pair->key, "every") && args_number(pair->value, &inject->every) &&
		inject->every > 0);
}

static int open_inject(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct inject *inject = calloc(1, sizeof(*inject));
	if (inject == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	inject->status = CUWEIR_ERROR_OUT_OF_MEMORY;
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	while (args_next(&rest, &pair)) {
		if (!read_pair(inject, &pair)) {
			free(inject);
			return args_refuse(host, &pair,
					   "nth=N or every=N from 1, above=SIZE, call=NAME, or "
					   "status=1 to 999");
		}
	}
	if (inject->nth != 0 && inject->every != 0) {
		free(inject);
		return host->refuse(host, "nth= and every=: want one of them");
	}
	*ret_state = inject;
	return CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "sketch_inject",
	.open = open_inject,
	.admit = admit,
};
