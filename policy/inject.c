/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy `inject`: makes allocations fail on purpose, to see what the program does then.
 * The driver is not asked; policies before this one hear of the failure as of a real one.
 * Attempts that the filters select are numbered from 1, a retry of the same allocation anew.
 */
#include "args.h"

#include <fnmatch.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define ANY_DEVICE INT32_MIN

enum when {
	WHEN_ALWAYS,
	WHEN_NTH,
	WHEN_EVERY,
	WHEN_BY_CHANCE,
};

/* Figures alone, which nobody is asked about. */
#define GAUGES                                                                                     \
	(CUWEIR_KIND_BIT(CUWEIR_KIND_VIRTUAL) | CUWEIR_KIND_BIT(CUWEIR_KIND_POOL) |                \
	 CUWEIR_KIND_BIT(CUWEIR_KIND_GRAPH_PLANNED))
#define ALL_KINDS (CUWEIR_KIND_BIT(CUWEIR_KIND_COUNT) - 2)

struct inject {
	const struct cuweir_host *host;
	enum when when;
	uint64_t number;    /* of nth= and every= */
	uint64_t count;     /* how many fail; 0: no limit */
	uint64_t skip;
	uint64_t seed;
	bool has_seed;
	uint64_t threshold; /* fails by chance when a draw of 64 bits is below */
	uint64_t above;
	uint64_t min;
	uint64_t thread;    /* 0: any */
	int32_t device;
	uint32_t kinds;
	int status;
	char *call;         /* a pattern; NULL: any */
	atomic_ullong asked;
	atomic_ullong seen;
	atomic_ullong failed;
};

static bool is_selected(const struct inject *inject, const struct cuweir_event *event)
{
	return (event->flags & CUWEIR_EVENT_NESTED) == 0 &&
	       (inject->kinds & CUWEIR_KIND_BIT(event->kind)) != 0 &&
	       event->requested >= inject->min &&
	       (inject->above == 0 || event->requested > inject->above) &&
	       (inject->device == ANY_DEVICE || inject->device == event->device) &&
	       (inject->thread == 0 || inject->thread == event->thread) &&
	       (inject->call == NULL || fnmatch(inject->call, event->call, 0) == 0);
}

/* The same for the same seed and number, whatever thread it is: a counter through a mixer. */
static uint64_t draw(uint64_t seed, uint64_t number)
{
	uint64_t mixed = seed * 0xd1342543de82ef95ull + number * 0x9e3779b97f4a7c15ull;
	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
	return mixed ^ mixed >> 31;
}

/* At most `count` of them, however many threads ask at once. */
static bool claim_failure(struct inject *inject)
{
	unsigned long long failed = atomic_load(&inject->failed);
	do {
		if (inject->count != 0 && failed >= inject->count) {
			return false;
		}
	} while (!atomic_compare_exchange_weak(&inject->failed, &failed, failed + 1));
	return true;
}

static bool fails(struct inject *inject, uint64_t number)
{
	uint64_t run = inject->count != 0 ? inject->count : 1;
	switch (inject->when) {
	case WHEN_NTH:
		return number >= inject->number && number - inject->number < run;
	case WHEN_EVERY:
		return number >= inject->number && number % inject->number < run;
	case WHEN_BY_CHANCE:
		return draw(inject->seed, number) <= inject->threshold && claim_failure(inject);
	case WHEN_ALWAYS:
		break;
	}
	return claim_failure(inject);
}

static int admit(void *state, const struct cuweir_event *event)
{
	struct inject *inject = state;
	atomic_fetch_add(&inject->asked, 1);
	if (!is_selected(inject, event)) {
		return CUWEIR_SUCCESS;
	}
	uint64_t number = atomic_fetch_add(&inject->seen, 1) + 1;
	if (number <= inject->skip || !fails(inject, number - inject->skip)) {
		return CUWEIR_SUCCESS;
	}
	return inject->status;
}

/* A name that no call has: better said than taken for a program that bears it all. */
static void close_inject(void *state)
{
	struct inject *inject = state;
	unsigned long long asked = atomic_load(&inject->asked);
	char line[120];
	if (asked != 0 && atomic_load(&inject->seen) == 0) {
		snprintf(line, sizeof(line),
			 "cuweir[%d]: inject: none of %llu allocations was selected: nothing has failed",
			 (int)getpid(), asked);
		inject->host->log(inject->host, line);
	}
}

static bool read_status(struct args_text value, int *ret_status)
{
	static const struct {
		const char *name;
		int status;
	} names[] = {
#define CUDA_STATUS(name, number) { "CUDA_ERROR_" #name, number },
#include "cuda_status.def"
#undef CUDA_STATUS
		{ "cudaErrorMemoryAllocation", CUWEIR_ERROR_OUT_OF_MEMORY },
	};
	static const size_t prefix = sizeof("CUDA_ERROR_") - 1;
	uint64_t number = 0;
	bool is_number = args_number(value, &number);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if ((is_number && number == (uint64_t)names[i].status) ||
		    args_is(value, names[i].name) || args_is(value, names[i].name + prefix)) {
			*ret_status = names[i].status;
			return true;
		}
	}
	return false;
}

/* A decimal fraction, 0 to 1, as a share of 2^64; not libc's, which reads by locale. */
static bool read_chance(struct args_text value, uint64_t *ret_threshold)
{
	struct args_text whole = { NULL, 0 };
	uint64_t ones = 0;
	double chance = 0;
	double scale = 1;
	struct args_text fraction = value;
	if (!args_cut(&fraction, '.', &whole) || !args_number(whole, &ones) || ones > 1 ||
	    (fraction.start != NULL && fraction.length == 0)) {
		return false;
	}
	for (size_t i = 0; fraction.start != NULL && i < fraction.length; i++) {
		if (fraction.start[i] < '0' || fraction.start[i] > '9') {
			return false;
		}
		scale /= 10;
		chance += (fraction.start[i] - '0') * scale;
	}
	chance += (double)ones;
	if (chance > 1 || chance <= 0) {
		return false;
	}
	*ret_threshold = chance >= 1 ? UINT64_MAX : (uint64_t)(chance * 0x1p64);
	return true;
}

/* One of them: what fails is said once. */
static bool set_when(struct inject *inject, enum when when)
{
	bool first = inject->when == WHEN_ALWAYS || inject->when == when;
	inject->when = when;
	return first;
}

static const char *read_when(const struct args_pair *pair, struct inject *inject)
{
	if (args_is(pair->key, "nth") || args_is(pair->key, "every")) {
		bool good = args_number(pair->value, &inject->number) && inject->number > 0 &&
			    set_when(inject,
				     args_is(pair->key, "nth") ? WHEN_NTH : WHEN_EVERY);
		return good ? NULL : "one of nth=N, every=N (from 1) and p=CHANCE";
	}
	if (args_is(pair->key, "p")) {
		bool good = read_chance(pair->value, &inject->threshold) &&
			    set_when(inject, WHEN_BY_CHANCE);
		return good ? NULL : "p=CHANCE above 0, to 1: p=0.01; instead of nth= and every=";
	}
	if (args_is(pair->key, "seed")) {
		inject->has_seed = true;
		return args_number(pair->value, &inject->seed) ? NULL : "seed=N, a whole number";
	}
	if (args_is(pair->key, "count")) {
		bool good = args_number(pair->value, &inject->count) && inject->count > 0;
		return good ? NULL : "count=N from 1";
	}
	if (args_is(pair->key, "skip")) {
		return args_number(pair->value, &inject->skip) ? NULL : "skip=N, a whole number";
	}
	return "";
}

static const char *read_thread(struct args_text value, uint64_t *ret_thread)
{
	if (args_is(value, "main")) {
		*ret_thread = (uint64_t)getpid();
		return NULL;
	}
	return args_number(value, ret_thread) && *ret_thread > 0 ?
		       NULL :
		       "thread=main, or the kernel's id of a thread";
}

static const char *read_filter(const struct args_pair *pair, struct inject *inject)
{
	uint64_t number = 0;
	if (args_is(pair->key, "above")) {
		return args_size(pair->value, &inject->above) ? NULL : "above=SIZE: above=1GiB";
	}
	if (args_is(pair->key, "min")) {
		return args_size(pair->value, &inject->min) ? NULL : "min=SIZE: min=1GiB";
	}
	if (args_is(pair->key, "call")) {
		free(inject->call);
		inject->call = pair->value.start != NULL && pair->value.length > 0 ?
				       strndup(pair->value.start, pair->value.length) :
				       NULL;
		return inject->call != NULL ? NULL :
					      "call=NAME, * ? and [] in it: call=cudaMalloc*";
	}
	if (args_is(pair->key, "kinds")) {
		bool good = args_kinds(pair->value, &inject->kinds) &&
			    (inject->kinds == ALL_KINDS || (inject->kinds & GAUGES) == 0);
		return good ? NULL :
			      "kinds=all, or names joined by '+' of what is allocated: device, "
			      "managed, host, registered, imported";
	}
	if (args_is(pair->key, "device")) {
		bool good = args_number(pair->value, &number) && number < 1024;
		inject->device = (int32_t)number;
		return good ? NULL : "device=N, CUDA's number";
	}
	if (args_is(pair->key, "thread")) {
		return read_thread(pair->value, &inject->thread);
	}
	return "";
}

static const char *read_argument(const struct args_pair *pair, struct inject *inject)
{
	if (args_is(pair->key, "error")) {
		return read_status(pair->value, &inject->status) ?
			       NULL :
			       "error= a number or name of cuda.h: error=2, error=OUT_OF_MEMORY";
	}
	const char *want = read_when(pair, inject);
	if (want != NULL && *want == '\0') {
		want = read_filter(pair, inject);
	}
	return want != NULL && *want == '\0' ?
		       "nth=, every=, p=, seed=, count=, skip=, above=, min=, call=, kinds=, "
		       "device=, thread= or error=" :
		       want;
}

static int open_inject(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct inject *inject = calloc(1, sizeof(*inject));
	if (inject == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	inject->host = host;
	inject->status = CUWEIR_ERROR_OUT_OF_MEMORY;
	inject->device = ANY_DEVICE;
	inject->seed = 1;
	inject->kinds = ALL_KINDS;
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	const char *want = NULL;
	while (want == NULL && args_next(&rest, &pair)) {
		want = read_argument(&pair, inject);
	}
	if (want == NULL && inject->when == WHEN_EVERY && inject->count >= inject->number &&
	    inject->number > 1) {
		want = "count= below every=";
	}
	if (want == NULL && inject->has_seed && inject->when != WHEN_BY_CHANCE) {
		want = "p=CHANCE with seed=";
	}
	if (want != NULL) {
		free(inject->call);
		free(inject);
		return args_refuse(host, &pair, want);
	}
	*ret_state = inject;
	return CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.flags = CUWEIR_POLICY_CAPTURE_SAFE,
	.name = "inject",
	.summary = "makes allocations fail on purpose",
	.arguments = "nth=N, every=N or p=CHANCE: which fail (without: all)\n"
		     "seed=N (1): of p=; the same seed makes the same attempts fail\n"
		     "count=N: how many fail, from each nth or every on (1), or in all (no limit)\n"
		     "skip=N (0): so many are not counted at first\n"
		     "above=SIZE, min=SIZE: only requests of more than, of at least this size\n"
		     "call=NAME: only by this call, * ? and [] allowed: call=cudaMalloc*\n"
		     "kinds=NAME+NAME (all), device=N, thread=main|ID: only these\n"
		     "error=N|NAME (OUT_OF_MEMORY): what the call fails with",
	.open = open_inject,
	.close = close_inject,
	.admit = admit,
};
