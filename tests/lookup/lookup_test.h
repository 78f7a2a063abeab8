/* SPDX-License-Identifier: Apache-2.0 */
/* What the look-up tests share; include it first. Run with the shim in LD_PRELOAD. */
#ifndef CW_LOOKUP_TEST_H
#define CW_LOOKUP_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <string.h>

#include "each_row.h"
#include "elf_read.h"
#include "hooks.h"

/* The rows of the table, for loops; `result` is what the stand-in returns. */
static const struct test_row {
	const char *symbol;
	const char *base;
	int version;
	unsigned int stream;
	int result;
	int door;
	int exported;
} test_rows[] = {
#define CW_DRIVER(name, root, since, variant, ...)                                        \
	{ #name, #root, since, CW_##variant, FAKE_RESULT(name), CW_DOOR_DRIVER, 1 },
#define CW_RUNTIME(name, root, ...)                                                       \
	{ #name, #root, 0, 0, FAKE_RESULT(name), CW_DOOR_RUNTIME, 1 },
#define CW_RUNTIME0(name, root, ...)                                                      \
	{ #name, #root, 0, 0, FAKE_RESULT(name), CW_DOOR_RUNTIME, 1 },
#define CW_NVML(name, ...) { #name, #name, 0, 0, FAKE_RESULT(name), CW_DOOR_NVML, 1 },
#define CW_REAL_ONLY(name) { #name, #name, 0, 0, FAKE_RESULT(name), CW_DOOR_DRIVER, 0 },
#include "hooks.def"
#undef CW_DRIVER
#undef CW_RUNTIME
#undef CW_RUNTIME0
#undef CW_REAL_ONLY
};

#define TEST_ROWS (sizeof test_rows / sizeof *test_rows)

static inline const struct link_map *object_called(const char *part)
{
	const struct link_map *object = cw_elf_first();

	for (; object != NULL; object = object->l_next) {
		if (strstr(cw_elf_basename(object->l_name), part) != NULL) {
			return object;
		}
	}
	return NULL;
}

/* The shim's own definition, read from its tables since no look-up would tell. */
static inline void *hook_called(const char *symbol)
{
	void *hook = cw_elf_symbol(object_called("libcuweir"), symbol);

	assert_non_null(hook);
	return hook;
}

/*
 * Arguments that do for any function: each is a pointer to zeroes, at an address whose lower
 * half is 0, so that it is 0 where a count is wanted.
 */
static inline int call_blindly(void *function)
{
	long *zeroes = mmap((void *)0x100000000000, 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	int (*call)(long *, long *, long *, long *, long *, long *) =
		(int (*)(long *, long *, long *, long *, long *, long *))function;

	return call(zeroes, zeroes, zeroes, zeroes, zeroes, zeroes);
}

static inline void *open_from_env(const char *variable, int flags)
{
	const char *path = getenv(variable);
	void *handle;

	assert_non_null(path);
	handle = dlopen(path, RTLD_NOW | flags);
	if (handle == NULL) {
		fprintf(stderr, "%s\n", dlerror());
	}
	assert_non_null(handle);
	return handle;
}

static inline void assert_missing(void *handle, const char *symbol)
{
	const char *error;

	dlerror();
	assert_null(dlsym(handle, symbol));
	error = dlerror();
	assert_non_null(error);
	assert_non_null(strstr(error, symbol));
	assert_null(dlerror());
}

static inline void require_shim(void)
{
	if (object_called("libcuweir") == NULL) {
		fprintf(stderr, "run this with the shim in LD_PRELOAD\n");
		exit(1);
	}
}

#endif
