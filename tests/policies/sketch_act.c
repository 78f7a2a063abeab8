/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command when a device's memory climbs over a mark: high=SIZE[,low=SIZE],run=COMMAND
 * (run= is last and takes the rest, commas included). Once for each climb: not again before
 * the total has been under `low`.
 */
#include "args.h"

#include <errno.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEVICES 64

struct act {
	const struct cuweir_host *host;
	uint64_t high;
	uint64_t low;
	char *command;
	atomic_bool fired[DEVICES];
};

/* The shell leaves the command behind and is awaited at once, so that no child remains. */
static void run(const struct act *act, int device, uint64_t total)
{
	char script[] = "{ eval \"$0\"; } </dev/null >&2 &";
	char shell[] = "sh", option[] = "-c", ordinal[12], bytes[21];
	snprintf(ordinal, sizeof(ordinal), "%d", device);
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)total);
	char *arguments[] = { shell, option, script, act->command, ordinal, bytes, NULL };
	pid_t child;
	int status;
	if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) != 0) {
		act->host->log(act->host, "sketch_act: the command could not be started");
		return;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
	}
}

static const uint64_t *high_mark(void *state, size_t *ret_count)
{
	*ret_count = 1;
	return &((struct act *)state)->high;
}

static const uint64_t *low_mark(void *state, size_t *ret_count)
{
	*ret_count = 1;
	return &((struct act *)state)->low;
}

static int on_climb(void *state, uint64_t total, const struct cuweir_event *event)
{
	struct act *act = state;
	struct cuweir_totals totals = { .struct_size = sizeof(totals) };
	if (event->device < 0 || event->device >= DEVICES ||
	    atomic_exchange(&act->fired[event->device], true)) {
		return CUWEIR_SUCCESS;
	}
	run(act, event->device, total);
	/*
	 * The fall may have been told before the climb, on another thread. Then nobody will tell
	 * it again, and the total says so.
	 */
	if (act->host->totals(act->host, event->device, CUWEIR_KIND_DEVICE, &totals) ==
		    CUWEIR_SUCCESS &&
	    totals.current < act->low) {
		atomic_store(&act->fired[event->device], false);
	}
	return CUWEIR_SUCCESS;
}

static int on_fall(void *state, uint64_t total, const struct cuweir_event *event)
{
	struct act *act = state;
	if (event->device >= 0 && event->device < DEVICES) {
		atomic_store(&act->fired[event->device], false);
	}
	return CUWEIR_SUCCESS;
}

static bool read_pair(struct act *act, const struct args_pair *pair)
{
	return (args_is(pair->key, "high") && args_size(pair->value, &act->high)) ||
	       (args_is(pair->key, "low") && args_size(pair->value, &act->low));
}

static int open_act(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct act *act = calloc(1, sizeof(*act));
	if (act == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	act->host = host;
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	while (act->command == NULL && args_next(&rest, &pair)) {
		if (args_is(pair.key, "run") && pair.value.start != NULL) {
			act->command = strdup(pair.value.start);
		} else if (!read_pair(act, &pair)) {
			free(act);
			return args_refuse(host, &pair, "high=SIZE, low=SIZE, or run=COMMAND");
		}
	}
	act->low = act->low == 0 ? act->high : act->low;
	if (act->high == 0 || act->low > act->high || act->command == NULL) {
		free(act->command);
		free(act);
		return host->refuse(host, "want high=SIZE, low= not above it, and run=COMMAND");
	}
	*ret_state = act;
	return CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "sketch_act",
	.open = open_act,
	.get_alloc_thresholds = high_mark,
	.get_dealloc_thresholds = low_mark,
	.on_alloc_threshold = on_climb,
	.on_dealloc_threshold = on_fall,
};
