/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <stddef.h>
#include <string.h>

#include "budget.h"
#include "config.h"
#include "counts.h"
#include "driver_pool.h"
#include "ledger.h"
#include "message.h"
#include "origins.h"
#include "reservation.h"
#include "resolve.h"
#include "serve.h"
#include "stacks.h"
#include "thread.h"
#include "totals.h"
#include "version.h"
#include "wait.h"
#include "where.h"

uint32_t cw_debug_;

void cw_debug_set(bool on)
{
	if (on) {
		__atomic_fetch_or(&cw_debug_, 1u, __ATOMIC_RELAXED);
	} else {
		__atomic_fetch_and(&cw_debug_, ~1u, __ATOMIC_RELAXED);
	}
}

void cw_debug_always(void)
{
	__atomic_fetch_or(&cw_debug_, 2u, __ATOMIC_RELAXED);
}

void cw_debug_program(bool on)
{
	if (on) {
		__atomic_fetch_or(&cw_debug_, 4u, __ATOMIC_RELAXED);
	} else {
		__atomic_fetch_and(&cw_debug_, ~4u, __ATOMIC_RELAXED);
	}
}

void cw_event_fill(struct cuweir_event *event, const struct cw_request *request)
{
	/* Field by field: a copy of what is mostly not zero took twice the instructions. */
	event->struct_size = sizeof(*event);
	event->call = cw_hook_base(request->call);
	event->kind = request->kind;
	event->device = request->device;
	event->context = request->context;
	event->stream = request->stream;
	event->pointer = (void *)(uintptr_t)request->pointer;
	event->requested = request->requested;
	event->charged = request->charged;
	event->total_before = request->before;
	event->total_after = request->after;
	event->thread = cw_thread_id();
	event->retry_count = (uint32_t)request->retry_count;
	event->status = request->status;
	event->flags = request->flags;
	event->reserved0 = 0;
	event->call_site = request->site;
	for (size_t i = 0; i < sizeof(event->reserved) / sizeof(event->reserved[0]); i++) {
		event->reserved[i] = 0;
	}
}

void cw_record_fill(struct cuweir_record *ret, const struct cw_record *record)
{
	const struct cw_origin *origin = cw_origin_get(record->origin);

	*ret = (struct cuweir_record){
		.struct_size = sizeof(*ret),
		.call = cw_hook_base(origin->hook),
		.kind = origin->kind,
		.device = origin->device,
		.context = (void *)(uintptr_t)origin->context,
		.pointer = (void *)(uintptr_t)cw_key_handle(record->address),
		.charged = record->size,
		.call_site = (const void *)(uintptr_t)cw_stack_frame(origin->site, 0),
	};
}

static int host_log(const struct cuweir_host *host, const char *line)
{
	(void)host;
	if (line == NULL) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	cw_log_line(line, strlen(line));
	return CUWEIR_SUCCESS;
}

static int host_refuse(const struct cuweir_host *host, const char *reason)
{
	struct cw_policy *policy = host->instance;

	if (reason != NULL) {
		cw_format(policy->refusal, sizeof(policy->refusal), "%s", reason);
	}
	return CUWEIR_ERROR_INVALID_VALUE;
}

static int host_set_callbacks(const struct cuweir_host *host, const struct cuweir_policy *table)
{
	return cw_chain_set_callbacks(host->instance, table);
}

static int host_totals(const struct cuweir_host *host, int device, int kind,
		       struct cuweir_totals *ret_totals)
{
	struct cuweir_totals totals = { 0 };
	unsigned int index = (unsigned int)kind;
	size_t size;

	(void)host;
	if (ret_totals == NULL || kind <= CUWEIR_KIND_NONE || kind >= CUWEIR_KIND_COUNT ||
	    device < -1 || device >= CW_TOTAL_DEVICES) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	size = ret_totals->struct_size;
	if (size < offsetof(struct cuweir_totals, reserved)) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	if (index == CUWEIR_KIND_POOL) {
		cw_pool_ask_reserved(device);
	}
	totals.struct_size = size;
	totals.current = cw_total_current(device, index);
	totals.peak = cw_total_peak(device, index);
	totals.held = cw_total_held(device, index);
	cw_counts_read(device, index, &totals.allocations, &totals.frees);
	memcpy(ret_totals, &totals, size < sizeof(totals) ? size : sizeof(totals));
	return CUWEIR_SUCCESS;
}

struct walk {
	bool (*visit)(const struct cuweir_record *record, void *argument);
	void *argument;
};

static bool visit_record(const struct cw_record *record, void *argument)
{
	const struct walk *walk = argument;
	struct cuweir_record shown;

	cw_record_fill(&shown, record);
	return walk->visit(&shown, walk->argument);
}

static int host_walk(const struct cuweir_host *host,
		     bool (*visit)(const struct cuweir_record *record, void *argument),
		     void *argument)
{
	struct walk walk = { visit, argument };

	(void)host;
	if (visit == NULL) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	cw_ledger_walk(visit_record, &walk);
	return CUWEIR_SUCCESS;
}

static int host_wait_for_free(const struct cuweir_host *host, uint64_t timeout_ns)
{
	const struct cw_request *request = cw_thread.request;
	bool came;

	(void)host;
	if (request != NULL && request->listening) {
		came = cw_wait(request->frees_seen, timeout_ns);
	} else {
		uint32_t seen = cw_wait_listen();

		came = cw_wait(seen, timeout_ns);
		cw_wait_leave();
	}
	return came ? CUWEIR_SUCCESS : CUWEIR_ERROR_NOT_READY;
}

static int host_set_debug(const struct cuweir_host *host, bool on)
{
	(void)host;
	cw_debug_set(on);
	return CUWEIR_SUCCESS;
}

static bool host_get_debug(const struct cuweir_host *host)
{
	(void)host;
	return cw_debug();
}

static int host_driver_function(const struct cuweir_host *host, const char *symbol,
				void **ret_function)
{
	void *function;

	(void)host;
	if (symbol == NULL || ret_function == NULL) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	/* The library that holds one of the driver's functions holds them all. */
	function = cw_function_beside(cw_real_of(CW_HOOK_cuMemAlloc_v2), symbol);
	if (function == NULL) {
		return CUWEIR_ERROR_NOT_FOUND;
	}
	*ret_function = function;
	return CUWEIR_SUCCESS;
}

static const struct cuweir_event *host_current_event(const struct cuweir_host *host)
{
	(void)host;
	return cw_thread.event;
}

static int host_set_budget(const struct cuweir_host *host, int device, uint32_t kinds,
			   uint64_t bytes)
{
	const struct cw_policy *policy = host->instance;

	return cw_budget_set((uint32_t)(policy - cw_chain.policies), device, kinds, bytes);
}

static int host_get_budget(const struct cuweir_host *host, int device, uint64_t *ret_bytes,
			   uint64_t *ret_used, uint64_t *ret_reserved)
{
	const struct cw_budget *budget = cw_budget_of(device, CUWEIR_KIND_DEVICE);
	uint64_t taken;
	uint64_t reserved;

	(void)host;
	if (budget == NULL || __atomic_load_n(&budget->limit, __ATOMIC_RELAXED) == UINT64_MAX) {
		return CUWEIR_ERROR_NOT_FOUND;
	}
	reserved = __atomic_load_n(&budget->reserved, __ATOMIC_RELAXED);
	taken = __atomic_load_n(&budget->taken, __ATOMIC_RELAXED);
	if (ret_bytes != NULL) {
		*ret_bytes = __atomic_load_n(&budget->limit, __ATOMIC_RELAXED);
	}
	if (ret_used != NULL) {
		*ret_used = taken > reserved ? taken - reserved : 0;
	}
	if (ret_reserved != NULL) {
		*ret_reserved = reserved;
	}
	return CUWEIR_SUCCESS;
}

static int host_reservation_open(const struct cuweir_host *host, int device,
				 struct cuweir_reservation **ret_reservation)
{
	(void)host;
	return cw_reservation_open(device, ret_reservation);
}

static int host_reservation_allocate_buffer(struct cuweir_reservation *reservation, void *stream,
					    void **ret_memory)
{
	return cw_reservation_allocate_buffer(reservation, stream, ret_memory,
					      __builtin_return_address(0));
}

typedef CUresult (*get_pool_fn)(CUmemoryPool *, CUdevice);
typedef CUresult (*trim_to_fn)(CUmemoryPool, size_t);
typedef CUresult (*trim_graphs_fn)(CUdevice);

/* What a function of the driver's answers; a driver too old for pools or graphs has none. */
static int trim_pool(enum cw_hook_id which, int device)
{
	get_pool_fn get_pool = (get_pool_fn)cw_real_of(which);
	trim_to_fn trim_to = (trim_to_fn)cw_real_of(CW_HOOK_cuMemPoolTrimTo);
	CUmemoryPool pool = NULL;
	CUresult result;

	if (get_pool == NULL || trim_to == NULL) {
		return CUWEIR_ERROR_NOT_SUPPORTED;
	}
	result = get_pool(&pool, device);
	return (int)(result == CUDA_SUCCESS ? trim_to(pool, 0) : result);
}

static int host_trim(const struct cuweir_host *host, int device)
{
	trim_graphs_fn trim_graphs = (trim_graphs_fn)cw_real_of(CW_HOOK_cuDeviceGraphMemTrim);
	int result;

	(void)host;
	if (cw_capture_open()) {
		return CUWEIR_ERROR_NOT_PERMITTED;
	}
	result = trim_pool(CW_HOOK_cuDeviceGetMemPool, device);
	trim_pool(CW_HOOK_cuDeviceGetDefaultMemPool, device);
	cw_pool_trim_made(device);
	if (trim_graphs != NULL) {
		trim_graphs(device);
	}
	return result;
}

void cw_host_init(struct cw_policy *policy)
{
	policy->host = (struct cuweir_host){
		.struct_size = sizeof(policy->host),
		.version = CUWEIR_POLICY_VERSION,
		.flags = cw_config.trial ? CUWEIR_HOST_TRIAL : 0,
		.shim_version = CW_VERSION,
		.instance = policy,
		.log = host_log,
		.refuse = host_refuse,
		.totals = host_totals,
		.walk = host_walk,
		.wait_for_free = host_wait_for_free,
		.set_debug = host_set_debug,
		.get_debug = host_get_debug,
		.driver_function = host_driver_function,
		.current_event = host_current_event,
		.set_budget = host_set_budget,
		.get_budget = host_get_budget,
		.reservation_open = host_reservation_open,
		.reservation_add = cw_reservation_add,
		.reservation_reserve = cw_reservation_add,
		.reservation_get_size = cw_reservation_get_size,
		.reservation_is_used = cw_reservation_is_used,
		.reservation_is_closed = cw_reservation_is_closed,
		.reservation_allocate_buffer = host_reservation_allocate_buffer,
		.reservation_close = cw_reservation_close,
		.reservation_destroy = cw_reservation_destroy,
		.trim = host_trim,
		.next = &cw_next,
		.next_state = policy,
		.set_callbacks = host_set_callbacks,
		.directory = cw_config.directory,
	};
}
