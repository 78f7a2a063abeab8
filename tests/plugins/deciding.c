/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy for tests that answers by decide.h and writes a line for each callback.
 *
 * Arguments: file=NAME (required), seed=N, up=N and down=N (how many thresholds), and the
 * percentages veto=N, status=N, retry=N, admit=N, switch=N, nest=N; budget=BYTES of device
 * memory on each device.
 *
 * Built three times: deciding (thresholds of all kinds), deciding_plain (of device memory),
 * deciding_minimal (all kinds, without admit and before_free).
 */
#include "args.h"
#include "decide.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

struct deciding {
	const struct cuweir_host *host;
	int fd;
	uint64_t seed;
	uint64_t percent[DECIDE_KINDS];
	uint64_t asked[DECIDE_KINDS];
	uint64_t *lists[2];
	size_t counts[2];
	uint64_t budget;
	uint64_t kept; /* memory that it took in a callback */
};

typedef unsigned long long ull;

__attribute__((format(printf, 2, 3)))
static void line(const struct deciding *self, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	int length = vsnprintf(text, sizeof(text) - 1, format, arguments);
	va_end(arguments);
	text[length++] = '\n';
	if (write(self->fd, text, (size_t)length) != length) {
		abort();
	}
}

static uint64_t draw(struct deciding *self, enum decide_what what)
{
	return decide_draw(self->seed, what, self->asked[what]++);
}

static void tell(const struct deciding *self, const char *name, uint64_t number,
		 const struct cuweir_event *event, int answer)
{
	line(self, "%s %llu kind=%u device=%d requested=%llu charged=%llu before=%llu after=%llu "
		   "flags=%u status=%d answer=%d",
	     name, (ull)number, event->kind, event->device, (ull)event->requested,
	     (ull)event->charged, (ull)event->total_before, (ull)event->total_after,
	     event->flags & ~(uint32_t)CUWEIR_EVENT_PER_THREAD, event->status, answer);
}

static const uint64_t *list(struct deciding *self, int which, size_t *ret_count)
{
	*ret_count = self->counts[which];
	return self->lists[which];
}

static const uint64_t *alloc_thresholds(void *state, size_t *ret_count)
{
	return list(state, 0, ret_count);
}

static const uint64_t *dealloc_thresholds(void *state, size_t *ret_count)
{
	return list(state, 1, ret_count);
}

/* Takes memory by the program's driver, or gives back what it has. */
static void nest(struct deciding *self)
{
	int (*take)(uint64_t *, size_t) = NULL;
	int (*give)(uint64_t) = NULL;
	uint64_t drawn = draw(self, DECIDE_NEST);
	void *driver;

	if (!decide_yes(drawn, (unsigned int)self->percent[DECIDE_NEST])) {
		return;
	}
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	driver = driver != NULL ? driver : RTLD_DEFAULT;
	*(void **)&take = dlsym(driver, "cuMemAlloc_v2");
	*(void **)&give = dlsym(driver, "cuMemFree_v2");
	if (self->kept == 0) {
		(void)take(&self->kept, 1 + drawn / 100 % 5000);
	} else if (give(self->kept) == 0) {
		self->kept = 0;
	}
}

static int on_alloc_threshold(void *state, uint64_t total, const struct cuweir_event *event)
{
	struct deciding *self = state;
	int status = decide_status(draw(self, DECIDE_VETO), (unsigned int)self->percent[0]);

	if (decide_yes(draw(self, DECIDE_SWITCH), (unsigned int)self->percent[DECIDE_SWITCH])) {
		self->host->set_debug(self->host, !self->host->get_debug(self->host));
	}
	nest(self);
	tell(self, "alloc_threshold", total, event, status);
	return status;
}

static int on_dealloc_threshold(void *state, uint64_t total, const struct cuweir_event *event)
{
	struct deciding *self = state;
	int status = decide_status(draw(self, DECIDE_STATUS),
				   (unsigned int)self->percent[DECIDE_STATUS]);

	tell(self, "dealloc_threshold", total, event, status);
	return status;
}

static bool on_alloc_failure(void *state, uint64_t size, int retry_count,
			     const struct cuweir_event *event)
{
	struct deciding *self = state;
	bool again = decide_yes(draw(self, DECIDE_RETRY),
				(unsigned int)self->percent[DECIDE_RETRY]) &&
		     retry_count < DECIDE_RETRIES;

	if (size != event->requested || retry_count != (int)event->retry_count) {
		line(self, "the arguments of alloc_failure are not its event's");
	}
	nest(self);
	tell(self, "alloc_failure", (uint64_t)retry_count, event, again);
	return again;
}

static void on_allocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	tell(state, "allocated", size, event, 0);
}

static void on_deallocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	tell(state, "deallocated", size, event, 0);
}

static void on_alloc_failed(void *state, const struct cuweir_event *event)
{
	tell(state, "alloc_failed", 0, event, 0);
}

static void on_context_ended(void *state, void *context, int device)
{
	line(state, "context_ended device=%d known=%d", device, context != NULL);
}

#ifndef DECIDING_MINIMAL
static int admit(void *state, const struct cuweir_event *event)
{
	struct deciding *self = state;
	int status = decide_status(draw(self, DECIDE_ADMIT),
				   (unsigned int)self->percent[DECIDE_ADMIT]);

	tell(self, "admit", 0, event, status);
	return status;
}

static void before_free(void *state, const struct cuweir_event *event)
{
	tell(state, "before_free", 0, event, 0);
}
#endif

static bool read_pair(struct deciding *self, const struct args_pair *pair)
{
	static const char *const percents[DECIDE_KINDS] = {
		[DECIDE_VETO] = "veto",	  [DECIDE_STATUS] = "status", [DECIDE_RETRY] = "retry",
		[DECIDE_ADMIT] = "admit", [DECIDE_SWITCH] = "switch",
		[DECIDE_NEST] = "nest",
	};
	char path[512];

	if (args_is(pair->key, "file") && pair->value.length < sizeof(path)) {
		memcpy(path, pair->value.start, pair->value.length);
		path[pair->value.length] = '\0';
		self->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
		return self->fd >= 0;
	}
	for (int what = 0; what < DECIDE_KINDS; what++) {
		if (percents[what] != NULL && args_is(pair->key, percents[what])) {
			return args_number(pair->value, &self->percent[what]);
		}
	}
	return (args_is(pair->key, "budget") && args_number(pair->value, &self->budget)) ||
	       (args_is(pair->key, "seed") && args_number(pair->value, &self->seed)) ||
	       (args_is(pair->key, "up") && args_number(pair->value, &self->counts[0])) ||
	       (args_is(pair->key, "down") && args_number(pair->value, &self->counts[1]));
}

static int open_deciding(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct deciding *self = calloc(1, sizeof(*self));
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };

	if (self == NULL) {
		return host->refuse(host, "no memory");
	}
	self->host = host;
	while (args_next(&rest, &pair)) {
		if (!read_pair(self, &pair)) {
			return args_refuse(host, &pair, "what deciding.c says");
		}
	}
	for (int which = 0; which < 2; which++) {
		self->lists[which] = calloc(self->counts[which] + 1, sizeof(uint64_t));
		for (size_t i = 0; i < self->counts[which]; i++) {
			self->lists[which][i] = decide_threshold(decide_draw(
				self->seed, which == 0 ? DECIDE_UP : DECIDE_DOWN, i));
		}
	}
	for (int device = 0; self->budget != 0 && device < 2; device++) {
		host->set_budget(host, device, 0, self->budget);
	}
	*ret_state = self;
	return CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
#ifndef DECIDING_PLAIN
	.kinds = CUWEIR_KIND_BIT(CUWEIR_KIND_DEVICE) | CUWEIR_KIND_BIT(CUWEIR_KIND_MANAGED) |
		 CUWEIR_KIND_BIT(CUWEIR_KIND_HOST),
#endif
	.name = "deciding",
	.open = open_deciding,
	.get_alloc_thresholds = alloc_thresholds,
	.get_dealloc_thresholds = dealloc_thresholds,
	.on_alloc_threshold = on_alloc_threshold,
	.on_dealloc_threshold = on_dealloc_threshold,
	.on_alloc_failure = on_alloc_failure,
	.on_allocated = on_allocated,
	.on_deallocated = on_deallocated,
	.on_alloc_failed = on_alloc_failed,
#ifndef DECIDING_MINIMAL
	.admit = admit,
	.before_free = before_free,
#endif
	.on_context_ended = on_context_ended,
};
