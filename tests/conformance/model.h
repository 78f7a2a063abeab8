/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the case tables, once more and alone: what a chain of policies that answer by
 * decide.h must be told of a sequence of operations, and what the program must get. It shares
 * nothing with the shim, and takes no short ways.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../plugins/decide.h"

enum { MODEL_POLICIES = 3, MODEL_DEVICES = 2, MODEL_KINDS = 4, MODEL_RULES = 24 };
enum { MODEL_TEXT = 1 << 17, MODEL_ITEMS = 48 };

/* As in cuweir/policy.h. */
enum { MODEL_DEVICE = 1, MODEL_MANAGED = 2, MODEL_HOST = 3 };
enum { MODEL_NESTED = 1, MODEL_STREAM_ORDERED = 4, MODEL_UNDO = 16, MODEL_CONTEXT_END = 32 };

/* The calls of the driver whose failures are injected. */
enum model_call { MODEL_ALLOC, MODEL_FREE, MODEL_FREE_ASYNC, MODEL_FREE_HOST, MODEL_CALLS };

struct model_rule {
	enum model_call call;
	uint64_t nth;
	int code;
};

struct model_item {
	bool live;
	bool context_bound;
	int device;
	int kind;
	uint64_t requested;
	uint64_t charged;
	uint32_t flags;      /* of its allocation */
	enum model_call undo;
};

struct model_policy {
	uint64_t seed;
	unsigned int percent[DECIDE_KINDS];
	uint64_t asked[DECIDE_KINDS];
	size_t count[2];
	uint64_t *list[2];
	struct model_item kept; /* memory that it took in a callback */
	char *text; /* what it has to be told */
	size_t length;
};

struct model {
	struct model_policy policies[MODEL_POLICIES];
	int count;
	bool all_kinds; /* thresholds of all kinds, not of device memory alone */
	bool minimal;   /* no admit, no before_free */
	bool silent;    /* frees are not told: those of a context's end have no order */
	bool nests;     /* some policy takes memory of its own */
	bool debug;
	int device;     /* the program's current one */
	uint64_t budget; /* of device memory, on each device; 0: none */
	struct model_rule rules[MODEL_RULES];
	int rule_count;
	uint64_t calls[MODEL_CALLS];
	uint64_t totals[MODEL_DEVICES][MODEL_KINDS];
	/* What could not be undone: nobody has it, but it goes with its context. */
	uint64_t lost[MODEL_DEVICES][MODEL_KINDS];
};

/* What the program gets; on success the item is live. */
int model_allocate(struct model *model, struct model_item *item);

/* By a call that is `free`, with the flags of its own. */
int model_deallocate(struct model *model, struct model_item *item, enum model_call free,
		     uint32_t flags);

/* The context of a device ends, with what `items` has of it. */
int model_reset(struct model *model, struct model_item *items, int count, int device);

#endif
