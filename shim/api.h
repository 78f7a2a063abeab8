/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libcuweir-client.so and libcuweir.so share: the functions of cuweir.h as a table, found
 * by one name. Both are of one release, or of two: entries are added at the end of api.def.
 */
#ifndef CW_API_H
#define CW_API_H

#include <cuweir/cuweir.h>

struct cuweir_api {
	size_t struct_size;
#define CW_API(result, name, failed, args, ...) result (*name)(__VA_ARGS__);
#define CW_API_VOID(name, args, ...) void (*name)(__VA_ARGS__);
#include "api.def"
#undef CW_API
#undef CW_API_VOID
};

/* `alone`: whoever asks has loaded the library privately, where no door hears anything. */
CUWEIR_EXPORT const struct cuweir_api *cuweir_api_v1(bool alone);

#endif
