/* SPDX-License-Identifier: Apache-2.0 */
/* cuweir run: checks everything, sets the preload and the settings, and becomes the program. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
	"Exit status: the program's; 125 for a setting that is wrong or a program that cannot be\n"
	"watched, 126 for one that cannot be executed, 127 for one that is not found.\n";

static _Noreturn void not_executable(const char *path, const char *why)
{
	complain("%s: cannot be executed: %s", path, why);
	exit(STATUS_NOT_EXECUTABLE);
}

static void check_script(const char *path, const char *interpreter)
{
	if (access(interpreter, F_OK) != 0) {
		complain("%s: its interpreter %s is not there", path, interpreter);
		exit(STATUS_NOT_FOUND);
	}
}

/* Files are looked at before anything is set, so that a broken job fails in the first second. */
static void check_program(const char *name, const struct options *options, char path[PATH_SIZE])
{
	bool verbose = options->verbose > 1;
	struct inspection found;
	struct stat status;

	if (!find_program(name, path)) {
		complain("%s: there is no such program", name);
		exit(STATUS_NOT_FOUND);
	}
	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
		not_executable(path, "it is a directory; want a program");
	}
	if (access(path, X_OK) != 0) {
		not_executable(path, errno == EACCES ? "no permission; try chmod +x, or name its "
						       "interpreter before it"
						     : strerror(errno));
	}
	inspect(path, verbose || options->sim != NULL, &found);
	if (found.elf && !found.same_class) {
		not_executable(path, "it is for another machine; want a build for this one");
	}
	if (found.privileged) {
		refuse("%s is setuid, setgid or has capabilities, so that the loader preloads "
		       "nothing into it; want a plain copy of it", path);
	}
	if (found.elf && !found.dynamic) {
		refuse("%s is statically linked, so that nothing can be preloaded into it; want a "
		       "dynamically linked build", path);
	}
	if (options->sim != NULL && found.nvidia_runtime && options->verbose > 0) {
		complain("%s: NVIDIA's static runtime is in it, which does not start on the simulated "
			 "GPU; want it linked to libcudart.so (nvcc -cudart shared), or no --sim",
			 path);
	}
	if (found.script) {
		check_script(path, found.interpreter);
	}
	if (verbose) {
		complain("%s: CUDA: %s", path, cuda_of(&found));
	}
}

static void check_places(const struct places *places, const struct options *options)
{
	char self[PATH_SIZE];

	if (places->shim[0] == '\0' && !find_self(self)) {
		refuse("/proc/self/exe cannot be read, and so where this command is; want /proc "
		       "mounted");
	}
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

/* The file is made by the program's own process, whose id its name may have in it. */
static void check_log(const char *pattern)
{
	char directory[PATH_SIZE];
	const char *slash = strrchr(pattern, '/');
	struct stat status;

	for (const char *at = strchr(pattern, '%'); at != NULL; at = strchr(at + 2, '%')) {
		if (at[1] != 'p' && at[1] != '%') {
			refuse("--log %s: want %%p for the process id, and %%%% for a percent sign; "
			       "-p log:file= has more", pattern);
		}
	}
	if (stat(pattern, &status) == 0) {
		if (S_ISDIR(status.st_mode)) {
			refuse("--log %s: it is a directory; want a file", pattern);
		}
		if (access(pattern, W_OK) != 0) {
			refuse("--log %s: %s; want a file that can be written", pattern,
			       strerror(errno));
		}
		return;
	}
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

/* The length of `text` without `end`, where it ends so: what only the shim says. */
static size_t length_without(const char *text, const char *end)
{
	size_t length = strlen(text);
	size_t end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0
		       ? length - end_length : length;
}

/* The shim's words, with the option's name where the chain is what one was given. */
static void check_settings(const struct options *options)
{
	static const char variable[] = "CUWEIR_POLICY=\"";
	char buffer[2048];
	const char *wrong = try_settings(buffer, sizeof(buffer));
	const char *quote;
	bool limit;

	if (wrong == NULL) {
		return;
	}
	quote = strstr(wrong, "\": ");
	if (strncmp(wrong, variable, sizeof(variable) - 1) != 0 || quote == NULL) {
		refuse("%.*s", (int)length_without(wrong, "; it is ignored"), wrong);
	}
	wrong += sizeof(variable) - 1;
	limit = options->limit != NULL && strncmp(wrong, "limit:", 6) == 0 &&
		strncmp(wrong + 6, options->limit, (size_t)(quote - wrong) - 6) == 0;
	wrong += limit ? 6 : 0;
	quote += strlen("\": ");
	refuse("%s %.*s: %.*s", limit ? "--limit" : "--policy",
	       (int)(quote - wrong) - (int)strlen("\": "), wrong,
	       (int)length_without(quote, "; the policy is left out"), quote);
}

/* As execvp does: a file without a first line that names an interpreter is the shell's. */
static void become(char **argv, const char *path)
{
	execvp(path, argv);
	complain("%s: cannot be executed: %s", path, strerror(errno));
	exit(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE);
}

int command_run(int argc, char **argv)
{
	struct options options;
	struct places places;
	char path[PATH_SIZE];
	const char *log;

	if (!read_options(&options, argc, argv)) {
		fputs(help, stdout);
		return 0;
	}
	find_places(&places);
	check_places(&places, &options);
	if (!options.print_env && optind >= argc) {
		refuse("want a program to run (cuweir run --help)");
	}
	if (optind < argc) {
		check_program(argv[optind], &options, path);
	}
	set_variables(&options, &places);
	log = getenv("CUWEIR_LOG");
	if (log != NULL && *log != '\0') {
		check_log(log);
	}
	check_settings(&options);
	if (options.print_env) {
		print_variables();
		return 0;
	}
	if (options.error_exitcode != 0) {
		return watch(argv + optind, path, options.error_exitcode);
	}
	become(argv + optind, path);
	return STATUS_NOT_EXECUTABLE;
}
