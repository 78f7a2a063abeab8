/* SPDX-License-Identifier: Apache-2.0 */
/* cuweir check: a shim that is missing is silent, so this is not. */
#include "command.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool all_well = true;

static void report(bool good, const char *what, const char *value)
{
	all_well &= good;
	printf("%-4s %-12s %s\n", good ? "ok" : "NOT", what, value);
}

static void check_installation(const struct places *places)
{
	char buffer[2048];
	const char *wrong;
	void *driver;

	report(places->shim[0] != '\0', "shim", places->shim[0] != '\0' ? places->shim
								       : "libcuweir.so not found");
	if (places->shim[0] != '\0') {
		setenv("LD_PRELOAD", places->shim, 1);
		wrong = try_settings(buffer, sizeof(buffer));
		report(wrong == NULL, "preload", wrong == NULL ? "works" : wrong);
	}
	report(places->policies[0] != '\0', "policies",
	       places->policies[0] != '\0' ? places->policies : "no directory of policies");
	printf("%-4s %-12s %s\n", "", "simulation",
	       places->simulation[0] != '\0' ? places->simulation : "not installed");
	printf("%-4s %-12s %s\n", "", "glibc", gnu_get_libc_version());
	driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	printf("%-4s %-12s %s\n", "", "driver",
	       driver != NULL ? "libcuda.so.1 is there" : "no libcuda.so.1 on the loader's path");
}

const char *cuda_of(const struct inspection *found)
{
	static char text[256];

	if (found->script) {
		return "what its interpreter and its children load";
	}
	if (found->cudart == CUDART_SHARED) {
		snprintf(text, sizeof(text), "%s, heard at the runtime and the driver door",
			 found->cudart_name);
		return text;
	}
	if (found->cudart == CUDART_STATIC) {
		return "a static runtime, heard at the driver door";
	}
	if (found->links_driver) {
		return "linked to libcuda.so.1";
	}
	if (found->opens_driver) {
		return "opens libcuda.so.1 by itself";
	}
	return "none in the program itself; libraries that it loads are heard when they come";
}

static void check_file(const char *path)
{
	struct inspection found;

	inspect(path, true, &found);
	report(found.readable, "program", path);
	report(access(path, X_OK) == 0, "executable",
	       access(path, X_OK) == 0 ? "by this user" : "no permission; try chmod +x");
	if (found.script) {
		report(access(found.interpreter, X_OK) == 0, "script", found.interpreter);
		return;
	}
	report(found.elf, "format", found.elf ? "ELF" : "neither ELF nor a script");
	if (!found.elf) {
		return;
	}
	report(found.same_class, "machine", found.same_class ? "this one" : "another one");
	report(found.dynamic, "linkage",
	       found.dynamic ? "dynamic: can be preloaded" :
	       found.library ? "a library, not a program" : "static: nothing can be preloaded");
	report(!found.privileged, "privileges",
	       found.privileged ? "setuid, setgid or capabilities: the loader ignores LD_PRELOAD"
				: "none");
	printf("%-4s %-12s %s\n", found.cudart != CUDART_NONE || found.links_driver ||
	       found.opens_driver ? "ok" : "", "cuda", cuda_of(&found));
	if (found.opens_namespaces) {
		printf("%-4s %-12s uses dlmopen: what it opens so is not heard\n", "", "note");
	}
}

int command_check(int argc, char **argv)
{
	struct places places;
	char path[PATH_SIZE];
	int first = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;

	if (wants_help(argc, argv)) {
		puts("usage: cuweir check [PROGRAM]\n\n"
		     "Says what is installed, and whether and how a program will be seen.\n"
		     "Exit status: 0 when all is well, 1 when something is not, 127 when there is\n"
		     "no such program.");
		return 0;
	}
	if (first < argc && !find_program(argv[first], path)) {
		complain("%s: there is no such program", argv[first]);
		return STATUS_NOT_FOUND;
	}
	find_places(&places);
	check_installation(&places);
	if (first < argc) {
		check_file(path);
	}
	return all_well ? 0 : 1;
}
