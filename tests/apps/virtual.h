/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver API for virtual.c: linked (with WAY_LINKED), by dlsym, or by cuGetProcAddress in its
 * second ("gpa") or first version ("gpa1").
 */
#ifndef VIRTUAL_H
#define VIRTUAL_H

#include "lookup.h"
#include "things.h"

#include <cuda.h>
#include <stdbool.h>

/* cuda.h renames these to their newest form; a name here is the exported one. */
#undef cuMemMapArrayAsync
#undef cuMemAllocFromPoolAsync
#undef cuMemAllocAsync
#undef cuMemFreeAsync

struct driver {
#define CALL(symbol, base, version, flags, parameters) CUresult(*symbol) parameters;
#include "virtual_calls.def"
#undef CALL
};

#ifdef WAY_LINKED

#define CALL(symbol, base, version, flags, parameters)                                       \
	CUresult linked_##symbol parameters __asm__(#symbol);
#include "virtual_calls.def"
#undef CALL

static const struct driver driver = {
#define CALL(symbol, base, version, flags, parameters) .symbol = linked_##symbol,
#include "virtual_calls.def"
#undef CALL
};

static inline void find_functions(const char *how)
{
	REQUIRE(strcmp(how, "linked") == 0);
}

#else

static struct driver driver;

static inline void find_functions(const char *how)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	bool by_name = strcmp(how, "dlsym") == 0;
	bool first = strcmp(how, "gpa1") == 0;

	REQUIRE(libcuda != NULL && (by_name || first || strcmp(how, "gpa") == 0));
#define CALL(symbol, base, version, flags, parameters)                                       \
	*(void **)&driver.symbol = by_name ? dlsym(libcuda, #symbol)                         \
					   : by_lookup(libcuda, first, #base, version, flags);
#include "virtual_calls.def"
#undef CALL
}

#endif

/* "device", "host", "numa" or "none", and its number; nothing is device 0. */
static inline CUmemLocation location(const char *type, const char *id)
{
	CUmemLocation location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = atoi(id) };

	if (strcmp(type, "host") == 0) {
		location.type = (CUmemLocationType)2;
	} else if (strcmp(type, "numa") == 0) {
		location.type = (CUmemLocationType)3;
	} else if (strcmp(type, "none") == 0) {
		location.type = (CUmemLocationType)0;
	}
	return location;
}

#endif
