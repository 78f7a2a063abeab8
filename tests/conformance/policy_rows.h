/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of programs under the policies that cuweir ships, named as a user names them. */
#ifndef POLICY_ROWS_H
#define POLICY_ROWS_H

#include "harness.h"

struct policy_row {
	struct run run;
	const char *chain; /* NAME:ARGUMENTS;NAME:ARGUMENTS, of those beside the shim */
	/* The files of the run's directory: FILE in the chain is a name in it. */
	const char *file;  /* must be somewhere in it; NULL: not looked at */
	/* What the policy takes is of another kind than what the program asked for. */
	bool unbalanced;
};

/* Runs the row by each of its ways, and compares the books at the end of each. */
void run_policies(const struct policy_row *row);

/* The text of FILE, as the run before has left it. */
const char *policy_file(void);

#define RUN_POLICIES(rows)                                                                         \
	do {                                                                                       \
		for (size_t row_i = 0; row_i < sizeof(rows) / sizeof((rows)[0]); row_i++) {        \
			run_policies(&(rows)[row_i]);                                              \
		}                                                                                  \
	} while (0)

#endif
