/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long ull;

/* The facts of one event. */
struct facts {
	int kind;
	int device;
	uint64_t requested;
	uint64_t charged;
	uint64_t before;
	uint64_t after;
	uint32_t flags;
	int status; /* -1: not compared */
};

__attribute__((format(printf, 2, 3)))
static void line(struct model_policy *policy, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(policy->text + policy->length, MODEL_TEXT - policy->length, format,
			   arguments);
	va_end(arguments);
	policy->length += (size_t)length;
	if (policy->length >= MODEL_TEXT) {
		abort();
	}
}

static void tell(struct model_policy *policy, const char *name, uint64_t number,
		 const struct facts *facts, int answer)
{
	char status[32] = "";

	if (facts->status >= 0) {
		snprintf(status, sizeof(status), " status=%d", facts->status);
	}
	line(policy, "%s %llu kind=%d device=%d requested=%llu charged=%llu before=%llu "
		     "after=%llu flags=%u answer=%d%s\n",
	     name, (ull)number, facts->kind, facts->device, (ull)facts->requested,
	     (ull)facts->charged, (ull)facts->before, (ull)facts->after, facts->flags, answer,
	     status);
}

static uint64_t draw(struct model_policy *policy, enum decide_what what)
{
	return decide_draw(policy->seed, what, policy->asked[what]++);
}

static int driver(struct model *model, enum model_call call)
{
	uint64_t nth = ++model->calls[call];
	int code = 0;

	for (int i = 0; i < model->rule_count && code == 0; i++) {
		const struct model_rule *rule = &model->rules[i];

		code = rule->call == call && rule->nth == nth ? rule->code : 0;
	}
	return code;
}

static uint64_t *total_of(struct model *model, const struct model_item *item)
{
	return &model->totals[item->device][item->kind];
}

static struct facts facts_of(struct model *model, const struct model_item *item, uint32_t flags)
{
	uint64_t total = *total_of(model, item);

	return (struct facts){
		.kind = item->kind, .device = item->device, .requested = item->requested,
		.charged = item->requested, .before = total, .after = total, .flags = flags,
	};
}

static bool watched(const struct model *model, int kind)
{
	return model->all_kinds || kind == MODEL_DEVICE;
}

static bool crosses_up(const struct model_policy *policy, const struct facts *facts)
{
	for (size_t i = 0; i < policy->count[0]; i++) {
		if (facts->before < policy->list[0][i] && policy->list[0][i] <= facts->after) {
			return true;
		}
	}
	return false;
}

static bool crosses_down(const struct model_policy *policy, const struct facts *facts)
{
	for (size_t i = 0; i < policy->count[1]; i++) {
		if (facts->before >= policy->list[1][i] && policy->list[1][i] > facts->after) {
			return true;
		}
	}
	return false;
}

static int as_result(int status)
{
	return status == 7777 ? 999 : status;
}

/*
 * What is told of a free, from the innermost policy to the one at `outermost`; of a nested one
 * by the policy at `inside`, else -1, no thresholds, and nothing to that policy.
 */
static int tell_freed(struct model *model, const struct facts *facts, int outermost, int inside)
{
	int result = 0;

	for (int i = model->count - 1; i >= outermost; i--) {
		struct model_policy *policy = &model->policies[i];

		if (inside < 0 && watched(model, facts->kind) && crosses_down(policy, facts)) {
			int status = decide_status(draw(policy, DECIDE_STATUS),
						   policy->percent[DECIDE_STATUS]);

			tell(policy, "dealloc_threshold", facts->after, facts, status);
			result = result == 0 ? as_result(status) : result;
		}
		if (i != inside && model->debug && !model->silent) {
			tell(policy, "deallocated", facts->requested, facts, 0);
		}
	}
	return result;
}

static void tell_before_free(struct model *model, const struct facts *facts, int outermost,
			     int inside)
{
	for (int i = outermost; i < model->count && !model->minimal && !model->silent; i++) {
		if (i != inside) {
			tell(&model->policies[i], "before_free", 0, facts, 0);
		}
	}
}

/* Those inside the one that vetoes were told of the allocation, and are told of its free. */
static void undo(struct model *model, struct model_item *item, int vetoing)
{
	struct facts facts = facts_of(model, item, item->flags | MODEL_UNDO);

	facts.charged = item->charged;
	tell_before_free(model, &facts, vetoing + 1, -1);
	if (driver(model, item->undo) != 0) {
		model->lost[item->device][item->kind] += item->context_bound ? item->charged : 0;
		return;
	}
	*total_of(model, item) -= item->charged;
	facts.after = *total_of(model, item);
	(void)tell_freed(model, &facts, vetoing + 1, -1);
}

/* The budget first, then the driver, then the rest of the budget that only the pitch tells. */
static int take(struct model *model, struct model_item *item)
{
	uint64_t total = *total_of(model, item);
	bool limited = model->budget != 0 && item->kind == MODEL_DEVICE;
	int result;

	if (limited && (total > model->budget || item->requested > model->budget - total)) {
		return 2;
	}
	result = driver(model, MODEL_ALLOC);
	if (result != 0) {
		return result;
	}
	if (limited && item->charged > model->budget - total && driver(model, item->undo) == 0) {
		return 2;
	}
	*total_of(model, item) += item->charged;
	return 0;
}

/* Asks and tells no thresholds and no failures, and nothing of the policy that is at it. */
static void take_nested(struct model *model, int inside, struct model_item *item)
{
	struct facts facts = facts_of(model, item, item->flags);
	int result = 0;

	facts.status = -1;
	for (int i = 0; i < model->count && result == 0 && !model->minimal; i++) {
		struct model_policy *policy = &model->policies[i];

		if (i != inside) {
			int status = decide_status(draw(policy, DECIDE_ADMIT),
						   policy->percent[DECIDE_ADMIT]);

			tell(policy, "admit", 0, &facts, status);
			result = as_result(status);
		}
	}
	result = result == 0 ? take(model, item) : result;
	item->live = result == 0;
	facts.status = result;
	facts.after = *total_of(model, item);
	for (int i = model->count - 1; i >= 0; i--) {
		if (i != inside && (result != 0 || model->debug)) {
			tell(&model->policies[i], result != 0 ? "alloc_failed" : "allocated",
			     result != 0 ? 0 : item->requested, &facts, 0);
		}
	}
}

static int give(struct model *model, struct model_item *item, enum model_call call, uint32_t flags,
		int inside)
{
	struct facts facts = facts_of(model, item, flags);
	int result;

	facts.charged = item->charged;
	tell_before_free(model, &facts, 0, inside);
	result = driver(model, call);
	if (result != 0) {
		return result;
	}
	item->live = false;
	*total_of(model, item) -= item->charged;
	facts.after = *total_of(model, item);
	return tell_freed(model, &facts, 0, inside);
}

/* In a callback of the policy at `place`. */
static void nest(struct model *model, int place)
{
	struct model_policy *policy = &model->policies[place];
	uint64_t drawn = draw(policy, DECIDE_NEST);
	struct model_item *kept = &policy->kept;

	if (!decide_yes(drawn, policy->percent[DECIDE_NEST])) {
		return;
	}
	if (kept->live) {
		(void)give(model, kept, MODEL_FREE, MODEL_NESTED, place);
		return;
	}
	*kept = (struct model_item){
		.context_bound = true, .device = model->device, .kind = MODEL_DEVICE,
		.requested = 1 + drawn / 100 % 5000, .charged = 1 + drawn / 100 % 5000,
		.flags = MODEL_NESTED, .undo = MODEL_FREE,
	};
	take_nested(model, place, kept);
}

static int tell_allocated(struct model *model, struct model_item *item, struct facts *facts,
			  int place)
{
	struct model_policy *policy = &model->policies[place];

	if (watched(model, item->kind) && crosses_up(policy, facts)) {
		int status = decide_status(draw(policy, DECIDE_VETO), policy->percent[DECIDE_VETO]);

		if (decide_yes(draw(policy, DECIDE_SWITCH), policy->percent[DECIDE_SWITCH])) {
			model->debug = !model->debug;
		}
		nest(model, place);
		tell(policy, "alloc_threshold", facts->after, facts, status);
		if (status != 0) {
			undo(model, item, place);
			return as_result(status);
		}
	}
	if (model->debug) {
		tell(policy, "allocated", item->requested, facts, 0);
	}
	return 0;
}

static int attempt(struct model *model, struct model_item *item, struct facts *ret, int place)
{
	struct model_policy *policy = &model->policies[place];
	struct facts facts = facts_of(model, item, item->flags);
	int result;

	if (place == model->count) {
		result = take(model, item);
		*ret = facts;
		ret->charged = item->charged;
		ret->after = *total_of(model, item);
		return result;
	}
	if (!model->minimal) {
		int status = decide_status(draw(policy, DECIDE_ADMIT),
					   policy->percent[DECIDE_ADMIT]);

		facts.status = -1;
		tell(policy, "admit", 0, &facts, status);
		if (status != 0) {
			return as_result(status);
		}
	}
	for (int count = 0;; count++) {
		bool again;

		result = attempt(model, item, ret, place + 1);
		if (result == 0) {
			ret->status = 0;
			return tell_allocated(model, item, ret, place);
		}
		if (result != 2) {
			return result;
		}
		facts = facts_of(model, item, item->flags);
		facts.status = ret->status = 2;
		again = decide_yes(draw(policy, DECIDE_RETRY), policy->percent[DECIDE_RETRY]) &&
			count < DECIDE_RETRIES;
		nest(model, place);
		tell(policy, "alloc_failure", (uint64_t)count, &facts, again);
		if (!again) {
			return result;
		}
	}
}

int model_allocate(struct model *model, struct model_item *item)
{
	struct facts facts = { 0 };
	int result = attempt(model, item, &facts, 0);

	item->live = result == 0;
	if (result != 0) {
		facts = facts_of(model, item, item->flags);
		facts.status = result;
		for (int i = model->count - 1; i >= 0; i--) {
			tell(&model->policies[i], "alloc_failed", 0, &facts, 0);
		}
	}
	return result;
}

int model_deallocate(struct model *model, struct model_item *item, enum model_call call,
		     uint32_t flags)
{
	return give(model, item, call, flags, -1);
}

static int tell_reset(struct model *model, int device, int kind, uint64_t bytes)
{
	uint64_t total = model->totals[device][kind];
	struct facts facts = {
		.kind = kind, .device = device, .requested = bytes, .charged = bytes,
		.before = total, .after = total - bytes, .flags = MODEL_CONTEXT_END,
	};
	int result = 0;

	model->totals[device][kind] = total - bytes;
	for (int i = model->count - 1; i >= 0; i--) {
		struct model_policy *policy = &model->policies[i];

		if (watched(model, kind) && crosses_down(policy, &facts)) {
			int status = decide_status(draw(policy, DECIDE_STATUS),
						   policy->percent[DECIDE_STATUS]);

			tell(policy, "dealloc_threshold", facts.after, &facts, status);
			result = result == 0 ? as_result(status) : result;
		}
	}
	return result;
}

int model_reset(struct model *model, struct model_item *items, int count, int device)
{
	int result = 0;

	for (int kind = MODEL_DEVICE; kind < MODEL_KINDS; kind++) {
		uint64_t bytes = model->lost[device][kind];

		model->lost[device][kind] = 0;
		for (int i = 0; i < count; i++) {
			if (items[i].live && items[i].context_bound && items[i].device == device &&
			    items[i].kind == kind) {
				items[i].live = false;
				bytes += items[i].charged;
			}
		}
		if (bytes != 0) {
			int status = tell_reset(model, device, kind, bytes);

			result = result == 0 ? status : result;
		}
	}
	for (int i = model->count - 1; i >= 0; i--) {
		line(&model->policies[i], "context_ended device=%d known=1\n", device);
	}
	return result;
}
