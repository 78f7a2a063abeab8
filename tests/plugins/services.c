/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy for tests that uses the services of its host and says what it got (budgets and
 * reservations have tests of their own). The size of an
 * allocation of host memory is the order: see `orders`. Device memory is only told of. On
 * on_alloc_failure it sleeps, waits for a free, and says yes where one came: arguments
 * DELAY_MS,WAIT_MS.
 */
#include <cuweir/policy.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct cuweir_host *host;
static unsigned int delay_ms;
static unsigned int wait_ms;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[300];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	host->log(host, line);
}

static void say_totals(int device, int kind, size_t size)
{
	struct cuweir_totals totals;
	int status;

	memset(&totals, 0xee, sizeof(totals));
	totals.struct_size = size;
	status = host->totals(host, device, kind, &totals);
	if (status != CUWEIR_SUCCESS) {
		say("totals %d %d: %d", device, kind, status);
		return;
	}
	say("totals %d %d: %llu peak=%llu held=%llu allocations=%llu frees=%llu", device, kind,
	    (unsigned long long)totals.current, (unsigned long long)totals.peak,
	    (unsigned long long)totals.held, (unsigned long long)totals.allocations,
	    (unsigned long long)totals.frees);
}

static void all_totals(const struct cuweir_event *event)
{
	const int kinds = CUWEIR_KIND_COUNT;
	const size_t size = sizeof(struct cuweir_totals);

	(void)event;
	say_totals(0, CUWEIR_KIND_DEVICE, size);
	say_totals(0, CUWEIR_KIND_MANAGED, size);
	/* Of an older policy, whose struct has no reserved words. */
	say_totals(0, CUWEIR_KIND_HOST, offsetof(struct cuweir_totals, reserved));
	say_totals(0, CUWEIR_KIND_DEVICE, 8);
	say_totals(0, CUWEIR_KIND_NONE, size);
	say_totals(0, kinds, size);
	say_totals(-2, CUWEIR_KIND_DEVICE, size);
	say_totals(1 << 20, CUWEIR_KIND_DEVICE, size);
	say("totals NULL: %d", host->totals(host, 0, CUWEIR_KIND_DEVICE, NULL));
}

struct walked {
	unsigned int visits;
	unsigned int stop_at;
	uint64_t bytes[CUWEIR_KIND_COUNT];
	bool complete;
};

static bool visit(const struct cuweir_record *record, void *argument)
{
	struct walked *walked = argument;

	walked->visits++;
	walked->bytes[record->kind] += record->charged;
	walked->complete &= record->struct_size == sizeof(*record) && record->device == 0 &&
			    record->pointer != NULL && record->call_site != NULL &&
			    (record->context != NULL || strstr(record->call, "Async") != NULL);
	return walked->visits != walked->stop_at;
}

static void walk(const struct cuweir_event *event)
{
	struct walked all = { .complete = true };
	struct walked one = { .stop_at = 1 };

	(void)event;
	say("walk: %d", host->walk(host, visit, &all));
	say("walked %u device=%llu managed=%llu host=%llu complete=%d", all.visits,
	    (unsigned long long)all.bytes[CUWEIR_KIND_DEVICE],
	    (unsigned long long)all.bytes[CUWEIR_KIND_MANAGED],
	    (unsigned long long)all.bytes[CUWEIR_KIND_HOST], all.complete);
	host->walk(host, visit, &one);
	say("walked %u; NULL: %d", one.visits, host->walk(host, NULL, NULL));
}

static void switch_debug(bool on)
{
	bool was = host->get_debug(host);
	int status = host->set_debug(host, on);

	say("debug was %d, set %d, is %d", was, status, host->get_debug(host));
}

static void debug_on(const struct cuweir_event *event)
{
	(void)event;
	switch_debug(true);
}

static void debug_off(const struct cuweir_event *event)
{
	(void)event;
	switch_debug(false);
}

static void functions(const struct cuweir_event *event)
{
	int (*mem_alloc)(unsigned long long *, size_t) = NULL;
	int (*mem_free)(unsigned long long) = NULL;
	unsigned long long p = 0;
	void *none = NULL;
	int status;

	(void)event;
	status = host->driver_function(host, "cuMemAlloc_v2", (void **)&mem_alloc);
	say("driver_function %d", status);
	status = host->driver_function(host, "cuMemFree_v2", (void **)&mem_free);
	say("driver_function %d", status);
	say("none %d, NULL %d %d", host->driver_function(host, "cuNoSuchThing", &none),
	    host->driver_function(host, NULL, &none),
	    host->driver_function(host, "cuMemAlloc_v2", NULL));
	status = mem_alloc(&p, 1 << 20);
	say_totals(0, CUWEIR_KIND_DEVICE, sizeof(struct cuweir_totals));
	say("real calls %d %d", status, mem_free(p));
}

static void trim(const struct cuweir_event *event)
{
	(void)event;
	say("trim %d", host->trim(host, 0));
}

static void current(const struct cuweir_event *event)
{
	say("current_event %d", host->current_event(host) == event);
}

static void log_lines(const struct cuweir_event *event)
{
	static char long_line[5001];

	(void)event;
	memset(long_line, 'L', sizeof(long_line) - 1);
	say("log NULL %d", host->log(host, NULL));
	say("log long %d", host->log(host, long_line));
	host->log(host, "");
	host->log(host, "50%s %d \t\xff");
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void wait_in_vain(const struct cuweir_event *event)
{
	int64_t start = now_ms();
	int status = host->wait_for_free(host, 60000000);
	int64_t waited = now_ms() - start;

	(void)event;
	say("wait_for_free %d, in time %d", status, waited >= 59 && waited < 5000);
	start = now_ms();
	status = host->wait_for_free(host, 0);
	say("wait_for_free %d, at once %d", status, now_ms() - start < 1000);
}

static const struct {
	uint64_t size;
	void (*obey)(const struct cuweir_event *event);
} orders[] = {
	{ 1001, all_totals }, { 1002, walk },     { 1003, debug_on }, { 1004, debug_off },
	{ 1005, functions },  { 1006, trim },     { 1007, current },  { 1008, log_lines },
	{ 1009, wait_in_vain },
};

static int admit(void *state, const struct cuweir_event *event)
{
	(void)state;
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		if (event->kind == CUWEIR_KIND_HOST && event->requested == orders[i].size) {
			orders[i].obey(event);
		}
	}
	return CUWEIR_SUCCESS;
}

static bool on_alloc_failure(void *state, uint64_t size, int retry_count,
			     const struct cuweir_event *event)
{
	int64_t start;
	int status;

	(void)state, (void)event;
	usleep(delay_ms * 1000);
	start = now_ms();
	status = host->wait_for_free(host, (uint64_t)wait_ms * 1000000);
	say("failure %llu %d: waited %d, whole time %d", (unsigned long long)size, retry_count,
	    status, now_ms() - start >= (int64_t)wait_ms - 1);
	return status == CUWEIR_SUCCESS;
}

static void on_allocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	(void)state, (void)event;
	say("allocated %llu", (unsigned long long)size);
}

static void on_deallocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	(void)state, (void)event;
	say("deallocated %llu", (unsigned long long)size);
}

static int open_services(const struct cuweir_host *given, const char *arguments, void **ret_state)
{
	(void)ret_state;
	host = given;
	if (sscanf(arguments, "%u,%u", &delay_ms, &wait_ms) != 2) {
		return host->refuse(host, "want DELAY_MS,WAIT_MS");
	}
	say("host size %d version %u shim %s event %d",
	    host->struct_size == sizeof(struct cuweir_host), host->version, host->shim_version,
	    host->current_event(host) == NULL);
	return CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "services",
	.open = open_services,
	.admit = admit,
	.on_alloc_failure = on_alloc_failure,
	.on_allocated = on_allocated,
	.on_deallocated = on_deallocated,
};
