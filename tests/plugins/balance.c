/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy for tests that keeps the balance of many thresholds, from each event's own before and
 * after: at a quiet end ups - downs of every threshold is 1 where the total has reached it, and
 * 0 where it has not. Arguments: file=NAME,seed=N,count=N. At the close the file gets
 * "balance wrong=N events=N odd=N", odd for events that crossed nothing or contradict themselves.
 */
#include "args.h"
#include "decide.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { DEVICES = 2, KINDS = 4, COUNT_MAX = 256 };

struct balance {
	const struct cuweir_host *host;
	int fd;
	uint64_t seed;
	uint64_t count;
	uint64_t list[COUNT_MAX];
	atomic_int state[DEVICES][KINDS][COUNT_MAX];
	atomic_ullong events;
	atomic_ullong odd;
};

static const uint64_t *thresholds(void *state, size_t *ret_count)
{
	struct balance *self = state;

	*ret_count = (size_t)self->count;
	return self->list;
}

static void move(struct balance *self, const struct cuweir_event *event, uint64_t total, int by)
{
	uint64_t low = by > 0 ? event->total_before : event->total_after;
	uint64_t high = by > 0 ? event->total_after : event->total_before;
	bool any = false;

	for (uint64_t i = 0; i < self->count; i++) {
		if (low < self->list[i] && self->list[i] <= high) {
			self->state[event->device][event->kind][i] += by;
			any = true;
		}
	}
	self->events++;
	self->odd += !any || low >= high || total != event->total_after ||
		     high - low != event->charged;
}

static int up(void *state, uint64_t total, const struct cuweir_event *event)
{
	move(state, event, total, 1);
	return CUWEIR_SUCCESS;
}

static int down(void *state, uint64_t total, const struct cuweir_event *event)
{
	move(state, event, total, -1);
	return CUWEIR_SUCCESS;
}

static void close_balance(void *state)
{
	struct balance *self = state;
	unsigned long long wrong = 0;

	for (int device = 0; device < DEVICES; device++) {
		for (int kind = CUWEIR_KIND_DEVICE; kind < KINDS; kind++) {
			struct cuweir_totals totals = { .struct_size = sizeof(totals) };

			self->host->totals(self->host, device, kind, &totals);
			for (uint64_t i = 0; i < self->count; i++) {
				int reached = self->list[i] != 0 && totals.current >= self->list[i];

				wrong += self->state[device][kind][i] != reached;
			}
		}
	}
	dprintf(self->fd, "balance wrong=%llu events=%s odd=%llu\n", wrong,
		self->events > 100 ? "many" : "few", (unsigned long long)self->odd);
}

static int open_balance(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct balance *self = calloc(1, sizeof(*self));
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
		} else if (!(args_is(pair.key, "seed") && args_number(pair.value, &self->seed)) &&
			   !(args_is(pair.key, "count") && args_number(pair.value, &self->count) &&
			     self->count <= COUNT_MAX)) {
			return args_refuse(host, &pair, "what balance.c says");
		}
	}
	for (uint64_t i = 0; i < self->count; i++) {
		self->list[i] = decide_draw(self->seed, DECIDE_UP, i) % (1 << 17);
	}
	*ret_state = self;
	return CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.kinds = CUWEIR_KIND_BIT(CUWEIR_KIND_DEVICE) | CUWEIR_KIND_BIT(CUWEIR_KIND_MANAGED) |
		 CUWEIR_KIND_BIT(CUWEIR_KIND_HOST),
	.name = "balance",
	.open = open_balance,
	.close = close_balance,
	.get_alloc_thresholds = thresholds,
	.get_dealloc_thresholds = thresholds,
	.on_alloc_threshold = up,
	.on_dealloc_threshold = down,
};
