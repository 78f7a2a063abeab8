/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of a scenario that are calls of CUDA or of the system; see scenario.c. */
#include "apps.h"
#include "scenario.h"

#include <unistd.h>

enum { BY_ALLOC, BY_ASYNC, BY_HOST, BY_STREAM };

static struct slots shared;
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;

_Noreturn void scenario_die(const char *what, const char *which)
{
	fprintf(stderr, "scenario: %s: %s\n", what, which);
	exit(2);
}

static void need(bool has_call, const char *word)
{
	if (!has_call) {
		fprintf(stderr, "scenario: this way in has no %s\n", word);
		exit(77);
	}
}

static size_t to_size(const char *word)
{
	char *end;
	unsigned long long size = strtoull(word, &end, 0);

	switch (*end) {
	case 'G':
		return (size_t)size << 30;
	case 'M':
		return (size_t)size << 20;
	case 'K':
		return (size_t)size << 10;
	case '\0':
		return (size_t)size;
	}
	scenario_die("not a size", word);
}

static struct slot *find_slot(struct strand *self, const char *name, bool make)
{
	struct slots *slots = name[0] == '.' ? &self->own : &shared;
	struct slot *found = NULL;

	pthread_mutex_lock(&shared_lock);
	for (int i = 0; i < slots->count && found == NULL; i++) {
		if (strcmp(slots->slots[i].name, name) == 0) {
			found = &slots->slots[i];
		}
	}
	if (found == NULL && make && slots->count < MAX_SLOTS) {
		found = &slots->slots[slots->count++];
		snprintf(found->name, sizeof(found->name), "%s", name);
	}
	pthread_mutex_unlock(&shared_lock);
	if (found == NULL) {
		scenario_die(make ? "too many names" : "no such name", name);
	}
	return found;
}

static struct stream find_stream(struct strand *self, const char *word)
{
	struct stream s = { NULL, false };
	struct slot *slot;

	if (word == NULL || strcmp(word, "0") == 0) {
		return s;
	}
	if (strcmp(word, "ptds") == 0) {
		s.per_thread = true;
		return s;
	}
	slot = find_slot(self, word, true);
	if (slot->value == 0) {
		void *handle = NULL;

		CHECK(way.stream_create(&handle));
		slot->by = BY_STREAM;
		slot->value = (unsigned long long)handle;
	}
	s.handle = (void *)slot->value;
	return s;
}

static int do_allocate(struct strand *self, char **word, int count)
{
	struct slot *slot = find_slot(self, word[1], true);
	size_t size = to_size(word[2]);
	size_t pitch = 0;
	int status;

	slot->by = BY_ALLOC;
	if (strcmp(word[0], "alloc") == 0) {
		return way.alloc(&slot->value, size);
	}
	if (strcmp(word[0], "managed") == 0) {
		return way.alloc_managed(&slot->value, size);
	}
	if (strcmp(word[0], "pitch") == 0) {
		status = way.alloc_pitch(&slot->value, &pitch, size, to_size(word[3]));
		if (status == 0) {
			printf("pitch %s %zu\n", word[1], pitch);
		}
		return status;
	}
	if (strcmp(word[0], "async") == 0) {
		slot->by = BY_ASYNC;
		return way.alloc_async(&slot->value, size,
				       find_stream(self, count > 3 ? word[3] : NULL));
	}
	slot->by = BY_HOST;
	return strcmp(word[0], "host") == 0 ? way.alloc_host(&slot->value, size)
					    : way.host_alloc(&slot->value, size);
}

static int do_free(struct strand *self, char **word, int count)
{
	struct slot *slot = find_slot(self, word[1], false);

	if (strcmp(word[0], "freeasync") == 0) {
		return way.free_async(slot->value, find_stream(self, count > 2 ? word[2] : NULL));
	}
	return slot->by == BY_HOST ? way.free_host(slot->value) : way.free(slot->value);
}

static int do_info(void)
{
	size_t free_bytes = 0, total_bytes = 0;
	int status = way.info(&free_bytes, &total_bytes);

	if (status == 0) {
		printf("info %zu %zu\n", free_bytes, total_bytes);
	}
	return status;
}

static int do_context(struct strand *self, char **word, int count)
{
	need(way.context_create != NULL, "ctx");
	if (strcmp(word[1], "create") == 0) {
		return way.context_create(count > 2 ? atoi(word[2]) : self->device);
	}
	return strcmp(word[1], "pop") == 0 ? way.context_pop() : way.context_destroy();
}

static int do_capture(struct strand *self, char **word)
{
	need(way.capture_begin != NULL, "capture");
	return strcmp(word[1], "begin") == 0 ? way.capture_begin(find_stream(self, word[2]))
					     : way.capture_end(find_stream(self, word[2]));
}

static int do_device(struct strand *self, char **word)
{
	int device = atoi(word[1]);

	if (strcmp(word[0], "reset") == 0) {
		return way.device_reset(device);
	}
	if (strcmp(word[0], "release") == 0) {
		need(way.primary_release != NULL, "release");
		return way.primary_release(device);
	}
	self->device = device;
	return way.device(device);
}

static int do_stream(struct strand *self, char **word)
{
	struct slot *slot = find_slot(self, word[2], false);
	int status = way.stream_destroy((void *)slot->value);

	slot->value = 0;
	return status;
}

static int do_process(char **word, int count)
{
	char *arguments[3] = { word[1], count > 2 ? word[2] : NULL, NULL };

	if (strcmp(word[0], "echo") == 0) {
		printf("%s\n", word[1]);
		fflush(stdout);
	} else if (strcmp(word[0], "sleep") == 0) {
		usleep((useconds_t)atoi(word[1]) * 1000);
	} else {
		fflush(stdout);
		execvp(word[1], arguments);
		scenario_die("cannot execute", word[1]);
	}
	return 0;
}

int scenario_command(struct strand *self, char **word, int count)
{
	static const struct {
		const char *name;
		int words; /* at least */
		char what;
	} table[] = {
		{ "alloc", 3, 'a' },	 { "managed", 3, 'a' },	  { "host", 3, 'a' },
		{ "hostalloc", 3, 'a' }, { "async", 3, 'a' },	  { "pitch", 4, 'a' },
		{ "free", 2, 'f' },	 { "freeasync", 2, 'f' }, { "info", 1, 'i' },
		{ "sync", 1, 's' },	 { "lasterror", 1, 'l' }, { "peekerror", 1, 'p' },
		{ "ctx", 2, 'c' },	 { "device", 2, 'd' },	  { "reset", 2, 'd' },
		{ "release", 2, 'd' },	 { "capture", 3, 'g' },	  { "stream", 3, 't' },
		{ "truth", 1, 'u' },	 { "echo", 2, 'e' },	  { "sleep", 2, 'e' },
		{ "exec", 2, 'e' },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(word[0], table[i].name) != 0 || count < table[i].words) {
			continue;
		}
		switch (table[i].what) {
		case 'a':
			return do_allocate(self, word, count);
		case 'f':
			return do_free(self, word, count);
		case 'i':
			return do_info();
		case 's':
			return way.synchronize();
		case 'l':
		case 'p':
			need(way.last_error != NULL, word[0]);
			return way.last_error(table[i].what == 'l');
		case 'c':
			return do_context(self, word, count);
		case 'd':
			return do_device(self, word);
		case 'g':
			return do_capture(self, word);
		case 't':
			return do_stream(self, word);
		case 'u':
			print_truth();
			return 0;
		case 'e':
			return do_process(word, count);
		}
	}
	scenario_die("not a command, or words are missing", word[0]);
}
