/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* Installed: PREFIX/bin/cuweir and PREFIX/LIBDIR; Meson hands LIBDIR's way from bin over. */
#ifndef CUWEIR_LIBDIR_FROM_BIN
#define CUWEIR_LIBDIR_FROM_BIN "../lib"
#endif

#ifndef CUWEIR_LIBEXECDIR_FROM_BIN
#define CUWEIR_LIBEXECDIR_FROM_BIN "../libexec"
#endif

static bool exists(const char *path)
{
	return access(path, R_OK) == 0;
}

/* Keeps the first of two candidates that exists, canonical; else the name is left empty. */
static void choose(char target[PATH_SIZE], const char *directory, const char *installed,
		   const char *built)
{
	const char *const candidates[] = { installed, built };
	char path[2 * PATH_SIZE];

	target[0] = '\0';
	for (size_t i = 0; i < 2 && target[0] == '\0'; i++) {
		snprintf(path, sizeof(path), "%s/%s",
			 candidates[i][0] == '/' ? "" : directory, candidates[i]);
		if (exists(path) && realpath(path, target) == NULL) {
			target[0] = '\0';
		}
	}
}

bool find_self(char path[PATH_SIZE])
{
	/* Not the name that it was executed by: under an emulator that is the emulator's. */
	ssize_t length = readlink("/proc/self/exe", path, PATH_SIZE - 1);
	const char *executed = (const char *)getauxval(AT_EXECFN);

	path[length > 0 ? length : 0] = '\0';
	if (length <= 0 && (executed == NULL || realpath(executed, path) == NULL)) {
		path[0] = '\0';
	}
	return path[0] != '\0';
}

void find_places(struct places *places)
{
	char self[PATH_SIZE];
	const char *directory;

	memset(places, 0, sizeof(*places));
	if (!find_self(self)) {
		return;
	}
	directory = dirname(self);
	choose(places->shim, directory, CUWEIR_LIBDIR_FROM_BIN "/libcuweir.so",
	       "../shim/libcuweir.so");
	choose(places->policies, directory, CUWEIR_LIBDIR_FROM_BIN "/cuweir", "../policy");
	choose(places->simulation, directory, CUWEIR_LIBDIR_FROM_BIN "/cuweir/sim",
	       "../tests/sim/lib");
	choose(places->symbolize, directory, CUWEIR_LIBEXECDIR_FROM_BIN "/cuweir/symbolize",
	       "symbolize");
}

static bool is_file(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

bool find_program(const char *name, char path[PATH_SIZE])
{
	const char *directories = getenv("PATH") != NULL ? getenv("PATH") : "/bin:/usr/bin";

	if (strchr(name, '/') != NULL) {
		snprintf(path, PATH_SIZE, "%s", name);
		return exists(path) || access(path, F_OK) == 0;
	}
	while (directories != NULL) {
		size_t length = strcspn(directories, ":");

		if (length > 0) {
			snprintf(path, PATH_SIZE, "%.*s/%s", (int)length, directories, name);
		} else {
			snprintf(path, PATH_SIZE, "./%s", name);
		}
		if (is_file(path) && access(path, X_OK) == 0) {
			return true;
		}
		directories = directories[length] == ':' ? directories + length + 1 : NULL;
	}
	return false;
}
