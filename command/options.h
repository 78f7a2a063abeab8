/* SPDX-License-Identifier: Apache-2.0 */
/* The options of cuweir run, read from options.def. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "command.h"

struct options {
	char chain[PATH_SIZE]; /* CUWEIR_POLICY, with the limit; "" for none */
	char log[PATH_SIZE];   /* "" for none */
	const char *limit;
	const char *report;
	const char *stack;
	const char *sim;
	const char *only;
	const char *skip;
	const char *max_retries;
	bool debug;
	bool no_follow;
	bool strict;
	bool print_env;
	int verbose;           /* 0 quiet, 1 as usual, 2, 3 */
	int error_exitcode;
};

/* Leaves optind at the program. False: help was asked for. Refuses what is wrong. */
bool read_options(struct options *ret, int argc, char **argv);

#endif
