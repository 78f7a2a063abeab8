/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy `retry`: what a program could do about an out-of-memory, done for it. Memory that
 * is only waiting to be given back is given back first; then frees of other threads are awaited,
 * each time twice as long, a bounded number of times. Not during stream capture: synchronizing
 * would break it, and so the policy does not declare itself capture-safe.
 */
#include "args.h"

#include <stdlib.h>
#include <time.h>

#define MAX_RETRIES 1000000
#define NS_PER_S 1000000000ull

struct retry {
	const struct cuweir_host *host;
	uint64_t max;
	uint64_t first_ns;
	uint64_t longest_ns;
	uint64_t wait_ns; /* for one allocation in all; 0: as long as it takes */
	bool sync;
	bool trim;
};

/* When this thread's allocation first failed, of whichever policy in the chain asks. */
static _Thread_local uint64_t began_ns __attribute__((tls_model("initial-exec")));

static uint64_t now_ns(void)
{
	struct timespec now = { 0 };
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/*
 * What streams have not reached yet cannot be given back by anybody: so this waits for them,
 * in the context that is current, and then has the driver give up what it only keeps.
 */
static void give_back(const struct retry *retry, const struct cuweir_event *event)
{
	void *function = NULL;
	if (event->kind == CUWEIR_KIND_HOST || event->device < 0) {
		return; /* neither is of use to memory of the host */
	}
	if (retry->sync && retry->host->driver_function(retry->host, "cuCtxSynchronize",
							&function) == CUWEIR_SUCCESS) {
		/* An error of earlier work is told by the next attempt, as it would have been. */
		((int (*)(void))function)();
	}
	if (retry->trim) {
		retry->host->trim(retry->host, event->device);
	}
}

/* first_ns times 2^count, at most longest_ns. */
static uint64_t pause_of(const struct retry *retry, unsigned int count)
{
	if (count >= 63 || retry->first_ns > retry->longest_ns >> count) {
		return retry->longest_ns;
	}
	return retry->first_ns << count;
}

static bool on_alloc_failure(void *state, uint64_t size, int retry_count,
			     const struct cuweir_event *event)
{
	const struct retry *retry = state;
	unsigned int count = (unsigned int)retry_count;
	if (count >= retry->max || (event->flags & CUWEIR_EVENT_CAPTURING) != 0) {
		return false;
	}
	uint64_t now = now_ns();
	if (count == 0) {
		began_ns = now;
	}
	/* At the last try once more: other threads have freed into the pools meanwhile. */
	if (count == 0 || count + 1 == retry->max) {
		give_back(retry, event);
		if (count == 0 && (retry->sync || retry->trim)) {
			return true;
		}
	}
	uint64_t pause = pause_of(retry, count);
	if (retry->wait_ns != 0) {
		uint64_t spent = now - began_ns;
		if (spent >= retry->wait_ns) {
			return false;
		}
		pause = pause < retry->wait_ns - spent ? pause : retry->wait_ns - spent;
	}
	/* Whatever it says: what is missing may be another process's, whose frees are not seen. */
	if (pause != 0) {
		retry->host->wait_for_free(retry->host, pause);
	}
	return true;
}

static const char *read_backoff(struct args_text value, struct retry *retry)
{
	static const char want[] = "backoff=FIRST..LONGEST with a unit (ns, us, ms, s, m), FIRST "
				   "not above LONGEST: backoff=1ms..100ms";
	struct args_text first = value;
	struct args_text last = value;
	for (size_t i = 0; value.start != NULL && i + 1 < value.length; i++) {
		if (value.start[i] == '.' && value.start[i + 1] == '.') {
			first.length = i;
			last.start += i + 2;
			last.length -= i + 2;
			break;
		}
	}
	return args_time(first, &retry->first_ns) && args_time(last, &retry->longest_ns) &&
			       retry->first_ns <= retry->longest_ns ?
		       NULL :
		       want;
}

static const char *read_argument(const struct args_pair *pair, struct retry *retry)
{
	if (args_is(pair->key, "max")) {
		return args_number(pair->value, &retry->max) && retry->max <= MAX_RETRIES ?
			       NULL :
			       "max=N, 0 to 1000000 attempts after the first";
	}
	if (args_is(pair->key, "backoff")) {
		return read_backoff(pair->value, retry);
	}
	if (args_is(pair->key, "wait")) {
		return args_time(pair->value, &retry->wait_ns) ?
			       NULL :
			       "wait=TIME with a unit (ns, us, ms, s, m): wait=5s; 0 for no limit";
	}
	if (args_is(pair->key, "sync")) {
		return args_flag(pair->value, &retry->sync) ? NULL : "sync=0 or sync=1";
	}
	if (args_is(pair->key, "trim")) {
		return args_flag(pair->value, &retry->trim) ? NULL : "trim=0 or trim=1";
	}
	return "max=, backoff=, wait=, sync= or trim=";
}

static int open_retry(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct retry retry = {
		.host = host,
		.max = 16,
		.first_ns = 1000000,
		.longest_ns = 100000000,
		.sync = true,
		.trim = true,
	};
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	while (args_next(&rest, &pair)) {
		const char *want = read_argument(&pair, &retry);
		if (want != NULL) {
			return args_refuse(host, &pair, want);
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
	.name = "retry",
	.summary = "tries again where memory ran out, a bounded number of times",
	.arguments = "max=N (16): attempts after the first\n"
		     "backoff=FIRST..LONGEST (1ms..100ms): pauses between them, doubled each time; "
		     "a free by another thread ends one\n"
		     "wait=TIME (0: no limit): give an allocation up after this time\n"
		     "sync=0|1 (1): wait for the context's work before the first and the last\n"
		     "trim=0|1 (1): have the driver give unused pool and graph memory back there",
	.open = open_retry,
	.on_alloc_failure = on_alloc_failure,
};
