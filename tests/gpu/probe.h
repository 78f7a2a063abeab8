/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the probes of scripts/gpu-check share: a question is a line of standard output, "name:
 * answer", without anything that differs from run to run. A question that may kill the process
 * is asked in a process of its own.
 */
#ifndef PROBE_H
#define PROBE_H

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENTINEL 0xdeadUL

__attribute__((format(printf, 2, 3))) static inline void answer(const char *name,
								const char *format, ...)
{
	va_list arguments;

	printf("%s: ", name);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
}

/* What became of an out pointer that held SENTINEL. */
static inline const char *became(unsigned long value)
{
	return value == SENTINEL ? "left as it was" : value == 0 ? "NULL" : "written";
}

/* Runs this program again with "ask NAME"; what it prints is the answer, or how it died. */
static inline void isolated(const char *program, const char *mode, const char *name)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		execl(program, program, mode, name, (char *)NULL);
		_exit(127);
	}
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status)) {
		answer(name, "signal %d", WTERMSIG(status));
	} else if (WEXITSTATUS(status) != 0) {
		answer(name, "exit status %d", WEXITSTATUS(status));
	}
}

struct question {
	const char *name;
	void (*ask)(const char *name);
	int dangerous;
};

/* All questions, or the one named. */
static inline int ask_all(const struct question *questions, size_t count, const char *program,
			  const char *mode, const char *only)
{
	for (size_t i = 0; i < count; i++) {
		const struct question *question = &questions[i];

		if (only != NULL ? strcmp(only, question->name) == 0 : !question->dangerous) {
			question->ask(question->name);
		} else if (only == NULL) {
			isolated(program, mode, question->name);
		}
	}
	return 0;
}

#endif
