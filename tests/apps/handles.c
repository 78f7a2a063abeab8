/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handles WAY SCRIPT: words with spaces between, commands with ";" between:
 *	array NAME FORM W H D FORMAT CHANNELS FLAGS   FORM 2d, 2d1, 3d, 3d1: which function
 *	mipmap NAME W H D FORMAT CHANNELS FLAGS LEVELS
 *	free NAME        whatever it is        level NAME OF N, plane NAME OF N
 *	register NAME SIZE FORM   FORM 1 or 2  devptr NAME   prints nothing
 *	alloc NAME SIZE  export SIZE           another process; its handle is in hand then
 *	open NAME FORM   FORM 1 or 2           same A B      ends with 1 where they differ
 *	import NAME SIZE TYPE                  map NAME OF OFFSET SIZE
 *	mapmip NAME OF W H FORMAT              ctx create, ctx destroy
 *	truth            lasterror: its status is the last error
 * "expect N" before a command: its status must be N, not 0.
 */
#include "apps.h"
#include "handles.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_THINGS = 32, MAX_WORDS = 12 };

enum sort { ARRAY, MIPMAP, MEMORY, REGISTERED, OPENED, IMPORTED };

static struct thing {
	const char *name;
	enum sort sort;
	unsigned long long value;
} things[MAX_THINGS];

static char handle[HANDLE_BYTES];
static int end_of_exporter = -1;

static _Noreturn void die(const char *what, const char *which)
{
	fprintf(stderr, "handles: %s: %s\n", what, which);
	exit(2);
}

#define NEED(call)                                                                           \
	do {                                                                                 \
		if (way.call == NULL) {                                                      \
			fprintf(stderr, "handles: this way in has no " #call "\n");          \
			exit(77);                                                            \
		}                                                                            \
	} while (0)

const struct format *find_format(const char *name)
{
	static const struct format all[] = {
		{ "u8", 0x01, 8, 'u' },    { "u16", 0x02, 16, 'u' },
		{ "u32", 0x03, 32, 'u' },  { "s8", 0x08, 8, 's' },
		{ "half", 0x10, 16, 'f' }, { "float", 0x20, 32, 'f' },
		{ "nv12", 0xb0, 0, 0 },    { "bc1", 0x91, 0, 0 },
		{ "bc7", 0x9d, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(all[i].name, name) == 0) {
			return &all[i];
		}
	}
	die("no such format", name);
}

static struct thing *find(const char *name)
{
	for (int i = 0; i < MAX_THINGS && things[i].name != NULL; i++) {
		if (strcmp(things[i].name, name) == 0) {
			return &things[i];
		}
	}
	die("no such name", name);
}

static struct thing *add(const char *name, enum sort sort)
{
	for (int i = 0; i < MAX_THINGS; i++) {
		if (things[i].name == NULL || strcmp(things[i].name, name) == 0) {
			things[i].name = name;
			things[i].sort = sort;
			things[i].value = 0;
			return &things[i];
		}
	}
	die("too many names", name);
}

static size_t number(const char *word)
{
	return strtoull(word, NULL, 0);
}

static void *pointer(const struct thing *thing)
{
	return (void *)(size_t)thing->value;
}

static void **out(struct thing *thing)
{
	return (void **)(void *)&thing->value;
}

static struct shape shape_of(char **word)
{
	return (struct shape){ number(word[0]), number(word[1]), number(word[2]), word[3],
			       (unsigned int)number(word[4]), (unsigned int)number(word[5]), 1 };
}

/* Another process, without anything preloaded, that exports memory until we end. */
static void export(const char *program, const char *how, const char *size)
{
	int there[2], back[2];
	ssize_t got = 0, part;

	CHECK(pipe(there));
	CHECK(pipe(back));
	if (fork() == 0) {
		unsetenv("LD_PRELOAD");
		unsetenv("CUWEIR_POLICY");
		dup2(there[0], 0);
		dup2(back[1], 1);
		close(there[1]);
		close(back[0]);
		execl(program, program, how, "-", size, (char *)NULL);
		_exit(127);
	}
	close(there[0]);
	close(back[1]);
	end_of_exporter = there[1];
	while (got < HANDLE_BYTES &&
	       (part = read(back[0], handle + got, (size_t)(HANDLE_BYTES - got))) > 0) {
		got += part;
	}
	close(back[0]);
	REQUIRE(got == HANDLE_BYTES);
}

static int be_exporter(const char *size)
{
	unsigned long long memory = 0;
	char any;

	CHECK(way.alloc(&memory, number(size)));
	CHECK(way.ipc_handle(handle, memory));
	REQUIRE(write(1, handle, sizeof(handle)) == HANDLE_BYTES);
	/* Until the other end is closed. */
	while (read(0, &any, 1) < 0 && errno == EINTR) {
	}
	return (int)way.free(memory);
}

static int give_back(struct thing *thing)
{
	switch (thing->sort) {
	case ARRAY:
		return way.array_free(pointer(thing));
	case MIPMAP:
		return way.mipmap_free(pointer(thing));
	case REGISTERED:
		return way.unregister_memory(pointer(thing));
	case OPENED:
		return way.ipc_close(thing->value);
	case IMPORTED:
		return way.import_free(pointer(thing));
	case MEMORY:
		break;
	}
	return way.free(thing->value);
}

static int do_array(char **word, int count)
{
	struct shape shape;
	unsigned int index;

	if (strcmp(word[0], "array") == 0 && count == 9) {
		shape = shape_of(word + 3);
		return way.array(out(add(word[1], ARRAY)), &shape, word[2]);
	}
	if (strcmp(word[0], "mipmap") == 0 && count == 9) {
		shape = shape_of(word + 2);
		shape.levels = (unsigned int)number(word[8]);
		return way.mipmap(out(add(word[1], MIPMAP)), &shape);
	}
	if (count != 4) {
		die("words are missing", word[0]);
	}
	index = (unsigned int)number(word[3]);
	if (strcmp(word[0], "plane") == 0) {
		NEED(plane);
		return way.plane(out(add(word[1], ARRAY)), pointer(find(word[2])), index);
	}
	return way.level(out(add(word[1], ARRAY)), pointer(find(word[2])), index);
}

static int do_register(char **word)
{
	struct thing *thing = add(word[1], REGISTERED);
	void *memory = aligned_alloc(4096, (number(word[2]) + 4095) / 4096 * 4096);

	REQUIRE(memory != NULL);
	thing->value = (size_t)memory;
	return way.register_memory(memory, number(word[2]), word[3]);
}

static int do_import(char **word, int count)
{
	struct shape shape = { .depth = 0, .channels = 4, .levels = 1 };

	NEED(import);
	if (strcmp(word[0], "import") == 0 && count == 4) {
		int fd = memfd_create("handles", 0);

		REQUIRE(fd >= 0 && ftruncate(fd, (off_t)number(word[2])) == 0);
		return way.import(out(add(word[1], IMPORTED)), fd, number(word[2]),
				  (int)number(word[3]));
	}
	if (strcmp(word[0], "map") == 0 && count == 5) {
		return way.map_buffer(&add(word[1], MEMORY)->value, pointer(find(word[2])),
				      number(word[3]), number(word[4]));
	}
	shape.width = number(word[3]);
	shape.height = number(word[4]);
	shape.format = word[5];
	return way.map_mipmap(out(add(word[1], MIPMAP)), pointer(find(word[2])), &shape);
}

static int perform(char **argv, char **word, int count)
{
	unsigned long long ignored;

	if (strcmp(word[0], "truth") == 0) {
		print_truth();
		return 0;
	}
	if (strcmp(word[0], "lasterror") == 0) {
		NEED(last_error);
		return way.last_error();
	}
	if (count < 2) {
		die("not a command, or words are missing", word[0]);
	}
	if (strcmp(word[0], "free") == 0) {
		return give_back(find(word[1]));
	}
	if (strcmp(word[0], "alloc") == 0) {
		return way.alloc(&add(word[1], MEMORY)->value, number(word[2]));
	}
	if (strcmp(word[0], "register") == 0) {
		return do_register(word);
	}
	if (strcmp(word[0], "devptr") == 0) {
		return way.device_pointer(&ignored, pointer(find(word[1])));
	}
	if (strcmp(word[0], "export") == 0) {
		export(argv[0], argv[1], word[1]);
		return 0;
	}
	if (strcmp(word[0], "open") == 0) {
		return way.ipc_open(&add(word[1], OPENED)->value, handle, word[2]);
	}
	if (strcmp(word[0], "same") == 0) {
		REQUIRE(find(word[1])->value == find(word[2])->value);
		return 0;
	}
	if (strcmp(word[0], "ctx") == 0) {
		NEED(context_create);
		return strcmp(word[1], "create") == 0 ? way.context_create()
						      : way.context_destroy();
	}
	if (strcmp(word[0], "import") == 0 || strncmp(word[0], "map", 3) == 0) {
		return do_import(word, count);
	}
	return do_array(word, count);
}

static void run_command(char **argv, char *text)
{
	char *word[MAX_WORDS + 2] = { NULL };
	char *rest = NULL;
	int count = 0;
	int expected = 0;
	int status;

	for (char *at = strtok_r(text, " \t\n", &rest); at != NULL && count < MAX_WORDS + 2;
	     at = strtok_r(NULL, " \t\n", &rest)) {
		word[count++] = at;
	}
	if (count == 0) {
		return;
	}
	if (strcmp(word[0], "expect") == 0 && count > 2) {
		expected = (int)number(word[1]);
		status = perform(argv, word + 2, count - 2);
	} else {
		status = perform(argv, word, count);
	}
	if (status != expected) {
		fprintf(stderr, "handles: %s: status %d, expected %d\n", word[0], status, expected);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	char *rest = NULL;
	char *script;

	if (argc < 3) {
		die("usage", "WAY SCRIPT");
	}
	CHECK(way.start(argv[1]));
	if (strcmp(argv[2], "-") == 0) {
		return be_exporter(argv[3]);
	}
	script = strdup(argv[2]);
	for (char *at = strtok_r(script, ";", &rest); at != NULL;
	     at = strtok_r(NULL, ";", &rest)) {
		run_command(argv, at);
	}
	if (end_of_exporter >= 0) {
		close(end_of_exporter);
		wait(NULL);
	}
	return 0;
}
