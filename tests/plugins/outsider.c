/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy for tests, written from the header alone: a limit by admit, memory held aside and
 * given up when there is want of it, and waiting for another thread.
 *
 * Arguments: file=NAME (required, first), limit=BYTES (admit refuses what would go beyond),
 * hold=BYTES (taken by the program's own driver at the first alloc threshold, at 1 byte),
 * wait=MILLISECONDS (on_alloc_failure waits that long for a free), take=BYTES (taken and given
 * back in on_alloc_threshold, with a second attempt at what cannot be had).
 */
#include "args.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct outsider {
	const struct cuweir_host *host;
	int fd;
	uint64_t limit;
	uint64_t hold;
	uint64_t wait;
	uint64_t take;
	_Atomic uint64_t held; /* an address; 1: being taken */
};

typedef int (*alloc_fn)(uint64_t *, size_t);
typedef int (*free_fn)(uint64_t);

static void *driver_symbol(const char *symbol)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	return dlsym(driver != NULL ? driver : RTLD_DEFAULT, symbol);
}

static void say(const struct outsider *self, const char *what, uint64_t number, int status)
{
	char line[128];
	int length = snprintf(line, sizeof(line), "%s %llu status=%d\n", what,
			      (unsigned long long)number, status);

	if (write(self->fd, line, (size_t)length) != length) {
		abort();
	}
}

static int admit(void *state, const struct cuweir_event *event)
{
	struct outsider *self = state;
	struct cuweir_totals totals = { .struct_size = sizeof(totals) };

	if (self->limit == 0 || event->kind != CUWEIR_KIND_DEVICE) {
		return CUWEIR_SUCCESS;
	}
	if (self->host->totals(self->host, event->device, CUWEIR_KIND_DEVICE, &totals) != 0 ||
	    totals.current > self->limit || event->requested > self->limit - totals.current) {
		say(self, "refused", event->requested, CUWEIR_ERROR_OUT_OF_MEMORY);
		return CUWEIR_ERROR_OUT_OF_MEMORY;
	}
	return CUWEIR_SUCCESS;
}

static const uint64_t *thresholds(void *state, size_t *ret_count)
{
	static const uint64_t list[] = { 1 };

	(void)state;
	*ret_count = 1;
	return list;
}

static int on_alloc_threshold(void *state, uint64_t total, const struct cuweir_event *event)
{
	struct outsider *self = state;
	alloc_fn alloc;
	free_fn give;
	uint64_t expected = 0;
	uint64_t pointer = 0;
	int status;

	(void)event;
	*(void **)&alloc = driver_symbol("cuMemAlloc_v2");
	*(void **)&give = driver_symbol("cuMemFree_v2");
	say(self, "threshold", total, 0);
	if (self->take != 0) {
		status = alloc(&pointer, self->take);
		say(self, "taken", self->take, status);
		if (status == 0) {
			say(self, "given", self->take, give(pointer));
		}
		say(self, "too much", 1, alloc(&pointer, (size_t)1 << 50));
	}
	if (self->hold != 0 && atomic_compare_exchange_strong(&self->held, &expected, 1)) {
		status = alloc(&pointer, self->hold);
		say(self, "held", self->hold, status);
		self->held = status == 0 ? pointer : 0;
	}
	return CUWEIR_SUCCESS;
}

static bool on_alloc_failure(void *state, uint64_t size, int retry_count,
			     const struct cuweir_event *event)
{
	struct outsider *self = state;
	uint64_t held = self->held;
	free_fn give;

	(void)event;
	say(self, "failure", size, retry_count);
	if (self->wait != 0) {
		int status = self->host->wait_for_free(self->host, self->wait * 1000000);

		say(self, "waited", 0, status);
		return status == CUWEIR_SUCCESS;
	}
	if (held > 1 && atomic_compare_exchange_strong(&self->held, &held, 0)) {
		*(void **)&give = driver_symbol("cuMemFree_v2");
		say(self, "gave up", self->hold, give(held));
		self->hold = 0;
		return true;
	}
	return false;
}

static int open_outsider(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct outsider *self = calloc(1, sizeof(*self));
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	char path[512];

	if (self == NULL) {
		return host->refuse(host, "no memory");
	}
	self->host = host;
	while (args_next(&rest, &pair)) {
		if (args_is(pair.key, "file") && args_path(host, pair.value, path, sizeof(path))) {
			self->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		} else if (!(args_is(pair.key, "limit") && args_size(pair.value, &self->limit)) &&
			   !(args_is(pair.key, "hold") && args_size(pair.value, &self->hold)) &&
			   !(args_is(pair.key, "take") && args_size(pair.value, &self->take)) &&
			   !(args_is(pair.key, "wait") && args_number(pair.value, &self->wait))) {
			return args_refuse(host, &pair, "what outsider.c says");
		}
	}
	*ret_state = self;
	return CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "outsider",
	.open = open_outsider,
	.get_alloc_thresholds = thresholds,
	.on_alloc_threshold = on_alloc_threshold,
	.on_alloc_failure = on_alloc_failure,
	.admit = admit,
};
