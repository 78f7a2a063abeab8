/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A script of commands over named things, for the programs that have a vocabulary of their own:
 * words with spaces between, commands with ";" between. "expect N" before a command: its status
 * must be N, not 0. "repeat N" before it: so many times, "#" in a word being the round.
 */
#ifndef THINGS_H
#define THINGS_H

#include "apps.h"

enum { MAX_THINGS = 256, MAX_WORDS = 12, MAX_NAME = 24 };

struct thing {
	char name[MAX_NAME];
	unsigned long long value;
};

/* `least` words are needed, the command's own included; absent ones beyond are "". */
struct command {
	const char *name;
	int least;
	int (*perform)(char **word);
};

static struct thing things[MAX_THINGS];

static _Noreturn inline void die(const char *what, const char *which)
{
	fprintf(stderr, "%s: %s\n", what, which);
	exit(2);
}

/* The value that a name stands for, to read or to write; made where it is new. */
static inline unsigned long long *thing(const char *name)
{
	for (int i = 0; i < MAX_THINGS; i++) {
		if (things[i].name[0] == '\0') {
			snprintf(things[i].name, MAX_NAME, "%s", name);
		}
		if (strcmp(things[i].name, name) == 0) {
			return &things[i].value;
		}
	}
	die("too many names", name);
}

static inline void *handle(const char *name)
{
	return name[0] == '\0' ? NULL : (void *)(size_t)*thing(name);
}

/* With K, M or G behind it, and a factor: "2M*3". */
static inline size_t size(const char *word)
{
	char *end;
	size_t value = strtoull(word, &end, 0);

	for (; *end != '\0'; end++) {
		if (*end == '*') {
			return value * strtoull(end + 1, NULL, 0);
		}
		value <<= *end == 'K' ? 10 : *end == 'M' ? 20 : 30;
	}
	return value;
}

static inline int perform(const struct command *commands, char **word, int count)
{
	for (; commands->name != NULL; commands++) {
		if (strcmp(commands->name, word[0]) == 0) {
			if (count < commands->least) {
				die("words are missing", word[0]);
			}
			return commands->perform(word);
		}
	}
	die("not a command", word[0]);
}

static inline void perform_round(const struct command *commands, char **word, int count,
				 int round, int expected)
{
	static char nothing[] = "";
	char copies[MAX_WORDS][64];
	char *words[MAX_WORDS];
	int status;

	for (int i = 0; i < MAX_WORDS; i++) {
		const char *mark = i < count ? strchr(word[i], '#') : NULL;

		words[i] = i < count ? word[i] : nothing;
		if (mark != NULL) {
			snprintf(copies[i], sizeof(copies[i]), "%.*s%d%s", (int)(mark - word[i]),
				 word[i], round, mark + 1);
			words[i] = copies[i];
		}
	}
	status = perform(commands, words, count);
	if (status != expected) {
		fprintf(stderr, "%s %s: status %d, not %d\n", words[0], words[1], status,
			expected);
		exit(1);
	}
}

static inline void perform_line(const struct command *commands, char *line)
{
	char *word[MAX_WORDS];
	char *rest;
	int count = 0, first = 0, expected = 0, rounds = 1;

	for (char *at = strtok_r(line, " \t", &rest); at != NULL && count < MAX_WORDS;
	     at = strtok_r(NULL, " \t", &rest)) {
		word[count++] = at;
	}
	while (first + 2 < count) {
		if (strcmp(word[first], "expect") == 0) {
			expected = atoi(word[first + 1]);
		} else if (strcmp(word[first], "repeat") == 0) {
			rounds = atoi(word[first + 1]);
		} else {
			break;
		}
		first += 2;
	}
	for (int round = 0; count > first && round < rounds; round++) {
		perform_round(commands, &word[first], count - first, round, expected);
	}
}

static inline void perform_script(const struct command *commands, char *script)
{
	char *rest;

	for (char *line = strtok_r(script, ";", &rest); line != NULL;
	     line = strtok_r(NULL, ";", &rest)) {
		perform_line(commands, line);
	}
	fflush(stdout);
}

static inline int do_truth(char **word)
{
	(void)word;
	print_truth();
	return 0;
}

#endif
