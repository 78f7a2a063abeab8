/* SPDX-License-Identifier: Apache-2.0 */
/* cuweir run: checks everything, sets the preload and the settings, and becomes the program. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "settings.h"
#include "watch.h"

static const char help[] =
	"usage: cuweir run [options] [--] PROGRAM [ARGUMENTS]\n"
	"\n"
	"Options come before the program; defaults in [ ].\n"
	"\n"
#define OPTION(name, letter, argument, variable, text) text "\n"
#include "options.def"
#undef OPTION
	"\n"
	"Exit status: the program's; 125 for a bad setting, 126 for a program that cannot be\n"
	"executed, 127 for one that is not found.\n";

/* Files are looked at before anything is set, so that a broken job fails in the first second. */
static void check_program(const char *name, char path[PATH_SIZE], const struct options *options)
{
	struct inspection found;

	if (!find_program(name, path)) {
		complain("%s: there is no such program", name);
		exit(STATUS_NOT_FOUND);
	}
	if (access(path, X_OK) != 0) {
		complain("%s: cannot be executed (%s); try chmod +x, or name its interpreter", path,
			 strerror(errno));
		exit(STATUS_NOT_EXECUTABLE);
	}
	inspect(path, &found);
	if (found.privileged) {
		refuse("%s is setuid or has capabilities, so the loader preloads nothing into it; "
		       "want a plain copy of it", path);
	}
	if (found.elf && !found.same_class) {
		refuse("%s is for another machine than libcuweir.so; want a build for this one",
		       path);
	}
	if (found.elf && !found.dynamic) {
		refuse("%s is statically linked, so nothing can be preloaded into it; want a "
		       "dynamically linked build", path);
	}
	if (found.script && options->verbose > 1) {
		complain("%s is a script; its interpreter and its children are watched", path);
	}
}

static void check_places(const struct places *places, const struct options *options)
{
	if (places->shim[0] == '\0') {
		refuse("libcuweir.so is not found beside this command; want the installed tree, or "
		       "a build tree, as a whole");
	}
	if (strpbrk(places->shim, " :") != NULL) {
		refuse("%s has a blank or a colon in its path, which LD_PRELOAD cannot hold; want it "
		       "installed elsewhere", places->shim);
	}
	if (options->sim != NULL && places->simulation[0] == '\0') {
		refuse("--sim: the simulated GPU is not installed; want a build with it "
		       "(meson setup -Dsim=enabled)");
	}
}

/* The directory must be there and writable; the file's name has the process's id in it. */
static void check_log(const char *pattern)
{
	char directory[PATH_SIZE];
	const char *slash = strrchr(pattern, '/');

	if (slash == NULL) {
		snprintf(directory, sizeof(directory), ".");
	} else {
		snprintf(directory, sizeof(directory), "%.*s",
			 slash == pattern ? 1 : (int)(slash - pattern), pattern);
	}
	if (access(directory, W_OK | X_OK) != 0) {
		refuse("--log %s: %s: %s; want a file in a directory that can be written", pattern,
		       directory, strerror(errno));
	}
}

static void check_policies(const struct places *places, char *chain)
{
	char copy[PATH_SIZE];
	char reason[512];
	char *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", chain);
	for (char *element = strtok_r(copy, ";", &rest); element != NULL;
	     element = strtok_r(NULL, ";", &rest)) {
		const char *wrong = check_policy(places, element, reason, sizeof(reason));

		if (wrong != NULL) {
			refuse("--policy %s: %s", element, wrong);
		}
	}
}

static void become(char **argv, const char *path)
{
	execv(path, argv);
	complain("%s: %s", path, strerror(errno));
	exit(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE);
}

int command_run(int argc, char **argv)
{
	struct options options;
	struct places places;
	char path[PATH_SIZE];

	if (!read_options(&options, argc, argv)) {
		fputs(help, stdout);
		return 0;
	}
	find_places(&places);
	check_places(&places, &options);
	if (options.chain[0] != '\0') {
		check_policies(&places, options.chain);
	}
	if (options.log != NULL) {
		check_log(options.log);
	}
	if (options.print_env) {
		set_variables(&options, &places);
		print_variables();
		return 0;
	}
	if (optind >= argc) {
		refuse("want a program to run (cuweir run --help)");
	}
	check_program(argv[optind], path, &options);
	set_variables(&options, &places);
	if (options.error_exitcode != 0) {
		return watch(argv + optind, path, options.error_exitcode);
	}
	become(argv + optind, path);
	return STATUS_NOT_EXECUTABLE;
}
