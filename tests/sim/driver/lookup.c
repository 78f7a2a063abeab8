/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of exported functions, and cuGetProcAddress over it. The table is made without cuda.h,
 * by names alone, so that exports.def need not repeat prototypes.
 */
#include <string.h>

#define EXPORT(sym, base, version, flags) extern int entry_##sym(void) __asm__(#sym);
#include "exports.def"
#undef EXPORT

#include "internal.h"

const struct sim_fn_info sim_fns[SIM_FN_COUNT] = {
#define EXPORT(sym, base, version, flags)                                                          \
	[SIM_FN_##sym] = {#sym, #base, version, flags, (void *)entry_##sym},
#include "exports.def"
#undef EXPORT
};

#define BUCKETS 2048

static short bucket[BUCKETS]; /* 1 + the first row of a base name; its rows are neighbours */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static unsigned int hash(const char *s)
{
	unsigned int h = 2166136261U;

	for (; *s != '\0'; s++) {
		h = (h ^ (unsigned char)*s) * 16777619U;
	}
	return h % BUCKETS;
}

static void build(void)
{
	for (int i = 0; i < SIM_FN_COUNT; i++) {
		unsigned int h = hash(sim_fns[i].base);

		if (i > 0 && strcmp(sim_fns[i].base, sim_fns[i - 1].base) == 0) {
			continue;
		}
		while (bucket[h] != 0) {
			h = (h + 1) % BUCKETS;
		}
		bucket[h] = (short)(i + 1);
	}
}

static int first_row(const char *base)
{
	for (unsigned int h = hash(base); bucket[h] != 0; h = (h + 1) % BUCKETS) {
		if (strcmp(sim_fns[bucket[h] - 1].base, base) == 0) {
			return bucket[h] - 1;
		}
	}
	return -1;
}

/*
 * The newest variant that is not newer than the request; with flag 2 the per-thread one where it
 * has one, else the legacy one. A driver does not know what came after it.
 */
void *sim_lookup(const char *base, int version, uint64_t flags, int *ret_status)
{
	const struct sim_fn_info *best = NULL;
	bool known = false;
	int i;

	pthread_once(&once, build);
	i = first_row(base);
	*ret_status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (i < 0) {
		return NULL;
	}
	for (; i < SIM_FN_COUNT && strcmp(sim_fns[i].base, base) == 0; i++) {
		const struct sim_fn_info *f = &sim_fns[i];

		if (f->version > sim_set.driver_version) {
			continue;
		}
		known = true;
		if (f->version > version || (f->flags != 0 && flags != f->flags)) {
			continue;
		}
		if (best == NULL || f->flags > best->flags ||
		    (f->flags == best->flags && f->version > best->version)) {
			best = f;
		}
	}
	if (best == NULL) {
		if (known) {
			*ret_status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
		}
		return NULL;
	}
	*ret_status = CU_GET_PROC_ADDRESS_SUCCESS;
	return best->entry;
}

static CUresult get(const char *symbol, void **pfn, int version, cuuint64_t flags, int *status)
{
	if (symbol == NULL || pfn == NULL || version > sim_set.driver_version ||
	    flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*pfn = sim_lookup(symbol, version, flags, status);
	return CUDA_SUCCESS;
}

/* The older form says "not found" by its result (header of CUDA 11.3). */
static CUresult get_v1(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	int status = 0;
	CUresult r;

	sim_settings_ready();
	r = get(symbol, pfn, version, flags, &status);
	return r == CUDA_SUCCESS && status != 0 ? CUDA_ERROR_NOT_FOUND : r;
}

static CUresult get_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
		       CUdriverProcAddressQueryResult *status)
{
	int s = 0;
	CUresult r;

	sim_settings_ready();
	r = get(symbol, pfn, version, flags, &s);
	if (r == CUDA_SUCCESS && status != NULL) {
		*status = (CUdriverProcAddressQueryResult)s;
	}
	return r;
}

/* Names are written as text: "cuMemAlloc", not as an address. */
static void trace_lookup(enum sim_fn fn, const char *symbol, int version, cuuint64_t flags,
			 void *const *pfn, CUresult r)
{
	struct sim_line l;
	const char *found = "none";

	sim_trace_args(&l, fn, "version, flags", 2, (const uint64_t[]){(uint64_t)version, flags});
	for (int i = 0; r == CUDA_SUCCESS && pfn != NULL && i < SIM_FN_COUNT; i++) {
		if (sim_fns[i].entry == *pfn) {
			found = sim_fns[i].symbol;
		}
	}
	sim_trace_text(&l, symbol != NULL ? symbol : "(null)", found);
	sim_trace_end(&l, r);
}

SIM_EXPORT CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion,
					     cuuint64_t flags)
{
	CUresult r = sim_enter(SIM_FN_cuGetProcAddress);

	if (r == CUDA_SUCCESS) {
		r = get_v1(symbol, pfn, cudaVersion, flags);
	}
	if (atomic_load(&sim_traced)) {
		trace_lookup(SIM_FN_cuGetProcAddress, symbol, cudaVersion, flags, pfn, r);
	}
	return r;
}

SIM_EXPORT CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
						cuuint64_t flags,
						CUdriverProcAddressQueryResult *symbolStatus)
{
	CUresult r = sim_enter(SIM_FN_cuGetProcAddress_v2);

	if (r == CUDA_SUCCESS) {
		r = get_v2(symbol, pfn, cudaVersion, flags, symbolStatus);
	}
	if (atomic_load(&sim_traced)) {
		trace_lookup(SIM_FN_cuGetProcAddress_v2, symbol, cudaVersion, flags, pfn, r);
	}
	return r;
}

SIM_API(cuGetExportTable, (const void **ppExportTable, const CUuuid *id), (id != NULL), (0),
	ppExportTable != NULL ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE)
