/* SPDX-License-Identifier: Apache-2.0 */
/* Names of log files from patterns. Called in `open`, and at a device's first row. */
#ifndef CUWEIR_POLICY_LOG_NAME_H
#define CUWEIR_POLICY_LOG_NAME_H

#include "args.h"

#define LOG_NAME_WANT                                                                             \
	"a name of at most 4080 bytes, with %p for the pid, %h the host, %n the program, %d the " \
	"device, %r the rank under MPI or Slurm, %q{NAME} a variable that is set, %% a percent "  \
	"sign"

/* Whether the pattern has this letter after a percent sign. */
bool log_name_has(struct args_text pattern, char letter);

/* Writes the name. NULL, or what is wanted instead of a pattern that makes none. */
const char *log_name_expand(struct args_text pattern, int device, char *ret_path, size_t size);

#endif
