/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy for tests that writes a line for each callback and answers as it is told.
 *
 * Arguments (lists are joined by '+', sizes may have K, M, G, T):
 *	file=NAME        where the lines go; emptied at open; required
 *	alloc=SIZES      alloc thresholds      dealloc=SIZES    dealloc thresholds
 *	kinds=KINDS      kinds whose crossings are heard (device); the others are not recorded
 *	retry=N|always   on_alloc_failure says yes to retry counts below N (0)
 *	veto=S[@N]       status of on_alloc_threshold, of the N-th call alone if given
 *	dealloc_status=S status of on_dealloc_threshold
 *	admit=S[@N]      status of admit, of the N-th call alone if given
 *	nested=1         allocates and frees 1 KiB by the driver API in every callback that has
 *	                 an event, and in context_ended; not while a capture is open
 *	debug=1          switches debug events on at open
 *
 * Lines: the callback's name, then total=, or size= (and count= in alloc_failure, the
 * argument of that name), then of all that have an event
 *	call= kind= device= requested= charged= before= after= retry= status= flags=
 *	nested_status= answer= pointer= stream= context= thread=
 * nested_status is the first failure of the two nested calls, else 0, "none" where they were
 * not made; answer is what the callback returns, 0 for none. The others are
 * "open arguments=...", "close", "context_ended device= context= nested_status=".
 *
 * Built four times: recorder (RECORDER_KINDS: all kinds), recorder_safe (the same and
 * CUWEIR_POLICY_CAPTURE_SAFE), recorder_plain (kinds 0 in the table, as most policies have),
 * recorder_minimal (RECORDER_KINDS, without admit and before_free: the shim's short way).
 */
#include "args.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_THRESHOLDS 64

struct thresholds {
	size_t count;
	uint64_t bytes[MAX_THRESHOLDS];
};

/* S[@N]; N is 0 for every call. */
struct answer {
	int status;
	uint64_t nth;
	atomic_ullong calls;
};

struct recorder {
	int fd;
	uint32_t kinds;
	bool nested;
	uint64_t retries; /* UINT64_MAX for always */
	int dealloc_status;
	struct thresholds alloc;
	struct thresholds dealloc;
	struct answer veto;
	struct answer admit;
};

typedef int (*mem_alloc_function)(uint64_t *ret_pointer, size_t size);
typedef int (*mem_free_function)(uint64_t pointer);

static int nested_pair(void)
{
	mem_alloc_function mem_alloc;
	mem_free_function mem_free;
	uint64_t pointer = 0;
	/* The program's driver, or whatever comes first in the global scope. */
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	driver = driver != NULL ? driver : RTLD_DEFAULT;
	*(void **)&mem_alloc = dlsym(driver, "cuMemAlloc_v2");
	*(void **)&mem_free = dlsym(driver, "cuMemFree_v2");
	if (mem_alloc == NULL || mem_free == NULL) {
		return CUWEIR_ERROR_NOT_FOUND;
	}
	int status = mem_alloc(&pointer, 1024);
	return status != CUWEIR_SUCCESS ? status : mem_free(pointer);
}

static void nested_text(const struct recorder *recorder, uint32_t flags, char text[16])
{
	if (!recorder->nested || (flags & CUWEIR_EVENT_CAPTURING) != 0) {
		snprintf(text, 16, "none");
	} else {
		snprintf(text, 16, "%d", nested_pair());
	}
}

__attribute__((format(printf, 2, 3)))
static void record(const struct recorder *recorder, const char *format, ...)
{
	char line[PATH_MAX + 512];
	int saved = errno;
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= sizeof(line) - 1) {
		abort(); /* a cut line would be believed */
	}
	line[length++] = '\n';
	if (write(recorder->fd, line, (size_t)length) != length) {
		abort();
	}
	errno = saved;
}

/* `head` is the line up to the facts. */
static void record_event(const struct recorder *recorder, const char *head,
			 const struct cuweir_event *event, int answer)
{
	char nested[16];
	nested_text(recorder, event->flags, nested);
	record(recorder,
	       "%s call=%s kind=%u device=%d requested=%llu charged=%llu before=%llu after=%llu "
	       "retry=%u status=%d flags=%u nested_status=%s answer=%d pointer=0x%llx "
	       "stream=0x%llx context=0x%llx thread=%llu",
	       head, event->call, event->kind, event->device,
	       (unsigned long long)event->requested, (unsigned long long)event->charged,
	       (unsigned long long)event->total_before, (unsigned long long)event->total_after,
	       event->retry_count, event->status, event->flags, nested, answer,
	       (unsigned long long)(uintptr_t)event->pointer,
	       (unsigned long long)(uintptr_t)event->stream,
	       (unsigned long long)(uintptr_t)event->context, (unsigned long long)event->thread);
}

static void record_number(const struct recorder *recorder, const char *name, const char *key,
			  uint64_t number, const struct cuweir_event *event, int answer)
{
	char head[80];
	snprintf(head, sizeof(head), "%s %s=%llu", name, key, (unsigned long long)number);
	record_event(recorder, head, event, answer);
}

static int answer_of(struct answer *answer)
{
	uint64_t call = atomic_fetch_add(&answer->calls, 1) + 1;
	return answer->nth == 0 || answer->nth == call ? answer->status : CUWEIR_SUCCESS;
}

static const uint64_t *get_alloc_thresholds(void *state, size_t *ret_count)
{
	const struct recorder *recorder = state;
	*ret_count = recorder->alloc.count;
	return recorder->alloc.bytes;
}

static const uint64_t *get_dealloc_thresholds(void *state, size_t *ret_count)
{
	const struct recorder *recorder = state;
	*ret_count = recorder->dealloc.count;
	return recorder->dealloc.bytes;
}

static int on_alloc_threshold(void *state, uint64_t total, const struct cuweir_event *event)
{
	struct recorder *recorder = state;
	if ((recorder->kinds & CUWEIR_KIND_BIT(event->kind)) == 0) {
		return CUWEIR_SUCCESS;
	}
	int status = answer_of(&recorder->veto);
	record_number(recorder, "alloc_threshold", "total", total, event, status);
	return status;
}

static int on_dealloc_threshold(void *state, uint64_t total, const struct cuweir_event *event)
{
	const struct recorder *recorder = state;
	if ((recorder->kinds & CUWEIR_KIND_BIT(event->kind)) == 0) {
		return CUWEIR_SUCCESS;
	}
	record_number(recorder, "dealloc_threshold", "total", total, event,
		      recorder->dealloc_status);
	return recorder->dealloc_status;
}

static bool on_alloc_failure(void *state, uint64_t size, int retry_count,
			     const struct cuweir_event *event)
{
	const struct recorder *recorder = state;
	char head[80];
	bool again = recorder->retries == UINT64_MAX ||
		     (retry_count >= 0 && (uint64_t)retry_count < recorder->retries);
	snprintf(head, sizeof(head), "alloc_failure size=%llu count=%d", (unsigned long long)size,
		 retry_count);
	record_event(recorder, head, event, again);
	return again;
}

static void on_allocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	record_number(state, "allocated", "size", size, event, 0);
}

static void on_deallocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	record_number(state, "deallocated", "size", size, event, 0);
}

#ifndef RECORDER_MINIMAL
static int admit(void *state, const struct cuweir_event *event)
{
	struct recorder *recorder = state;
	int status = answer_of(&recorder->admit);
	record_event(recorder, "admit", event, status);
	return status;
}

static void before_free(void *state, const struct cuweir_event *event)
{
	record_event(state, "before_free", event, 0);
}
#endif

static void on_alloc_failed(void *state, const struct cuweir_event *event)
{
	record_event(state, "alloc_failed", event, 0);
}

static void on_context_ended(void *state, void *context, int device)
{
	const struct recorder *recorder = state;
	char nested[16];
	nested_text(recorder, 0, nested);
	record(recorder, "context_ended device=%d context=0x%llx nested_status=%s", device,
	       (unsigned long long)(uintptr_t)context, nested);
}

static bool read_list(struct args_text text, struct thresholds *list)
{
	struct args_text item;
	while (args_cut(&text, '+', &item)) {
		if (list->count == MAX_THRESHOLDS || !args_size(item, &list->bytes[list->count])) {
			return false;
		}
		list->count++;
	}
	return list->count > 0;
}

/* Any number that an int holds: statuses that are no CUresult are tested, too. */
static bool read_status(struct args_text text, int *ret_status)
{
	uint64_t status;
	if (!args_number(text, &status) || status > INT_MAX) {
		return false;
	}
	*ret_status = (int)status;
	return true;
}

static bool read_answer(struct args_text text, struct answer *answer)
{
	struct args_text status;
	if (!args_cut(&text, '@', &status) || !read_status(status, &answer->status)) {
		return false;
	}
	return text.start == NULL || (args_number(text, &answer->nth) && answer->nth > 0);
}

static bool read_file(struct args_text text, struct recorder *recorder)
{
	char path[PATH_MAX];
	if (text.start == NULL || text.length >= sizeof(path)) {
		return false;
	}
	memcpy(path, text.start, text.length);
	path[text.length] = '\0';
	recorder->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	return recorder->fd >= 0;
}

static bool read_pair(const struct cuweir_host *host, struct recorder *recorder,
		      const struct args_pair *pair)
{
	if (args_is(pair->key, "file")) {
		return read_file(pair->value, recorder);
	}
	if (args_is(pair->key, "retry")) {
		bool always = args_is(pair->value, "always");
		recorder->retries = UINT64_MAX;
		return always || args_number(pair->value, &recorder->retries);
	}
	if (args_is(pair->key, "nested")) {
		recorder->nested = args_is(pair->value, "1");
		return recorder->nested || args_is(pair->value, "0");
	}
	if (args_is(pair->key, "debug")) {
		return args_is(pair->value, "1") && host->set_debug(host, true) == CUWEIR_SUCCESS;
	}
#ifdef RECORDER_KINDS
	if (args_is(pair->key, "kinds")) {
		return args_kinds(pair->value, &recorder->kinds);
	}
#endif
	return (args_is(pair->key, "alloc") && read_list(pair->value, &recorder->alloc)) ||
	       (args_is(pair->key, "dealloc") && read_list(pair->value, &recorder->dealloc)) ||
	       (args_is(pair->key, "veto") && read_answer(pair->value, &recorder->veto)) ||
	       (args_is(pair->key, "admit") && read_answer(pair->value, &recorder->admit)) ||
	       (args_is(pair->key, "dealloc_status") &&
		read_status(pair->value, &recorder->dealloc_status));
}

static int open_recorder(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	if (recorder == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	recorder->fd = -1;
#ifdef RECORDER_KINDS
	recorder->kinds = CUWEIR_KIND_BIT(CUWEIR_KIND_DEVICE);
#else
	recorder->kinds = UINT32_MAX; /* to see it if others come than were asked for */
#endif
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	bool good = true;
	while (good && args_next(&rest, &pair)) {
		good = read_pair(host, recorder, &pair);
	}
	if (!good || recorder->fd < 0) {
		close(recorder->fd);
		free(recorder);
		return good ? host->refuse(host, "want file=NAME") :
			      args_refuse(host, &pair, "what recorder.c says");
	}
	record(recorder, "open arguments=%s", arguments);
	*ret_state = recorder;
	return CUWEIR_SUCCESS;
}

static void close_recorder(void *state)
{
	record(state, "close");
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
#ifdef RECORDER_SAFE
	.flags = CUWEIR_POLICY_CAPTURE_SAFE,
#endif
#ifdef RECORDER_KINDS
	.kinds = (1u << CUWEIR_KIND_COUNT) - 2,
#endif
	.name = "recorder",
	.open = open_recorder,
	.close = close_recorder,
	.get_alloc_thresholds = get_alloc_thresholds,
	.get_dealloc_thresholds = get_dealloc_thresholds,
	.on_alloc_threshold = on_alloc_threshold,
	.on_dealloc_threshold = on_dealloc_threshold,
	.on_alloc_failure = on_alloc_failure,
	.on_allocated = on_allocated,
	.on_deallocated = on_deallocated,
	.on_alloc_failed = on_alloc_failed,
#ifndef RECORDER_MINIMAL
	.admit = admit,
	.before_free = before_free,
#endif
	.on_context_ended = on_context_ended,
};
