/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows whose point is what is said. BUILD stands for the build's directory in settings and
 * lines; a line has "cuweir[P]" for the process id, 0xA for any address or offset, T for a
 * time, PROGRAM for the program's file name, and the driver's names of calls, which are
 * compared as the runtime's where the way is one.
 */
#ifndef LINES_H
#define LINES_H

#include "harness.h"

struct line_row {
	struct run run;
	const char *err;  /* all of stderr, up to a report */
	/* Lines that the one report must have, without what stands before them; NULL: none. */
	const char *report[5];
	const char *file; /* all of the file that FILE in the settings names; NULL: not there */
};

void run_lines(const struct line_row *row);

/* Makes the replacements above in what a program has written. */
void normalize(char *text);

/* Replaces every `from` in `text`, whose buffer has `size` bytes. */
void replace(char *text, size_t size, const char *from, const char *to);

size_t count_lines(const char *text, const char *having);

#define RUN_LINES(rows)                                                                            \
	do {                                                                                       \
		for (size_t row_i = 0; row_i < sizeof(rows) / sizeof((rows)[0]); row_i++) {        \
			run_lines(&(rows)[row_i]);                                                 \
		}                                                                                  \
	} while (0)

#endif
