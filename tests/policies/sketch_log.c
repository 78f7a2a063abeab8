/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest log that is whole: a line for what came, what goes, and what finally failed. */
#include <cuweir/policy.h>

#include <stdio.h>

static int open_log(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	if (arguments[0] != '\0') {
		return host->refuse(host, "want no arguments");
	}
	*ret_state = (void *)host;
	return host->set_debug(host, true);
}

static void tell(const struct cuweir_host *host, const char *what,
		 const struct cuweir_event *event)
{
	char line[200];
	snprintf(line, sizeof(line), "%s %s %llu %p", what, event->call,
		 (unsigned long long)event->requested, event->pointer);
	host->log(host, line);
}

static void on_allocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	tell(state, "allocated", event);
}

static void before_free(void *state, const struct cuweir_event *event)
{
	tell(state, "free", event);
}

static void on_alloc_failed(void *state, const struct cuweir_event *event)
{
	tell(state, "failed", event);
}

static void on_context_ended(void *state, void *context, int device)
{
	const struct cuweir_host *host = state;
	char line[100];
	snprintf(line, sizeof(line), "context %p of device %d ended", context, device);
	host->log(host, line);
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "sketch_log",
	.open = open_log,
	.on_allocated = on_allocated,
	.before_free = before_free,
	.on_alloc_failed = on_alloc_failed,
	.on_context_ended = on_context_ended,
};
