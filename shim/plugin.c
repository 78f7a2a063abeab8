/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "elf_read.h"
#include "message.h"
#include "old_glibc.h"

#define ENTRY_SYMBOL "cuweir_policy_entry"
#define WANT "want a policy that is there (cuweir policies), or the path with a / of a plugin"

static const char *last_dl_error(void)
{
	const char *error = dlerror();

	return error != NULL ? error : "unknown error of the dynamic linker";
}

/* Where our own object lies, with the last slash: policies are installed beside it. 0: unknown. */
static size_t own_directory(char *buffer, size_t size)
{
	Dl_info info;
	const char *slash;
	size_t length;

	if (dladdr((void *)(uintptr_t)&cw_plugin_load, &info) == 0 || info.dli_fname == NULL) {
		return 0;
	}
	slash = strrchr(info.dli_fname, '/');
	length = slash != NULL ? (size_t)(slash - info.dli_fname) + 1 : 0;
	if (length == 0 || length >= size) {
		return 0;
	}
	memcpy(buffer, info.dli_fname, length);
	buffer[length] = '\0';
	return length;
}

/* The loader's words, without the file's name before them. */
static void *open_file(const char *path, const char **ret_error)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	size_t length = strlen(path);

	*ret_error = handle == NULL ? last_dl_error() : NULL;
	if (handle == NULL && strncmp(*ret_error, path, length) == 0 &&
	    strncmp(*ret_error + length, ": ", 2) == 0) {
		*ret_error += length + 2;
	}
	return handle;
}

/*
 * A path is taken as it is. A name is looked for beside our object: installed in cuweir/, and
 * in a build tree in ../policy/.
 */
static void *open_plugin(const char *name, const char **ret_error)
{
	static const char places[][12] = { "cuweir", "../policy" };
	char path[PATH_MAX];
	size_t length;

	if (strchr(name, '/') != NULL) {
		/* From where the program was started, as its other files. */
		bool relative = name[0] != '/' && cw_config.directory[0] != '\0';

		cw_format(path, sizeof(path), "%s%s%s", relative ? cw_config.directory : "",
			  relative ? "/" : "", name);
		if (access(path, F_OK) != 0 && errno == ENOENT) {
			*ret_error = "there is no such file";
			return NULL;
		}
		return open_file(path, ret_error);
	}
	*ret_error = "there is no policy of that name beside libcuweir.so";
	length = own_directory(path, sizeof(path));
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && length != 0; i++) {
		cw_format(path + length, sizeof(path) - length, "%s/%s.so", places[i], name);
		if (access(path, F_OK) == 0) {
			return open_file(path, ret_error);
		}
	}
	return NULL;
}

static const struct cuweir_policy *find_entry(void *handle)
{
	struct link_map *map = NULL;

	/* Our own reading of the symbol table: the program's dlerror stays as it is. */
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == NULL) {
		return NULL;
	}
	return cw_elf_symbol(map, ENTRY_SYMBOL);
}

const struct cuweir_policy *cw_plugin_load(const char *name, char *ret_reason, size_t size)
{
	const struct cuweir_policy *entry = NULL;
	const char *reason = NULL;
	void *handle = open_plugin(name, &reason);

	if (handle != NULL) {
		entry = find_entry(handle);
		reason = "it exports no " ENTRY_SYMBOL;
	}
	if (entry == NULL) {
		cw_format(ret_reason, size, "%s; " WANT, reason);
	}
	return entry;
}
