/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a small script against CUDA: scenario WAY "alloc a 8K; free a; truth". A script of
 * "-", or none, is read from standard input. WAY is linked, dlsym, gpa, gpa1 or runtime.
 *
 *	alloc|managed|host|hostalloc NAME SIZE     pitch NAME WIDTH HEIGHT
 *	async NAME SIZE [STREAM]                   freeasync NAME [STREAM]
 *	free NAME                                  by the call that fits its allocation
 *	info | sync | lasterror | peekerror | ctx pop|destroy|create DEVICE
 *	device|reset|release N                     capture begin|end STREAM
 *	stream destroy STREAM
 *	expect STATUS COMMAND                      otherwise a status other than 0 ends it with 1
 *	repeat N { ... }   thread { ... }   threads N { ... }   join   fork { ... }
 *	truth | echo WORD | sleep MILLISECONDS | exec PROGRAM [ARGUMENT]
 *
 * Sizes take K, M and G. STREAM is 0 (the default stream), ptds (the per-thread one) or a
 * name, made on first use. Names are the whole program's, those that begin with a dot the
 * thread's own. Prints only what is asked for: "info FREE TOTAL", "pitch NAME BYTES",
 * "truth ..." (see apps.h).
 */
#include "apps.h"
#include "scenario.h"

#include <sys/wait.h>
#include <unistd.h>

#define MAX_WORDS 4096
#define MAX_THREADS 256

static char *words[MAX_WORDS];
static int word_count;
static struct strand *strands[MAX_THREADS];
static int strand_count;

static void run(struct strand *self, int begin, int end);

static void *strand_main(void *argument)
{
	struct strand *self = argument;

	/* A new thread has no current context. */
	CHECK(way.device(self->device));
	run(self, self->begin, self->end);
	return NULL;
}

static void start_threads(struct strand *self, int count, int begin, int end)
{
	for (int i = 0; i < count; i++) {
		struct strand *strand = calloc(1, sizeof(*strand));

		if (strand == NULL || strand_count == MAX_THREADS) {
			scenario_die("too many threads", "thread");
		}
		strand->begin = begin;
		strand->end = end;
		strand->device = self->device;
		strands[strand_count++] = strand;
		CHECK(pthread_create(&strand->thread, NULL, strand_main, strand));
	}
}

static void join_threads(void)
{
	for (; strand_count > 0; strand_count--) {
		CHECK(pthread_join(strands[strand_count - 1]->thread, NULL));
		free(strands[strand_count - 1]);
	}
}

static void run_child(struct strand *self, int begin, int end)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		run(self, begin, end);
		fflush(stdout);
		exit(0);
	}
	REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The "}" that closes the "{" at `open`. */
static int closing(int open)
{
	int depth = 0;

	for (int i = open; i < word_count; i++) {
		depth += strcmp(words[i], "{") == 0;
		depth -= strcmp(words[i], "}") == 0;
		if (depth == 0) {
			return i;
		}
	}
	scenario_die("no } for this", words[open - 1]);
}

static void run_block(struct strand *self, int at, int open)
{
	int count = open > at + 1 ? atoi(words[at + 1]) : 1;
	int close = closing(open);

	if (strncmp(words[at], "thread", 6) == 0) {
		start_threads(self, count, open + 1, close);
	} else if (strcmp(words[at], "fork") == 0) {
		run_child(self, open + 1, close);
	} else {
		for (int i = 0; i < count; i++) {
			run(self, open + 1, close);
		}
	}
}

static void run_command(struct strand *self, int at, int end)
{
	int expected = 0, first = at, status;

	if (strcmp(words[at], "join") == 0) {
		join_threads();
		return;
	}
	if (strcmp(words[at], "expect") == 0 && end - at > 2) {
		expected = atoi(words[at + 1]);
		first = at + 2;
	}
	status = scenario_command(self, &words[first], end - first);
	if (status != expected) {
		fprintf(stderr, "scenario: %s %s: status %d, not %d\n", words[first],
			end - first > 1 ? words[first + 1] : "", status, expected);
		exit(1);
	}
}

static void run(struct strand *self, int begin, int end)
{
	for (int at = begin; at < end;) {
		int stop = at;

		while (stop < end && strcmp(words[stop], ";") != 0 &&
		       strcmp(words[stop], "{") != 0) {
			stop++;
		}
		if (stop < end && strcmp(words[stop], "{") == 0) {
			run_block(self, at, stop);
			stop = closing(stop);
		} else if (stop > at) {
			run_command(self, at, stop);
		}
		at = stop + 1;
	}
}

static void split(const char *text)
{
	static const char marks[] = "{};\n";

	while (*text != '\0') {
		size_t length = strcspn(text, " \t{};\n");

		if (length == 0 && strchr(marks, *text) == NULL) {
			text++;
			continue;
		}
		if (word_count == MAX_WORDS) {
			scenario_die("too long", "script");
		}
		words[word_count++] = length > 0 ? strndup(text, length)
						 : strndup(*text == '\n' ? ";" : text, 1);
		text += length > 0 ? length : 1;
	}
}

int main(int argc, char **argv)
{
	static struct strand self;
	static char input[65536];

	if (argc < 2) {
		scenario_die("usage", "scenario linked|dlsym|gpa|gpa1|runtime [SCRIPT|-]");
	}
	if (argc > 2 && strcmp(argv[2], "-") != 0) {
		split(argv[2]);
	} else {
		input[fread(input, 1, sizeof(input) - 1, stdin)] = '\0';
		split(input);
	}
	CHECK(way.start(argv[1]));
	run(&self, 0, word_count);
	join_threads();
	fflush(stdout);
	return 0;
}
