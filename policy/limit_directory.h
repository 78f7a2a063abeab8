/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of the file that processes share a limit by. */
#ifndef CUWEIR_POLICY_LIMIT_DIRECTORY_H
#define CUWEIR_POLICY_LIMIT_DIRECTORY_H

#include <limits.h>
#include <stdbool.h>

struct limit_directory {
	char path[PATH_MAX];
	char note[PATH_MAX + 200]; /* why it may be another one than others use; "": it is not */
};

/*
 * The user's runtime directory, or one in /tmp that stands for it and is made if `make`. The
 * environment that counts is that of the program's start. A descriptor; -1 with errno, where
 * ret_directory->path is the one that could not be opened.
 */
int limit_directory_open(bool make, struct limit_directory *ret_directory);

#endif
