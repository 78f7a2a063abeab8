/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 for look-ups: every function of the table, each returning its own number.
 * FAKE_OLD    exports cuInit and cuMemAlloc_v2 alone, as a driver of long ago
 * FAKE_INNER  cuGetProcAddress answers with addresses that are not exported ones
 */
#include "cuda_api.h"
#include "each_row.h"
#include "hooks.h"

#include <stddef.h>
#include <string.h>

#define FAKE_DRIVER_VERSION 13030

/* Calls of anything but look-ups, for tests that want none. */
int fake_calls;

CUresult fake_init(unsigned int flags) __asm__("cuInit");
CUresult fake_init(unsigned int flags)
{
	fake_calls++;
	return CUDA_SUCCESS;
}

#ifdef FAKE_OLD
CUresult fake_alloc(CUdeviceptr *dptr, size_t size) __asm__("cuMemAlloc_v2");
CUresult fake_alloc(CUdeviceptr *dptr, size_t size)
{
	return (CUresult)FAKE_RESULT(cuMemAlloc_v2);
}
#else

static CUresult lookup(const char *symbol, void **pfn, int version, cuuint64_t flags,
		       CUdriverProcAddressQueryResult *status);

#define DEFINE_PLAIN(symbol, ...)                                                    \
	CUresult fake_##symbol(__VA_ARGS__) __asm__(#symbol);                              \
	CUresult fake_##symbol(__VA_ARGS__)                                                \
	{                                                                                  \
		fake_calls++;                                                              \
		return (CUresult)FAKE_RESULT(symbol);                                      \
	}                                                                                  \
	static CUresult inner_##symbol(__VA_ARGS__)                                        \
	{                                                                                  \
		fake_calls += 2;                                                           \
		return (CUresult)FAKE_RESULT(symbol);                                      \
	}
#define DEFINE_LOOKUP(symbol, ...) DEFINE_##symbol
#define DEFINE_cuGetProcAddress                                                            \
	DEFINE_V1(, fake_cuGetProcAddress, __asm__("cuGetProcAddress"))                    \
	DEFINE_V1(static, inner_cuGetProcAddress, )
#define DEFINE_cuGetProcAddress_v2                                                         \
	DEFINE_V2(, fake_cuGetProcAddress_v2, __asm__("cuGetProcAddress_v2"))              \
	DEFINE_V2(static, inner_cuGetProcAddress_v2, )
#define DEFINE_V1(storage, name, label)                                                    \
	storage CUresult name(const char *symbol, void **pfn, int version,                 \
			      cuuint64_t flags) label;                                     \
	storage CUresult name(const char *symbol, void **pfn, int version,                 \
			      cuuint64_t flags)                                            \
	{                                                                                  \
		return lookup(symbol, pfn, version, flags, NULL);                          \
	}
#define DEFINE_V2(storage, name, label)                                                    \
	storage CUresult name(const char *symbol, void **pfn, int version,                 \
			      cuuint64_t flags, CUdriverProcAddressQueryResult *status)    \
		label;                                                                     \
	storage CUresult name(const char *symbol, void **pfn, int version,                 \
			      cuuint64_t flags, CUdriverProcAddressQueryResult *status)    \
	{                                                                                  \
		return lookup(symbol, pfn, version, flags, status);                        \
	}

#define CW_DRIVER(symbol, base, version, stream, kind, body, args, ...)                    \
	ROW_PASTE(DEFINE_, ROW_KIND(body))(symbol, __VA_ARGS__)
#define CW_RUNTIME(symbol, base, kind, body, args, ...)
#define CW_RUNTIME0(symbol, base, kind, body)
#define CW_REAL_ONLY(symbol) DEFINE_PLAIN(symbol, void)
#include "hooks.def"
#undef CW_DRIVER
#undef CW_REAL_ONLY

/* A version newer than any table knows, of another ABI. */
CUresult fake_future(void) __asm__("cuMemFree_v3");
CUresult fake_future(void)
{
	return (CUresult)77;
}

#ifdef FAKE_INNER
#define ANSWER(symbol) inner_##symbol
#else
#define ANSWER(symbol) fake_##symbol
#endif

static const struct row {
	const char *base;
	void *answer;
	void *other;
	int version;
	unsigned int stream;
} rows[] = {
#define CW_DRIVER(symbol, base, version, stream, kind, body, args, ...)                    \
	{ #base, (void *)ANSWER(symbol), (void *)inner_##symbol, version, CW_##stream },
#define CW_REAL_ONLY(symbol)                                                               \
	{ #symbol, (void *)fake_##symbol, (void *)inner_##symbol, 2000, CW_LEGACY },
#include "hooks.def"
	{ "cuMemFree", (void *)fake_future, NULL, 13020, CW_LEGACY },
	{ "cuInit", (void *)fake_init, NULL, 2000, CW_LEGACY },
};

static CUresult lookup(const char *symbol, void **pfn, int version, cuuint64_t flags,
		       CUdriverProcAddressQueryResult *status)
{
	const struct row *best = NULL;
	unsigned int wanted = (flags & CW_PTDS) != 0 ? CW_PTDS : CW_LEGACY;

	if (symbol == NULL || pfn == NULL || version > FAKE_DRIVER_VERSION) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];

		if (strcmp(row->base, symbol) != 0 || row->version > version ||
		    (row->stream == CW_PTDS && wanted == CW_LEGACY)) {
			continue;
		}
		if (best == NULL || row->version > best->version ||
		    (row->version == best->version && row->stream == wanted)) {
			best = row;
		}
	}
	*pfn = best == NULL ? NULL : best->answer;
	if (status != NULL) {
		*status = (CUdriverProcAddressQueryResult)(best == NULL);
	}
	return CUDA_SUCCESS;
}
#endif
