/* SPDX-License-Identifier: Apache-2.0 */
/* How a program that is not linked to libcuda.so.1 gets its functions. */
#ifndef LOOKUP_H
#define LOOKUP_H

#include "apps.h"

#include <cuda.h>
#include <stdbool.h>

/* By cuGetProcAddress, in its first version or its second. */
static inline void *by_lookup(void *libcuda, bool first, const char *base, int version,
			      cuuint64_t flags)
{
	CUresult (*v1)(const char *, void **, int, cuuint64_t) = NULL;
	CUresult (*v2)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *) =
		NULL;
	CUdriverProcAddressQueryResult found;
	void *function = NULL;

	if (first) {
		*(void **)&v1 = dlsym(libcuda, "cuGetProcAddress");
		CHECK(v1(base, &function, version, flags));
	} else {
		*(void **)&v2 = dlsym(libcuda, "cuGetProcAddress_v2");
		CHECK(v2(base, &function, version, flags, &found));
	}
	return function;
}

/* The same by the name of the way, "dlsym" among them, without asking what was found. */
static inline void *take(const char *how, const char *symbol, const char *base, int version,
			 cuuint64_t flags)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*v1)(const char *, void **, int, cuuint64_t) = NULL;
	CUresult (*v2)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *) =
		NULL;
	void *function = NULL;

	REQUIRE(libcuda != NULL);
	if (strcmp(how, "dlsym") == 0) {
		return dlsym(libcuda, symbol);
	}
	*(void **)&v1 = dlsym(libcuda, "cuGetProcAddress");
	*(void **)&v2 = dlsym(libcuda, "cuGetProcAddress_v2");
	CHECK(strcmp(how, "gpa1") == 0 ? v1(base, &function, version, flags)
				       : v2(base, &function, version, flags, NULL));
	return function;
}

#endif
