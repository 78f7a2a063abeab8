/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs under random chains, held against the model in model.c,
 * D-03, D-05 to D-08, D-10, D-12, D-13, D-17; P-22,
 * P-50. Each case is told by its seed: CUWEIR_TEST_SEED begins elsewhere, CUWEIR_TEST_CASES
 * makes more of them.
 */
#include "harness.h"
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 160, SCRIPT = 1 << 16, DEFAULT_CASES = 24 };

struct program {
	struct model model;
	uint64_t seed;
	uint64_t draws;
	bool resets;     /* with ends of contexts, and then without streams of its own */
	struct model_item items[MODEL_ITEMS];
	char script[SCRIPT];
	size_t length;
	char texts[MODEL_POLICIES][MODEL_TEXT];
	char chain[MODEL_POLICIES][256];
	char fail[1024];
};

static uint64_t below(struct program *program, uint64_t limit)
{
	return decide_draw(program->seed, DECIDE_KINDS, program->draws++) % limit;
}

__attribute__((format(printf, 2, 3)))
static void say(struct program *program, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	program->length += (size_t)vsnprintf(program->script + program->length,
					     SCRIPT - program->length, format, arguments);
	va_end(arguments);
	assert_true(program->length < SCRIPT);
}

static uint64_t a_size(struct program *program)
{
	switch (below(program, 4)) {
	case 0:
		return 1 + below(program, 64);
	case 1:
		return (1 + below(program, 16)) << 12;
	default:
		return 1 + below(program, DECIDE_RANGE / 8);
	}
}

static const char *a_stream(struct program *program, int device)
{
	static const char *const names[] = { "s0", "s1" };

	switch (below(program, 4)) {
	case 0:
		return "0";
	case 1:
		return "ptds";
	default:
		return program->resets ? "0" : names[device];
	}
}

static void allocate(struct program *program, int index)
{
	struct model_item *item = &program->items[index];
	uint64_t size = a_size(program);
	uint64_t height = 1 + below(program, 7);
	char what[64];
	const char *stream;

	*item = (struct model_item){ .context_bound = true, .device = program->model.device,
				     .kind = MODEL_DEVICE, .requested = size, .charged = size,
				     .undo = MODEL_FREE };
	switch (below(program, 7)) {
	case 0:
		item->kind = MODEL_MANAGED;
		snprintf(what, sizeof(what), "managed n%d %llu", index, (unsigned long long)size);
		break;
	case 1:
		item->kind = MODEL_HOST;
		item->undo = MODEL_FREE_HOST;
		snprintf(what, sizeof(what), "%s n%d %llu",
			 below(program, 2) == 0 ? "host" : "hostalloc", index,
			 (unsigned long long)size);
		break;
	case 2:
		item->requested = size * height;
		item->charged = (size + 511) / 512 * 512 * height;
		snprintf(what, sizeof(what), "pitch n%d %llu %llu", index,
			 (unsigned long long)size, (unsigned long long)height);
		break;
	case 3:
	case 4:
		item->context_bound = false;
		item->undo = MODEL_FREE_ASYNC;
		item->flags = MODEL_STREAM_ORDERED;
		if (!program->resets) {
			item->device = (int)below(program, MODEL_DEVICES);
		}
		stream = a_stream(program, item->device);
		if (stream[0] != 's') {
			item->device = program->model.device;
		}
		snprintf(what, sizeof(what), "async n%d %llu %s", index,
			 (unsigned long long)size, stream);
		break;
	default:
		snprintf(what, sizeof(what), "alloc n%d %llu", index, (unsigned long long)size);
		break;
	}
	say(program, "expect %d %s; ", model_allocate(&program->model, item), what);
}

static void give_back(struct program *program, int index)
{
	struct model_item *item = &program->items[index];
	bool on_stream = item->kind == MODEL_DEVICE && below(program, 3) == 0;
	enum model_call call = item->kind == MODEL_HOST ? MODEL_FREE_HOST
			       : on_stream		? MODEL_FREE_ASYNC
							: MODEL_FREE;
	int status = model_deallocate(&program->model, item, call,
				      on_stream ? MODEL_STREAM_ORDERED : 0);

	if (on_stream) {
		say(program, "expect %d freeasync n%d %s; ", status, index,
		    a_stream(program, item->device));
	} else {
		say(program, "expect %d free n%d; ", status, index);
	}
}

static void move(struct program *program)
{
	int device = (int)below(program, MODEL_DEVICES);

	if (program->resets && below(program, 2) == 0) {
		say(program, "expect %d reset %d; ",
		    model_reset(&program->model, program->items, MODEL_ITEMS, device), device);
	}
	program->model.device = device;
	say(program, "device %d; ", device);
}

static void step(struct program *program)
{
	int index = (int)below(program, MODEL_ITEMS);

	if (program->items[index].live) {
		give_back(program, index);
	} else {
		allocate(program, index);
	}
}

/* A stream belongs to the device that is current when it is first used. */
static void make_streams(struct program *program)
{
	static const char *const streams[] = { "s0", "s1" };

	for (int device = MODEL_DEVICES - 1; device >= 0; device--) {
		struct model_item item = { .device = device, .kind = MODEL_DEVICE, .requested = 1,
					   .charged = 1, .flags = MODEL_STREAM_ORDERED,
					   .undo = MODEL_FREE_ASYNC };

		say(program, "device %d; ", device);
		program->model.device = device;
		if (program->resets) {
			continue;
		}
		say(program, "expect %d async w%d 1 %s; ",
		    model_allocate(&program->model, &item), device, streams[device]);
		if (item.live) {
			say(program, "expect %d freeasync w%d %s; ",
			    model_deallocate(&program->model, &item, MODEL_FREE_ASYNC,
					     MODEL_STREAM_ORDERED),
			    device, streams[device]);
		}
	}
}

static void write_program(struct program *program)
{
	make_streams(program);
	for (int i = 0; i < STEPS; i++) {
		uint64_t what = below(program, 16);

		if (what == 0) {
			move(program);
		} else if (what == 1) {
			say(program, "thread { ");
			for (uint64_t n = below(program, 4); n > 0; n--) {
				step(program);
			}
			say(program, "}; join; ");
		} else {
			step(program);
		}
	}
}

static void choose_failures(struct program *program)
{
	static const char *const names[MODEL_CALLS] = { "alloc", "cuMemFree", "cuMemFreeAsync",
							"cuMemFreeHost" };
	static const int codes[] = { 2, 2, 2, 46, 801, 999 };
	struct model *model = &program->model;
	size_t length = (size_t)snprintf(program->fail, sizeof(program->fail),
					 "CUWEIR_SIM_FAIL=");

	model->rule_count = (int)below(program, MODEL_RULES);
	for (int i = 0; i < model->rule_count; i++) {
		struct model_rule *rule = &model->rules[i];

		rule->call = below(program, 2) == 0 ? MODEL_ALLOC
						    : (enum model_call)below(program, MODEL_CALLS);
		rule->nth = 1 + below(program, rule->call == MODEL_ALLOC ? STEPS : STEPS / 4);
		rule->code = rule->call == MODEL_ALLOC ? codes[below(program, 6)] : 400;
		length += (size_t)snprintf(program->fail + length, sizeof(program->fail) - length,
					   "%s%s:%llu=%d", i > 0 ? "," : "", names[rule->call],
					   (unsigned long long)rule->nth, rule->code);
	}
}

static size_t a_count(struct program *program)
{
	static const size_t counts[] = { 0, 1, 2, 8, 10000 };

	return counts[below(program, 5)];
}

static void make_list(struct model_policy *policy, int which, size_t count)
{
	policy->count[which] = count;
	policy->list[which] = calloc(count + 1, sizeof(uint64_t));
	assert_non_null(policy->list[which]);
	for (size_t i = 0; i < count; i++) {
		policy->list[which][i] = decide_threshold(
			decide_draw(policy->seed, which == 0 ? DECIDE_UP : DECIDE_DOWN, i));
	}
}

static void choose_chain(struct program *program)
{
	struct model *model = &program->model;

	model->count = 1 + (int)below(program, MODEL_POLICIES);
	model->budget = below(program, 3) == 0 ? 1 + below(program, DECIDE_RANGE) : 0;
	for (int i = 0; i < model->count; i++) {
		struct model_policy *policy = &model->policies[i];
		unsigned int *percent = policy->percent;

		policy->text = program->texts[i];
		policy->seed = program->seed * MODEL_POLICIES + (uint64_t)i;
		make_list(policy, 0, a_count(program));
		make_list(policy, 1, a_count(program));
		for (int what = DECIDE_VETO; what <= DECIDE_SWITCH; what++) {
			percent[what] = (unsigned int)below(program, 3) * 15;
		}
		percent[DECIDE_RETRY] *= 2;
		percent[DECIDE_ADMIT] /= 3;
		/* What goes with a context, a policy would have to forget. */
		percent[DECIDE_NEST] = program->resets ? 0 : (unsigned int)below(program, 2) * 30;
		model->nests |= percent[DECIDE_NEST] != 0;
		snprintf(program->chain[i], sizeof(program->chain[i]),
			 "seed=%llu,up=%zu,down=%zu,veto=%u,status=%u,retry=%u,admit=%u,"
			 "switch=%u,nest=%u,budget=%llu",
			 (unsigned long long)policy->seed, policy->count[0], policy->count[1],
			 percent[DECIDE_VETO], percent[DECIDE_STATUS], percent[DECIDE_RETRY],
			 percent[DECIDE_ADMIT], percent[DECIDE_SWITCH], percent[DECIDE_NEST],
			 (unsigned long long)model->budget);
	}
}

static void forget(struct program *program)
{
	for (int i = 0; i < program->model.count; i++) {
		free(program->model.policies[i].list[0]);
		free(program->model.policies[i].list[1]);
	}
	free(program);
}

#define SHOWN "admit alloc_threshold dealloc_threshold alloc_failure alloc_failed allocated " \
	      "context_ended"

static void run_case(uint64_t seed)
{
	static const char *const plugins[] = { "deciding", "deciding_plain", "deciding_minimal" };
	struct program *program = calloc(1, sizeof(*program));
	struct model *model = &program->model;
	char row[64];
	struct run one = { .row = row, .script = program->script, .out = NULL };
	uint64_t plugin;

	assert_non_null(program);
	snprintf(row, sizeof(row), "CUWEIR_TEST_SEED=%llu", (unsigned long long)seed);
	program->seed = seed;
	program->resets = below(program, 3) == 0;
	plugin = below(program, 3);
	model->all_kinds = plugin != 1;
	model->minimal = plugin == 2;
	model->debug = below(program, 2) == 0;
	model->silent = program->resets;
	one.environment[2] = model->debug ? "CUWEIR_DEBUG=1" : "CUWEIR_DEBUG=0";
	choose_chain(program);
	choose_failures(program);
	write_program(program);
	one.plugin = plugins[plugin];
	one.ways = model->nests ? HEARD_WAYS : ALL_WAYS;
	one.shown = program->resets ? SHOWN : SHOWN " deallocated before_free";
	one.environment[0] = "CUWEIR_SIM_DEVICES=2";
	one.environment[1] = model->rule_count > 0 ? program->fail : "CUWEIR_REPORT=0";
	for (int i = 0; i < model->count; i++) {
		one.policies[i] = program->chain[i];
		one.events[i] = program->texts[i];
	}
	run(&one);
	forget(program);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void random_programs(void **state)
{
	uint64_t first = number_of("CUWEIR_TEST_SEED", 1);
	uint64_t cases = number_of("CUWEIR_TEST_CASES", DEFAULT_CASES);

	(void)state;
	for (uint64_t i = 0; i < cases; i++) {
		run_case(first + i);
	}
	printf("seeds %llu to %llu\n", (unsigned long long)first,
	       (unsigned long long)(first + cases - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
