/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a launch of a graph makes live and gives back. It is one call for many allocations, and
 * done when it has succeeded: no veto undoes it (D-06). So the budget is claimed, and policies are
 * asked, beforehand and for all that becomes live of a kind on a device.
 */
#include "bodies.h"
#include "budget.h"
#include "driver_door.h"
#include "graph_books.h"
#include "ledger.h"
#include "result.h"
#include "wants.h"

typedef CUresult (*launch_fn)(CUgraphExec, CUstream);

/* Groups beyond these, which no graph has been seen to have, are counted and not limited. */
enum { STEPS = 16, GROUPS = 4 };

/* What a launch changes of one kind on one device. */
struct group {
	int device;
	uint8_t kind;
	bool admitted;
	uint64_t taken;   /* what becomes live */
	uint64_t freed;
	uint64_t claimed; /* of the budget, and not yet anybody's */
	struct cw_budget *budget;
};

struct launch {
	enum cw_hook_id hook;
	const void *site;
	CUgraphExec exec;
	CUstream stream;
	bool per_thread;
	CUresult told;  /* the first status of a dealloc-threshold callback */
	unsigned int count;
	struct group groups[GROUPS];
};

static void request_of(struct cw_request *request, const struct launch *launch, int device,
		       uint8_t kind, uint64_t bytes)
{
	cw_driver_request(request, launch->hook, launch->site, NULL, bytes);
	request->device = device;
	request->kind = kind;
	request->stream = launch->stream;
	request->flags = CUWEIR_EVENT_STREAM_ORDERED |
			 (launch->per_thread ? CUWEIR_EVENT_PER_THREAD : 0u);
}

/* NULL where there is no room for one more. */
static struct group *group_of(struct launch *launch, int device, uint8_t kind)
{
	struct group *group;

	for (unsigned int i = 0; i < launch->count; i++) {
		group = &launch->groups[i];
		if (group->device == device && group->kind == kind) {
			return group;
		}
	}
	if (launch->count == GROUPS) {
		return NULL;
	}
	group = &launch->groups[launch->count++];
	*group = (struct group){
		.device = device, .kind = kind, .budget = cw_budget_of(device, kind),
	};
	return group;
}

static void for_steps(struct launch *launch, bool frees,
		      void (*visit)(struct launch *launch, const struct cw_graph_step *step))
{
	struct cw_graph_step steps[STEPS];
	uint64_t cursor = 0;
	size_t count;

	do {
		count = cw_graph_steps(launch->exec, frees, &cursor, steps, STEPS);
		for (size_t i = 0; i < count; i++) {
			visit(launch, &steps[i]);
		}
	} while (count == STEPS);
}

/* ---- before ------------------------------------------------------------------------------ */

/* What is live already is left alone, or freed first; or the driver refuses the launch for it. */
static void foresee_alloc(struct launch *launch, const struct cw_graph_step *step)
{
	struct group *group = group_of(launch, step->device, step->kind);
	struct cw_record live;

	if (group != NULL && !cw_ledger_find(step->pointer, &live)) {
		group->taken += step->bytes;
	}
}

static void foresee_free(struct launch *launch, const struct cw_graph_step *step)
{
	struct cw_record live;
	const struct cw_origin *origin;
	struct group *group;

	if (cw_ledger_find(step->pointer, &live)) {
		origin = cw_origin_get(live.origin);
		group = group_of(launch, origin->device, origin->kind);
		if (group != NULL) {
			group->freed += live.size;
		}
	}
}

static CUresult ask_for(struct launch *launch, struct group *group)
{
	struct cw_request request;
	uint64_t more = group->taken > group->freed ? group->taken - group->freed : 0;
	CUresult result;

	if (more == 0) {
		return CUDA_SUCCESS;
	}
	request_of(&request, launch, group->device, group->kind, more);
	result = cw_ask_for_launch(&request);
	if (result == CUDA_SUCCESS && !cw_budget_claim(group->budget, more)) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result != CUDA_SUCCESS) {
		cw_refuse_launch(&request, result, true);
		return result;
	}
	group->admitted = true;
	group->claimed = group->budget != NULL ? more : 0;
	return CUDA_SUCCESS;
}

static CUresult ask(struct launch *launch)
{
	CUresult result = CUDA_SUCCESS;

	for_steps(launch, false, foresee_alloc);
	for_steps(launch, true, foresee_free);
	for (unsigned int i = 0; i < launch->count && result == CUDA_SUCCESS; i++) {
		result = ask_for(launch, &launch->groups[i]);
	}
	return result;
}

/* `failed`: nothing has become live, and who has admitted it hears of that. */
static void end_claims(struct launch *launch, CUresult failed)
{
	struct cw_request request;

	for (unsigned int i = 0; i < launch->count; i++) {
		struct group *group = &launch->groups[i];

		cw_budget_return(group->budget, group->claimed);
		if (failed != CUDA_SUCCESS && group->admitted) {
			request_of(&request, launch, group->device, group->kind,
				   group->taken - group->freed);
			cw_refuse_launch(&request, failed, false);
		}
	}
}

/* ---- after ------------------------------------------------------------------------------- */

/* The claim stays until all has been counted, so that no other thread has it in between. */
static void forget(struct launch *launch, const struct cw_graph_step *step)
{
	struct cw_request request;
	struct group *group;
	CUresult told;

	request_of(&request, launch, step->device, step->kind, step->bytes);
	request.pointer = step->pointer;
	request.keep_claim = true;
	told = cw_forget(&request);
	launch->told = launch->told == CUDA_SUCCESS ? told : launch->told;
	if (request.charged == 0 || request.owner != 0) {
		return;
	}
	group = group_of(launch, request.device, request.kind);
	if (group != NULL && group->budget != NULL) {
		group->claimed += request.charged;
	} else {
		cw_budget_return(cw_budget_of(request.device, request.kind), request.charged);
	}
}

static void adopt(struct launch *launch, const struct cw_graph_step *step)
{
	struct group *group = group_of(launch, step->device, step->kind);
	struct cw_request request;

	request_of(&request, launch, step->device, step->kind, step->bytes);
	request.pointer = step->pointer;
	if (group != NULL) {
		request.claimed = group->claimed < step->bytes ? group->claimed : step->bytes;
		group->claimed -= request.claimed;
	}
	cw_adopt(&request);
}

CUresult cw_graph_launch(enum cw_hook_id hook, const void *site, CUgraphExec exec,
			 CUstream stream)
{
	launch_fn real = (launch_fn)cw_real_of(hook);
	struct launch launch = { .hook = hook, .site = site, .exec = exec, .stream = stream };
	CUresult result;

	if (CW_UNLIKELY(real == NULL)) {
		return CUDA_ERROR_NOT_FOUND;
	}
	launch.per_thread = cw_hooks[hook].stream == CW_PTDS;
	/* Into a capture it is a node of that graph, and nothing runs. */
	if (CW_LIKELY(!cw_graph_exec_known(exec)) || !cw_driver_door_open() ||
	    cw_stream_is_capturing(stream, launch.per_thread)) {
		return cw_want_note(hook, real(exec, stream));
	}
	result = ask(&launch);
	if (result == CUDA_SUCCESS) {
		result = cw_want_note(hook, real(exec, stream));
		if (result == CUDA_ERROR_OUT_OF_MEMORY) {
			cw_result_refused();
		}
	}
	if (result != CUDA_SUCCESS) {
		end_claims(&launch, result);
		return result;
	}
	for_steps(&launch, true, forget);
	if (cw_graph_frees_on_launch(exec)) {
		for_steps(&launch, false, forget);
	}
	for_steps(&launch, false, adopt);
	end_claims(&launch, CUDA_SUCCESS);
	return launch.told;
}
