/* SPDX-License-Identifier: Apache-2.0 */
/* cuweir symbolize: starts the script. */
#include "command.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: cuweir symbolize [-m FILE]... [FILE]\n"
	"\n"
	"Copies a report or log, text or JSON, from FILE or standard input, and adds function,\n"
	"source file and line to each call site. Reports name the files of the modules; for\n"
	"others, or after they have moved, -m names one (cuweir symbolize -m ./train log).\n"
	"Wants python3, and addr2line (binutils) or eu-addr2line (elfutils).\n";

int command_symbolize(int argc, char **argv)
{
	struct places places;
	char **arguments;

	if (wants_help(argc, argv)) {
		fputs(help, stdout);
		return 0;
	}
	find_places(&places);
	if (places.symbolize[0] == '\0') {
		refuse("symbolize: its script is not found beside this command; want the installed "
		       "tree as a whole");
	}
	arguments = calloc((size_t)argc + 2, sizeof(*arguments));
	if (arguments == NULL) {
		refuse("symbolize: no memory");
	}
	arguments[0] = (char *)(uintptr_t)"python3";
	arguments[1] = places.symbolize;
	memcpy(arguments + 2, argv + 1, (size_t)argc * sizeof(*arguments));
	execvp(arguments[0], arguments);
	complain("symbolize: python3: %s", strerror(errno));
	free(arguments);
	return STATUS_NOT_FOUND;
}
