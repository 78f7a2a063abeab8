/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcuweir-client.so: the functions of cuweir.h for a program that links to them. Under a
 * preload they are libcuweir.so's; else that library is loaded privately from beside this one,
 * where it replaces no function of anybody's.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../shim/api.h"

typedef const struct cuweir_api *(*api_fn)(bool alone);

static const struct cuweir_api *api;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Where this object lies: `name` beside it, and in a build tree in ../shim. */
static void *open_beside(const char *name)
{
	static const char *const places[] = { "", "cuweir/", "../shim/" };
	char path[PATH_MAX];
	const char *slash;
	void *handle = NULL;
	Dl_info info;

	if (dladdr((void *)(uintptr_t)&api, &info) == 0 || info.dli_fname == NULL) {
		return NULL;
	}
	slash = strrchr(info.dli_fname, '/');
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && handle == NULL; i++) {
		int length = slash != NULL ? (int)(slash - info.dli_fname) + 1 : 0;

		snprintf(path, sizeof(path), "%.*s%s%s", length, info.dli_fname, places[i], name);
		handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return handle;
}

static void find(void)
{
	api_fn preloaded = (api_fn)dlsym(RTLD_DEFAULT, "cuweir_api_v1");
	void *library;
	api_fn beside;

	if (preloaded != NULL) {
		api = preloaded(false);
		return;
	}
	library = open_beside("libcuweir.so");
	beside = library != NULL ? (api_fn)dlsym(library, "cuweir_api_v1") : NULL;
	api = beside != NULL ? beside(true) : NULL;
}

/* NULL where there is no library, or an older one that lacks the entry. */
static const struct cuweir_api *with(size_t end)
{
	pthread_once(&once, find);
	return api != NULL && api->struct_size >= end ? api : NULL;
}

#define END(name) (offsetof(struct cuweir_api, name) + sizeof(((struct cuweir_api *)0)->name))
#define ARGS(...) (__VA_ARGS__)
#define CW_API(result, name, failed, args, ...)                                                    \
	CUWEIR_EXPORT result name(__VA_ARGS__)                                                     \
	{                                                                                          \
		const struct cuweir_api *library = with(END(name));                                \
                                                                                                   \
		return library != NULL ? library->name args : (failed);                            \
	}
#define CW_API_VOID(name, args, ...)                                                               \
	CUWEIR_EXPORT void name(__VA_ARGS__)                                                       \
	{                                                                                          \
		const struct cuweir_api *library = with(END(name));                                \
                                                                                                   \
		if (library != NULL) {                                                             \
			library->name args;                                                        \
		}                                                                                  \
	}
#include "../shim/api.def"
