/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy `log`: a row for every allocation, failed attempt and free that passes its place
 * in the chain, as RMM's logging adaptor has one at its place in a stack of resources. What
 * policies before it (nearer to the program) do on their own account is not seen; each retry
 * of theirs is.
 */
#include "args.h"
#include "log_row.h"
#include "log_sink.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct log {
	struct log_row row;
	struct log_sink sink;
	const struct cuweir_host *host;
	uint64_t bit; /* this place in the chain, in attempts_open */
	uint32_t kinds;
	bool always;  /* also while debug is off */
};

/* What the arguments say. */
struct settings {
	struct args_text file;
	uint64_t debug;
	uint32_t kinds;
	enum log_format format;
	bool block;
};

/*
 * Attempts of this thread that passed `admit` and of which no outcome has been told yet, a bit
 * for each place in the chain that names the policy. An out-of-memory is told as
 * on_alloc_failure and again, at the end, as on_alloc_failed; and a refusal by a policy before
 * this one is told at the end although it never came here. This keeps it to one row for each
 * failed attempt. Initial-exec: the first touch in a thread must not call malloc.
 */
static _Thread_local uint64_t attempts_open __attribute__((tls_model("initial-exec")));

static atomic_uint places;

/* Events come to this policy whether or not debug is on for the others. */
static bool wants_events(const struct log *log)
{
	return log->always || log->host->get_debug(log->host);
}

static void put(struct log *log, enum log_action action, const struct cuweir_event *event)
{
	char buffer[LOG_ROW_SIZE];
	if ((log->kinds & CUWEIR_KIND_BIT(event->kind)) == 0) {
		return;
	}
	size_t length = log_row_format(&log->row, action, event, buffer);
	log_sink_put(&log->sink, buffer, length);
}

static int admit(void *state, const struct cuweir_event *event)
{
	struct log *log = state;
	if ((event->flags & CUWEIR_EVENT_NESTED) == 0) {
		attempts_open |= log->bit;
	}
	return CUWEIR_SUCCESS;
}

static void on_allocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	struct log *log = state;
	if ((event->flags & CUWEIR_EVENT_NESTED) == 0) {
		attempts_open &= ~log->bit;
	}
	if (wants_events(log)) {
		put(log, LOG_ALLOCATE, event);
	}
}

static bool on_alloc_failure(void *state, uint64_t size, int retry_count,
			     const struct cuweir_event *event)
{
	struct log *log = state;
	attempts_open &= ~log->bit;
	put(log, LOG_FAILURE, event);
	return false;
}

static void on_alloc_failed(void *state, const struct cuweir_event *event)
{
	struct log *log = state;
	if ((event->flags & CUWEIR_EVENT_NESTED) == 0) {
		if ((attempts_open & log->bit) == 0) {
			return;
		}
		attempts_open &= ~log->bit;
	}
	put(log, LOG_FAILURE, event);
}

/*
 * Before, not after: once it is free, another thread may be given the address, and its row
 * would come first. Where events are not wanted there is no row of the allocation either.
 */
static void before_free(void *state, const struct cuweir_event *event)
{
	struct log *log = state;
	if (!wants_events(log)) {
		return;
	}
	/* A vetoed allocation that was not told here is a failure, and told as one. */
	if ((event->flags & CUWEIR_EVENT_UNDO) != 0 && (attempts_open & log->bit) != 0) {
		return;
	}
	put(log, LOG_FREE, event);
}

static const char *read_argument(const struct args_pair *pair, struct settings *settings)
{
	if (args_is(pair->key, "format")) {
		settings->format = args_is(pair->value, "csv") ? LOG_CSV : LOG_TEXT;
		bool good = settings->format == LOG_CSV || args_is(pair->value, "text");
		return good ? NULL : "format=text or format=csv";
	}
	if (args_is(pair->key, "file")) {
		settings->file = pair->value;
		return pair->value.start != NULL && pair->value.length > 0 ? NULL : "file=NAME";
	}
	if (args_is(pair->key, "flush")) {
		settings->block = args_is(pair->value, "block");
		bool good = settings->block || args_is(pair->value, "line");
		return good ? NULL : "flush=line or flush=block";
	}
	if (args_is(pair->key, "debug")) {
		bool good = args_number(pair->value, &settings->debug) && settings->debug <= 1;
		return good ? NULL : "debug=0 or debug=1";
	}
	if (args_is(pair->key, "kinds")) {
		return args_kinds(pair->value, &settings->kinds) ?
			       NULL :
			       "kinds=all, or names joined by '+': device, managed, host, "
			       "registered, imported, virtual, pool, graph_planned";
	}
	return "format=, file=, flush=, debug= or kinds=";
}

/* Copies a file name with its %p; false where it has another %, or is too long. */
static bool expand_file(struct args_text name, char path[PATH_MAX])
{
	size_t length = 0;
	for (size_t i = 0; i < name.length; i++) {
		if (length > PATH_MAX - 16) {
			return false;
		}
		if (name.start[i] != '%') {
			path[length++] = name.start[i];
			continue;
		}
		if (++i < name.length && name.start[i] == '%') {
			path[length++] = '%';
		} else if (i < name.length && name.start[i] == 'p') {
			length += (size_t)snprintf(path + length, 16, "%d", (int)getpid());
		} else {
			return false;
		}
	}
	path[length] = '\0';
	return true;
}

static int read_settings(const struct cuweir_host *host, const char *arguments,
			 struct settings *settings)
{
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	while (args_next(&rest, &pair)) {
		const char *want = read_argument(&pair, settings);
		if (want != NULL) {
			return args_refuse(host, &pair, want);
		}
	}
	if (settings->block && settings->file.start == NULL) {
		return host->refuse(host, "flush=block: want file=NAME with it");
	}
	return CUWEIR_SUCCESS;
}

static int open_sink(struct log *log, const struct settings *settings)
{
	char path[PATH_MAX];
	bool has_file = settings->file.start != NULL;
	if (has_file && !expand_file(settings->file, path)) {
		return log->host->refuse(log->host, "file=: want a name of at most 4080 bytes, "
						    "%p in it for the pid, %% for a percent sign");
	}
	int error = log_sink_open(&log->sink, log->host, has_file ? path : NULL, settings->block);
	if (error != 0) {
		char reason[PATH_MAX + 200];
		char text[80];
		snprintf(reason, sizeof(reason),
			 "file=%s: %s; want a file that can be written, in a directory that exists",
			 path, strerror_r(error, text, sizeof(text)));
		return log->host->refuse(log->host, reason);
	}
	return CUWEIR_SUCCESS;
}

static int open_log(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct settings settings = { .debug = 1 };
	args_kinds((struct args_text){ "all", 3 }, &settings.kinds);
	int status = read_settings(host, arguments, &settings);
	if (status != CUWEIR_SUCCESS) {
		return status;
	}
	unsigned int place = atomic_fetch_add(&places, 1);
	if (place >= 64) {
		return host->refuse(host, "named more than 64 times: want it less often");
	}
	struct log *log = calloc(1, sizeof(*log));
	if (log == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	time_t now = time(NULL);
	struct tm local = { 0 };
	localtime_r(&now, &local); /* once: it reads files and takes a lock */
	log->host = host;
	log->bit = 1ull << place;
	log->kinds = settings.kinds;
	/* Who names a log asks for events; `debug=0` leaves that to CUWEIR_DEBUG. */
	log->always = settings.debug != 0;
	log->row.format = settings.format;
	log->row.zone_offset = local.tm_gmtoff;
	log->row.pid = (uint64_t)getpid();
	status = open_sink(log, &settings);
	if (status != CUWEIR_SUCCESS) {
		free(log);
		return status;
	}
	if (settings.format == LOG_CSV) {
		char header[] = LOG_CSV_HEADER "\n";
		log_sink_put(&log->sink, header, sizeof(header) - 1);
	}
	*ret_state = log;
	return CUWEIR_SUCCESS;
}

static void close_log(void *state)
{
	struct log *log = state;
	log_sink_close(&log->sink);
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.flags = CUWEIR_POLICY_CAPTURE_SAFE | CUWEIR_POLICY_DEBUG,
	.name = "log",
	.summary = "writes a row for each allocation, failed attempt and free",
	.arguments = "format=text|csv (text), file=NAME with %p (CUWEIR_LOG or stderr), "
		     "flush=line|block (line), debug=0|1 (1: 0 has rows of allocations and "
		     "frees only while debug is on), "
		     "kinds=NAME+NAME (all)",
	.open = open_log,
	.close = close_log,
	.on_alloc_failure = on_alloc_failure,
	.on_allocated = on_allocated,
	.admit = admit,
	.on_alloc_failed = on_alloc_failed,
	.before_free = before_free,
};
