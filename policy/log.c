/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy `log`: a row for every allocation, failed attempt and free that passes its place
 * in the chain, as RMM's logging adaptor has one at its place in a stack of resources. What
 * policies before it (nearer to the program) do on their own account is not seen; each retry
 * of theirs is.
 */
#include "args.h"
#include "log_name.h"
#include "log_row.h"
#include "log_sink.h"

#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Files of one log: one, or with %d one for each device and one for memory of none. */
#define SINKS 65

struct log {
	struct log_row row;
	struct log_sink *sinks[SINKS]; /* by device plus 1, opened at its first row */
	struct log_sink_options options;
	struct args_text file;
	pthread_mutex_t opening;
	const struct cuweir_host *host;
	uint64_t bit; /* this place in the chain, in attempts_open */
	uint32_t kinds;
	bool always;  /* also while debug is off */
	bool by_device;
};

/* What the arguments say. */
struct settings {
	struct args_text file;
	uint64_t rotate;
	uint64_t keep;
	uint32_t kinds;
	enum log_format format;
	bool debug;
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

/* Opens the file of a place, a device plus 1; the reason where it cannot be is written. */
static struct log_sink *open_sink(struct log *log, int place, char *ret_reason, size_t size)
{
	char name[PATH_MAX];
	char path[PATH_MAX];
	char text[80];
	struct log_sink *sink;
	bool has_file = log->file.start != NULL;
	const char *want = has_file ? log_name_expand(log->file, place - 1, name, sizeof(name)) :
				      NULL;
	if (want == NULL && has_file &&
	    !args_path(log->host, (struct args_text){ name, strlen(name) }, path, sizeof(path))) {
		want = LOG_NAME_WANT;
	}
	if (want != NULL) {
		snprintf(ret_reason, size, "file=%.*s: want %s",
			 (int)(log->file.length < 200 ? log->file.length : 200), log->file.start,
			 want);
		return NULL;
	}
	int error = posix_memalign((void **)&sink, _Alignof(struct log_sink), sizeof(*sink));
	if (error == 0) {
		error = log_sink_open(sink, log->host, has_file ? path : NULL, &log->options);
		if (error != 0) {
			free(sink);
		}
	}
	if (error != 0) {
		snprintf(ret_reason, size,
			 "file=%s: %s; want a file that can be written, in a directory that exists",
			 has_file ? path : "", strerror_r(error, text, sizeof(text)));
		return NULL;
	}
	return sink;
}

/* Where a device's file cannot be opened, its rows go to the shim's log. */
static __attribute__((noinline)) struct log_sink *open_later(struct log *log, int place)
{
	char reason[PATH_MAX + 200];
	pthread_mutex_lock(&log->opening);
	struct log_sink *sink = log->sinks[place];
	if (sink == NULL) {
		sink = open_sink(log, place, reason, sizeof(reason));
		if (sink == NULL) {
			char line[PATH_MAX + 300];
			snprintf(line, sizeof(line), "cuweir[%d]: log: %s", (int)getpid(), reason);
			log->host->log(log->host, line);
			log->file.start = NULL;
			sink = open_sink(log, place, reason, sizeof(reason));
		}
		__atomic_store_n(&log->sinks[place], sink, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&log->opening);
	return sink;
}

/* The sink of a device's rows. */
static inline struct log_sink *sink_of(struct log *log, int device)
{
	int place = !log->by_device || device < 0 || device >= SINKS - 1 ? 0 : device + 1;
	struct log_sink *sink = __atomic_load_n(&log->sinks[place], __ATOMIC_ACQUIRE);
	return __builtin_expect(sink != NULL, 1) ? sink : open_later(log, place);
}

static void put(struct log *log, enum log_action action, const struct cuweir_event *event)
{
	char buffer[LOG_ROW_SIZE];
	if ((log->kinds & CUWEIR_KIND_BIT(event->kind)) == 0) {
		return;
	}
	size_t length = log_row_format(&log->row, action, event, buffer);
	struct log_sink *sink = sink_of(log, event->device);
	if (sink != NULL) {
		log_sink_put(sink, buffer, length);
	}
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
		settings->format = args_is(pair->value, "csv")  ? LOG_CSV :
				   args_is(pair->value, "json") ? LOG_JSON :
								  LOG_TEXT;
		bool good = settings->format != LOG_TEXT || args_is(pair->value, "text");
		return good ? NULL : "format=text, format=csv or format=json";
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
		return args_flag(pair->value, &settings->debug) ? NULL : "debug=0 or debug=1";
	}
	if (args_is(pair->key, "rotate")) {
		bool good = args_size(pair->value, &settings->rotate) && settings->rotate >= 4096;
		return good ? NULL : "rotate=SIZE of at least 4K: rotate=100M";
	}
	if (args_is(pair->key, "keep")) {
		bool good = args_number(pair->value, &settings->keep) && settings->keep >= 1 &&
			    settings->keep <= 999;
		return good ? NULL : "keep=N, 1 to 999 older files";
	}
	if (args_is(pair->key, "kinds")) {
		return args_kinds(pair->value, &settings->kinds) ?
			       NULL :
			       "kinds=all, or names joined by '+': device, managed, host, "
			       "registered, imported, virtual, pool, graph_planned";
	}
	return "format=, file=, flush=, rotate=, keep=, debug= or kinds=";
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
	if (settings->rotate != 0 && settings->file.start == NULL) {
		return host->refuse(host, "rotate=: want file=NAME with it");
	}
	return CUWEIR_SUCCESS;
}

/*
 * Opens the one file, or, where there is one for each device, finds out whether the first could
 * be. Where `cuweir run` only tries the arguments, no file is made.
 */
static int open_first(struct log *log)
{
	char reason[PATH_MAX + 200];
	char path[PATH_MAX];
	if (strcmp(log->host->shim_version, "trial") == 0 || log->by_device) {
		const char *want = log->file.start != NULL ?
					   log_name_expand(log->file, 0, path, sizeof(path)) :
					   NULL;
		if (want != NULL) {
			snprintf(reason, sizeof(reason), "file=: want %s", want);
			return log->host->refuse(log->host, reason);
		}
		return CUWEIR_SUCCESS;
	}
	log->sinks[0] = open_sink(log, 0, reason, sizeof(reason));
	return log->sinks[0] != NULL ? CUWEIR_SUCCESS : log->host->refuse(log->host, reason);
}

static int open_log(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct settings settings = { .debug = true, .keep = 3 };
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
	log->file = settings.file;
	log->by_device = settings.file.start != NULL && log_name_has(settings.file, 'd');
	/* Who names a log asks for events; `debug=0` leaves that to CUWEIR_DEBUG. */
	log->always = settings.debug;
	log->row.format = settings.format;
	log->row.zone_offset = local.tm_gmtoff;
	log->row.pid = (uint64_t)getpid();
	log->options = (struct log_sink_options){
		.buffered = settings.block,
		.resumable = settings.file.start != NULL && log_name_has(settings.file, 'p'),
		.rotate = settings.rotate,
		.keep = (unsigned int)settings.keep,
		.header = settings.format == LOG_CSV ? LOG_CSV_HEADER "\n" : "",
	};
	pthread_mutex_init(&log->opening, NULL);
	status = open_first(log);
	if (status != CUWEIR_SUCCESS) {
		free(log);
		return status;
	}
	*ret_state = log;
	return CUWEIR_SUCCESS;
}

static void close_log(void *state)
{
	struct log *log = state;
	for (int place = 0; place < SINKS; place++) {
		struct log_sink *sink = __atomic_load_n(&log->sinks[place], __ATOMIC_ACQUIRE);
		if (sink != NULL) {
			log_sink_close(sink);
		}
	}
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.flags = CUWEIR_POLICY_CAPTURE_SAFE | CUWEIR_POLICY_DEBUG,
	.name = "log",
	.summary = "writes a row for each allocation, failed attempt and free",
	.arguments = "format=text|csv|json (text): csv as RMM writes it, json an object a line\n"
		     "file=NAME (CUWEIR_LOG or stderr): with %p pid, %h host, %n program, %d "
		     "device, %r rank, %q{VAR} a variable\n"
		     "flush=line|block (line): each row at once, or when 16 KiB are full; what is "
		     "not written yet is in NAME.tail\n"
		     "rotate=SIZE (never), keep=N (3): go on in a new file, keep older as NAME.1 "
		     "to NAME.N\n"
		     "debug=0|1 (1): 0 has rows of allocations and frees only while debug is on\n"
		     "kinds=NAME+NAME (all): only these kinds of memory",
	.open = open_log,
	.close = close_log,
	.on_alloc_failure = on_alloc_failure,
	.on_allocated = on_allocated,
	.admit = admit,
	.on_alloc_failed = on_alloc_failed,
	.before_free = before_free,
};
