/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUWEIR_SIM_FAIL: which calls are to fail, and how. `what:first[-last]=code`, separated by commas;
 * what is an exported symbol, a base name (all its variants count together), or "alloc".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "private.h"

#define MAX_RULES 32

struct rule {
	uint64_t fns[(SIM_FN_COUNT + 63) / 64];
	uint64_t first, last;
	CUresult code;
	_Atomic uint64_t seen;
};

int sim_n_rules;
static struct rule rules[MAX_RULES];

static const char *const alloc_bases[] = {
	"cuMemAlloc",	       "cuMemAllocPitch", "cuMemAllocManaged",	 "cuMemAllocHost",
	"cuMemHostAlloc",      "cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemCreate",
	"cuArrayCreate",       "cuArray3DCreate", "cuMipmappedArrayCreate",
};

bool sim_is_alloc(enum sim_fn fn)
{
	for (size_t i = 0; i < sizeof(alloc_bases) / sizeof(alloc_bases[0]); i++) {
		if (strcmp(sim_fns[fn].base, alloc_bases[i]) == 0) {
			return true;
		}
	}
	return false;
}

/* An exact symbol with a suffix means that one; a base name means all its variants. The symbol of
 * the oldest variant is spelled like the base: the base wins, for that is what a test means. */
static bool covers(const char *what, enum sim_fn fn)
{
	if (strcmp(what, "alloc") == 0) {
		return sim_is_alloc(fn);
	}
	return strcmp(what, sim_fns[fn].base) == 0 || strcmp(what, sim_fns[fn].symbol) == 0;
}

static bool read_rule(struct rule *r, char *text)
{
	char *range = strchr(text, ':');
	char *code = strchr(text, '=');
	char *end;
	bool any = false;

	if (range == NULL || code == NULL || code < range) {
		return false;
	}
	*range++ = '\0';
	*code++ = '\0';
	r->first = strtoull(range, &end, 10);
	r->last = *end == '-' ? (end[1] != '\0' ? strtoull(end + 1, &end, 10) : UINT64_MAX)
			      : r->first;
	r->code = (CUresult)strtol(code, NULL, 10);
	for (int fn = 0; fn < SIM_FN_COUNT; fn++) {
		if (covers(text, (enum sim_fn)fn)) {
			r->fns[fn / 64] |= 1ULL << (fn % 64);
			any = true;
		}
	}
	return any;
}

void sim_rules_read(const char *text)
{
	static char copy[4096];
	char *save = NULL;

	if (text == NULL || strlen(text) >= sizeof(copy)) {
		return;
	}
	memcpy(copy, text, strlen(text) + 1);
	for (char *t = strtok_r(copy, ",", &save); t != NULL && sim_n_rules < MAX_RULES;
	     t = strtok_r(NULL, ",", &save)) {
		if (read_rule(&rules[sim_n_rules], t)) {
			sim_n_rules++;
		} else {
			fprintf(stderr, "cuweir sim: CUWEIR_SIM_FAIL: cannot read '%s'\n", t);
			abort();
		}
	}
}

/* Every rule counts the calls that it covers, whether or not another rule fails them. */
CUresult sim_rules_ask(enum sim_fn fn)
{
	CUresult code = CUDA_SUCCESS;

	for (int i = 0; i < sim_n_rules; i++) {
		struct rule *r = &rules[i];

		if ((r->fns[fn / 64] >> (fn % 64) & 1) != 0) {
			uint64_t n = atomic_fetch_add(&r->seen, 1) + 1;

			if (code == CUDA_SUCCESS && n >= r->first && n <= r->last) {
				code = r->code;
			}
		}
	}
	return code;
}
