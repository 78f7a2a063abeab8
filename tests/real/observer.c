/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded before libcuweir.so, this writes down what a CUDA runtime is given when it looks
 * up the driver: one line "HOW NAME VERSION FLAGS OBJECT SYMBOL" for each answer, where OBJECT
 * and SYMBOL are those that the address belongs to ("- -": no answer). It stands between the
 * runtime and whoever answers, and takes its own place in every look-up function that the
 * runtime gets, so that nothing passes it by. To the file that OBSERVER names.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int lookup_v1(const char *, void **, int, uint64_t);
typedef int lookup_v2(const char *, void **, int, uint64_t, int *);

void *dlsym(void *restrict handle, const char *restrict name);

static lookup_v1 *next_v1;
static lookup_v2 *next_v2;

static void note(const char *how, const char *name, int version, uint64_t flags, void *address)
{
	static FILE *file;
	const char *object = "-";
	const char *symbol = "-";
	Dl_info info;

	if (file == NULL) {
		file = fopen(getenv("OBSERVER"), "we");
	}
	if (file == NULL) {
		return;
	}
	if (address != NULL) {
		object = symbol = "?";
		if (dladdr(address, &info) != 0 && info.dli_saddr == address) {
			object = strrchr(info.dli_fname, '/');
			object = object != NULL ? object + 1 : info.dli_fname;
			symbol = info.dli_sname;
		}
	}
	fprintf(file, "%s %s %d %llu %s %s\n", how, name[0] != '\0' ? name : "\"\"", version,
		(unsigned long long)flags, object, symbol);
	fflush(file);
}

static int observe_v1(const char *name, void **ret, int version, uint64_t flags);
static int observe_v2(const char *name, void **ret, int version, uint64_t flags, int *found);

/* In place of a look-up function we hand out ours. */
static void *stand_in(const char *name, int version, void *address)
{
	if (address == NULL || strncmp(name, "cuGetProcAddress", 16) != 0) {
		return address;
	}
	if (strcmp(name, "cuGetProcAddress_v2") == 0 || version >= 12000) {
		next_v2 = (lookup_v2 *)address;
		return (void *)observe_v2;
	}
	next_v1 = (lookup_v1 *)address;
	return (void *)observe_v1;
}

static int observe_v1(const char *name, void **ret, int version, uint64_t flags)
{
	int status = next_v1(name, ret, version, flags);

	if (ret != NULL && name != NULL) {
		note("v1", name, version, flags, status == 0 ? *ret : NULL);
		*ret = status == 0 ? stand_in(name, version, *ret) : *ret;
	}
	return status;
}

static int observe_v2(const char *name, void **ret, int version, uint64_t flags, int *found)
{
	int status = next_v2(name, ret, version, flags, found);

	if (ret != NULL && name != NULL) {
		note("v2", name, version, flags, status == 0 ? *ret : NULL);
		*ret = status == 0 ? stand_in(name, version, *ret) : *ret;
	}
	return status;
}

/* libcuweir's dlsym where it is preloaded behind us, else libc's. */
static void *(*find_next(void))(void *, const char *)
{
	void *(*next)(void *, const char *) = NULL;
	const char *path = getenv("OBSERVER_BEHIND");
	void *behind = path != NULL ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	/* By dlvsym, which we do not define; a version makes it pass over libcuweir's. */
	*(void **)&next = dlvsym(libc, "dlsym", "GLIBC_2.34");
	if (behind != NULL) {
		*(void **)&next = next(behind, "dlsym");
	}
	return next;
}

__attribute__((visibility("default"))) void *dlsym(void *restrict handle,
						   const char *restrict name)
{
	static void *(*next)(void *, const char *);
	void *address;

	if (next == NULL) {
		next = find_next();
	}
	address = next(handle, name);
	if (strncmp(name, "cu", 2) != 0 || strncmp(name, "cuda", 4) == 0) {
		return address;
	}
	note("dlsym", name, 0, 0, address);
	return stand_in(name, 0, address);
}
