/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy `act`: does something when memory passes a mark: writes a line, runs a command,
 * sends a signal, switches debug events on. Once for each crossing: not again before the memory
 * has come back by the hysteresis. It refuses nothing and makes nobody wait.
 */
#include "act.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull

typedef int (*total_mem_fn)(size_t *bytes, int device);
typedef int (*mem_info_fn)(size_t *free_bytes, size_t *total_bytes);
typedef int (*get_device_fn)(int *device);

static uint64_t now_ns(void)
{
	struct timespec now = { 0 };
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* One command a second at most, of all marks together. */
static bool may_run(struct act *act)
{
	uint64_t now = now_ns();
	unsigned long long last = atomic_load(&act->ran_ns);
	return (last == 0 || now - last >= NS_PER_S) &&
	       atomic_compare_exchange_strong(&act->ran_ns, &last, now);
}

static const char *kind_name(uint32_t kind)
{
	static const char *const names[CUWEIR_KIND_COUNT] = {
		"none",     "device",  "managed", "host",          "registered",
		"imported", "virtual", "pool",    "graph_planned",
	};
	return kind < CUWEIR_KIND_COUNT ? names[kind] : "unknown";
}

static void add_fact(struct act_facts *facts, const char *name, const char *value)
{
	snprintf(facts->entries[facts->count++], sizeof(facts->entries[0]), "ACT_%s=%s", name,
		 value);
}

static void add_number(struct act_facts *facts, const char *name, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRIu64, value);
	add_fact(facts, name, text);
}

static void collect(struct act_facts *facts, const struct act_case *what)
{
	const struct cuweir_event *event = what->event;
	char device[12];
	snprintf(device, sizeof(device), "%d", what->device);
	facts->count = 0;
	add_fact(facts, "WHAT", what->what);
	add_number(facts, "PID", (uint64_t)getpid());
	add_fact(facts, "DEVICE", device);
	add_fact(facts, "KIND", kind_name(event->kind));
	add_number(facts, "MARK", what->mark);
	add_number(facts, "VALUE", what->value);
	add_fact(facts, "CALL", event->call);
	add_number(facts, "SIZE", event->requested);
	add_number(facts, "THREAD", event->thread);
}

static void tell_once(struct act *act, const char *deed, const char *what, int error)
{
	char line[PATH_MAX + 200];
	char text[80];
	if (error != 0 && !atomic_exchange(&act->told, true)) {
		snprintf(line, sizeof(line), "cuweir[%d]: act: %s: %s: %s",
			 (int)getpid(), deed, what, strerror_r(error, text, sizeof(text)));
		act->host->log(act->host, line);
	}
}

/* One line, the same facts as the command's environment: time=... what=over pid=... */
static void write_line(struct act *act, const struct act_facts *facts)
{
	char line[ACT_FACTS * 160 + 40];
	struct timespec now = { 0 };
	clock_gettime(CLOCK_REALTIME, &now);
	size_t length = (size_t)snprintf(line, sizeof(line), "time=%lld.%06ld",
					 (long long)now.tv_sec, now.tv_nsec / 1000);
	for (size_t i = 0; i < facts->count; i++) {
		line[length++] = ' ';
		for (const char *at = facts->entries[i] + 4; *at != '\0'; at++) {
			bool in_name = memchr(facts->entries[i], '=',
					      (size_t)(at - facts->entries[i])) == NULL;
			line[length++] = in_name && *at >= 'A' && *at <= 'Z' ?
						 (char)(*at - 'A' + 'a') :
						 *at;
		}
	}
	line[length++] = '\n';
	int error = act_write(act->file, line, length);
	/* Nobody reads the FIFO, or not fast enough: as it was asked for. */
	tell_once(act, "file= could not be written", act->file,
		  error == ENXIO || error == EAGAIN || error == EPIPE ? 0 : error);
}

static void do_all(struct act *act, const struct act_case *what, bool passed)
{
	struct act_facts facts;
	collect(&facts, what);
	if (act->file != NULL) {
		write_line(act, &facts);
	}
	if (!passed) {
		return;
	}
	if (act->debug) {
		act->host->set_debug(act->host, true);
	}
	if (act->signal != 0) {
		pid_t target = act->signal_pid != 0 ? act->signal_pid : getpid();
		char number[12];
		snprintf(number, sizeof(number), "%d", act->signal);
		tell_once(act, "signal= could not be sent", number,
			  kill(target, act->signal) == 0 ? 0 : errno);
	}
	if (act->command != NULL && may_run(act)) {
		tell_once(act, "run= could not be started", act->command,
			  act_run(act->command, act->environment, &facts));
	}
}

static struct act_mark *mark_of(struct act *act, int device)
{
	bool wanted = device >= 0 && device < ACT_DEVICES &&
		      (act->device < 0 || act->device == device);
	return wanted ? &act->marks[device] : NULL;
}

/* ---- total= ------------------------------------------------------------------------------- */

/*
 * Both directions come here: callbacks of different threads may arrive in another order than
 * the crossings, so the figure itself decides, read after the state was changed.
 */
static void look_at_total(struct act *act, const struct cuweir_event *event, uint64_t total)
{
	struct act_mark *mark = mark_of(act, event->device);
	struct cuweir_totals now = { .struct_size = sizeof(now) };
	if (mark == NULL || mark->high == 0 || event->kind >= CUWEIR_KIND_COUNT ||
	    (act->kinds & CUWEIR_KIND_BIT(event->kind)) == 0) {
		return;
	}
	atomic_bool *over = &mark->over[event->kind];
	struct act_case what = { "over", event->device, mark->high, total, event };
	if (total >= mark->high && !atomic_exchange(over, true)) {
		do_all(act, &what, true);
		act->host->totals(act->host, event->device, (int)event->kind, &now);
		total = now.current;
	}
	if (total < mark->low && atomic_exchange(over, false)) {
		what.what = "under";
		what.mark = mark->low;
		what.value = total;
		do_all(act, &what, false);
	}
}

static int on_threshold(void *state, uint64_t total, const struct cuweir_event *event)
{
	look_at_total(state, event, total);
	return CUWEIR_SUCCESS;
}

static const uint64_t *high_marks(void *state, size_t *ret_count)
{
	struct act *act = state;
	*ret_count = act->count;
	return act->highs;
}

static const uint64_t *low_marks(void *state, size_t *ret_count)
{
	struct act *act = state;
	*ret_count = act->count;
	return act->lows;
}

/* ---- free= -------------------------------------------------------------------------------- */

static bool ask_free(struct act *act, int *ret_device, uint64_t *ret_free, uint64_t *ret_total)
{
	void *mem_info = NULL;
	void *get_device = NULL;
	size_t free_bytes = 0;
	size_t total_bytes = 0;
	if (act->host->driver_function(act->host, "cuMemGetInfo_v2", &mem_info) != 0 ||
	    act->host->driver_function(act->host, "cuCtxGetDevice", &get_device) != 0 ||
	    ((get_device_fn)get_device)(ret_device) != 0 ||
	    ((mem_info_fn)mem_info)(&free_bytes, &total_bytes) != 0) {
		return false;
	}
	*ret_free = free_bytes;
	*ret_total = total_bytes;
	return true;
}

/* Before an allocation: what the device would have left after it, as the driver sees it. */
static int admit(void *state, const struct cuweir_event *event)
{
	struct act *act = state;
	if (!act->has_free || (event->flags & (CUWEIR_EVENT_CAPTURING | CUWEIR_EVENT_NESTED)) ||
	    event->kind != CUWEIR_KIND_DEVICE || mark_of(act, event->device) == NULL) {
		return CUWEIR_SUCCESS;
	}
	struct act_mark *mark = mark_of(act, event->device);
	uint64_t now = now_ns();
	unsigned long long asked = atomic_load(&mark->asked_ns);
	uint64_t left, total;
	int device = -1;
	if ((asked != 0 && now - asked < act->period_ns) ||
	    !atomic_compare_exchange_strong(&mark->asked_ns, &asked, now) ||
	    !ask_free(act, &device, &left, &total) || device != event->device) {
		return CUWEIR_SUCCESS;
	}
	left = left > event->requested ? left - event->requested : 0;
	uint64_t bytes = act->free_percent != 0 ? args_percent_of(total, act->free_percent) :
						  act->free;
	uint64_t back = args_percent_of(act->hysteresis_percent != 0 ? bytes : 0,
					act->hysteresis_percent) +
			act->hysteresis;
	struct act_case what = { "low", device, bytes, left, event };
	if (left < bytes && !atomic_exchange(&mark->low_free, true)) {
		do_all(act, &what, true);
	} else if (left >= bytes && left - bytes >= back &&
		   atomic_exchange(&mark->low_free, false)) {
		what.what = "enough";
		do_all(act, &what, false);
	}
	return CUWEIR_SUCCESS;
}

/* ---- oom= --------------------------------------------------------------------------------- */

static void on_alloc_failed(void *state, const struct cuweir_event *event)
{
	struct act *act = state;
	if (!act->oom || event->status != CUWEIR_ERROR_OUT_OF_MEMORY ||
	    (event->flags & CUWEIR_EVENT_NESTED) != 0 ||
	    (act->kinds & CUWEIR_KIND_BIT(event->kind)) == 0 ||
	    (act->device >= 0 && act->device != event->device)) {
		return;
	}
	struct act_case what = { "oom", event->device, event->requested, event->total_after,
				 event };
	do_all(act, &what, true);
}

/* ---- open --------------------------------------------------------------------------------- */

/* A driver that the program has not initialized stays so: it may still mean to fork. */
static uint64_t device_bytes(const struct cuweir_host *host, int device)
{
	void *total_mem = NULL;
	size_t bytes = 0;
	if (host->driver_function(host, "cuDeviceTotalMem_v2", &total_mem) != CUWEIR_SUCCESS ||
	    ((total_mem_fn)total_mem)(&bytes, device) != CUWEIR_SUCCESS) {
		return 0;
	}
	return bytes;
}

static void set_mark(struct act *act, int device, uint64_t high)
{
	uint64_t back = act->hysteresis_percent != 0 ?
				args_percent_of(high, act->hysteresis_percent) :
				act->hysteresis;
	act->marks[device].high = high;
	act->marks[device].low = back < high ? high - back : 1;
}

/* The marks of each device, and the thresholds that have the shim tell of them. */
static void set_marks(struct act *act)
{
	int listed = act->total_percent != 0 ? ACT_DEVICES : 1;
	for (int device = 0; device < ACT_DEVICES && act->total != 0; device++) {
		set_mark(act, device, act->total);
	}
	for (int device = 0; device < ACT_DEVICES && act->total_percent != 0; device++) {
		uint64_t bytes = device_bytes(act->host, device);
		if (bytes != 0) {
			set_mark(act, device, args_percent_of(bytes, act->total_percent));
		}
	}
	for (int device = 0; device < listed; device++) {
		if (act->marks[device].high != 0) {
			act->highs[act->count] = act->marks[device].high;
			act->lows[act->count++] = act->marks[device].low;
		}
	}
}

static int open_act(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct act *act = calloc(1, sizeof(*act));
	if (act == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	int status = act_read(act, host, arguments);
	if (status == CUWEIR_SUCCESS && act->command != NULL) {
		act->environment = act_environment();
		status = act->environment != NULL ? CUWEIR_SUCCESS :
						    host->refuse(host, "no memory for its state");
	}
	if (status != CUWEIR_SUCCESS) {
		free(act->file);
		free(act->command);
		free(act);
		return status;
	}
	set_marks(act);
	if (act->total_percent != 0 && act->count == 0 && (host->flags & CUWEIR_HOST_TRIAL) == 0) {
		char line[200];
		snprintf(line, sizeof(line), "cuweir[%d]: act: total=%u%%: the driver does not say yet "
			 "how much there is, and it is not waited for: want total= in bytes",
			 (int)getpid(), act->total_percent);
		host->log(host, line);
	}
	*ret_state = act;
	return CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.flags = CUWEIR_POLICY_CAPTURE_SAFE,
	.kinds = (1u << CUWEIR_KIND_COUNT) - 2,
	.name = "act",
	.summary = "writes a line, runs a command or sends a signal when memory passes a mark",
	.arguments = ACT_ARGUMENTS,
	.open = open_act,
	.get_alloc_thresholds = high_marks,
	.get_dealloc_thresholds = low_marks,
	.on_alloc_threshold = on_threshold,
	.on_dealloc_threshold = on_threshold,
	.admit = admit,
	.on_alloc_failed = on_alloc_failed,
};
