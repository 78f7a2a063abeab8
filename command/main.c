/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../shim/quiet_write.h"

#ifndef CUWEIR_VERSION
#define CUWEIR_VERSION "unknown"
#endif

/* In one write; where nobody reads it, the program runs none the less. */
static void say(const char *format, va_list arguments)
{
	char line[2 * PATH_SIZE] = "cuweir: ";
	size_t length = strlen(line);
	int more = vsnprintf(line + length, sizeof(line) - length - 1, format, arguments);

	length += more < 0 ? 0 : (size_t)more;
	length = length < sizeof(line) - 2 ? length : sizeof(line) - 2;
	line[length++] = '\n';
	(void)!quiet_write(STDERR_FILENO, line, length);
}

/* What was printed has come to where it was meant to go, or the status says otherwise. */
static int finish(int status)
{
	if (fflush(stdout) != 0 || ferror(stdout) != 0) {
		complain("standard output: %s", strerror(errno));
		return status != 0 ? status : STATUS_BAD_SETTING;
	}
	return status;
}

void complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
}

void refuse(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	exit(STATUS_BAD_SETTING);
}

bool wants_help(int argc, char **argv)
{
	return argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

static const char help[] =
	"usage: cuweir run [options] [--] PROGRAM [ARGUMENTS]\n"
	"       cuweir check [PROGRAM]\n"
	"       cuweir policies [NAME]\n"
	"       cuweir symbolize [FILE]\n"
	"       cuweir completions bash | zsh | fish\n"
	"       cuweir --version | --help\n"
	"\n"
	"Watches, governs and explains the GPU memory of a CUDA program that is not changed.\n"
	"\n"
	"  run       runs a program under policies            cuweir run --help\n"
	"  check     what is installed, and whether a program will be seen\n"
	"  policies  what policies there are, and their arguments\n"
	"  symbolize adds functions and source lines to a report or log\n"
	"  completions  prints what a shell completes; for a file that it reads\n"
	"\n"
	"A program that runs out of memory:   cuweir run --report -- python train.py\n"
	"The same within 8 GiB:               cuweir run --limit 8GiB -- python train.py\n"
	"Without a GPU:                       cuweir run --sim 24GiB --debug -- ./program\n";

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} commands[] = {
		{ "run", command_run },
		{ "check", command_check },
		{ "policies", command_policies },
		{ "symbolize", command_symbolize },
		{ "completions", command_completions },
	};

	if (argc < 2) {
		fputs(help, stderr);
		return STATUS_BAD_SETTING;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		fputs(help, stdout);
		return finish(0);
	}
	if (strcmp(argv[1], TRIAL_ARGUMENT) == 0) {
		be_tried();
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("cuweir " CUWEIR_VERSION);
		return finish(0);
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[1], commands[i].name) == 0) {
			return finish(commands[i].run(argc - 1, argv + 1));
		}
	}
	refuse("\"%s\" is not a command; want run, check, policies, symbolize or completions "
	       "(cuweir --help)", argv[1]);
}
