/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <stddef.h>
#include <string.h>

#include "counts.h"
#include "elf_read.h"
#include "ledger.h"
#include "message.h"
#include "origins.h"
#include "resolve.h"
#include "thread.h"
#include "totals.h"
#include "version.h"
#include "wait.h"

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

void cw_event_fill(struct cuweir_event *event, const struct cw_request *request)
{
	*event = (struct cuweir_event){
		.struct_size = sizeof(*event),
		.call = cw_hooks[request->call].base,
		.kind = request->kind,
		.device = request->device,
		.context = request->context,
		.stream = request->stream,
		.pointer = (void *)(uintptr_t)request->pointer,
		.requested = request->requested,
		.charged = request->charged,
		.total_before = request->before,
		.total_after = request->after,
		.thread = cw_thread_id(),
		.retry_count = (uint32_t)request->retry_count,
		.status = request->status,
		.flags = request->flags,
		.call_site = request->site,
	};
}

void cw_record_fill(struct cuweir_record *ret, const struct cw_record *record)
{
	const struct cw_origin *origin = cw_origin_get(record->origin);

	*ret = (struct cuweir_record){
		.struct_size = sizeof(*ret),
		.call = cw_hooks[origin->hook].base,
		.kind = origin->kind,
		.device = origin->device,
		.context = (void *)(uintptr_t)origin->context,
		.pointer = (void *)(uintptr_t)cw_key_handle(record->address),
		.charged = record->size,
		.call_site = (const void *)(uintptr_t)origin->site,
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
	void *known = cw_real_of(CW_HOOK_cuMemAlloc_v2);
	const struct link_map *driver;
	void *function;

	(void)host;
	if (symbol == NULL || ret_function == NULL) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	/* The library that holds one of the driver's functions holds them all. */
	driver = known != NULL ? cw_handle_of(known) : NULL;
	if (driver == NULL) {
		return CUWEIR_ERROR_NOT_FOUND;
	}
	function = cw_elf_symbol(driver, symbol);
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

static int not_live_budget(const struct cuweir_host *host, int device, uint32_t kinds,
			   uint64_t bytes)
{
	(void)host, (void)device, (void)kinds, (void)bytes;
	return CUWEIR_ERROR_NOT_SUPPORTED;
}

static int not_live_get_budget(const struct cuweir_host *host, int device, uint64_t *ret_bytes,
			       uint64_t *ret_used, uint64_t *ret_reserved)
{
	(void)host, (void)device, (void)ret_bytes, (void)ret_used, (void)ret_reserved;
	return CUWEIR_ERROR_NOT_SUPPORTED;
}

static int not_live_reservation(const struct cuweir_host *host, int device,
				struct cuweir_reservation **ret_reservation)
{
	(void)host, (void)device, (void)ret_reservation;
	return CUWEIR_ERROR_NOT_SUPPORTED;
}

static int not_live_add(struct cuweir_reservation *reservation, uint64_t bytes)
{
	(void)reservation, (void)bytes;
	return CUWEIR_ERROR_NOT_SUPPORTED;
}

static uint64_t not_live_size(const struct cuweir_reservation *reservation)
{
	(void)reservation;
	return 0;
}

static bool not_live_is(const struct cuweir_reservation *reservation)
{
	(void)reservation;
	return false;
}

static int not_live_buffer(struct cuweir_reservation *reservation, void *stream,
			   void **ret_memory)
{
	(void)reservation, (void)stream, (void)ret_memory;
	return CUWEIR_ERROR_NOT_SUPPORTED;
}

static int not_live_close(struct cuweir_reservation *reservation)
{
	(void)reservation;
	return CUWEIR_ERROR_NOT_SUPPORTED;
}

static int not_live_trim(const struct cuweir_host *host, int device)
{
	(void)host, (void)device;
	return CUWEIR_ERROR_NOT_SUPPORTED;
}

static void *no_allocate_async(void *state, uint64_t size, uint64_t alignment, uint32_t flags,
			       void *stream)
{
	(void)state, (void)size, (void)alignment, (void)flags, (void)stream;
	return NULL;
}

static bool no_deallocate_async(void *state, void *memory, void *stream)
{
	(void)state, (void)memory, (void)stream;
	return false;
}

static void *no_reallocate(void *state, void *memory, uint64_t alignment, uint64_t new_size)
{
	(void)state, (void)memory, (void)alignment, (void)new_size;
	return NULL;
}

static void *no_allocate(void *state, uint64_t size, uint64_t alignment, uint32_t flags)
{
	(void)state, (void)size, (void)alignment, (void)flags;
	return NULL;
}

static bool no_deallocate(void *state, void *memory)
{
	(void)state, (void)memory;
	return false;
}

static const struct cuweir_allocator nothing_behind = {
	.struct_size = sizeof(struct cuweir_allocator),
	.allocate_async = no_allocate_async,
	.deallocate_async = no_deallocate_async,
	.reallocate = no_reallocate,
	.allocate = no_allocate,
	.deallocate = no_deallocate,
};

void cw_host_init(struct cw_policy *policy)
{
	policy->host = (struct cuweir_host){
		.struct_size = sizeof(policy->host),
		.version = CUWEIR_POLICY_VERSION,
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
		.set_budget = not_live_budget,
		.get_budget = not_live_get_budget,
		.reservation_open = not_live_reservation,
		.reservation_add = not_live_add,
		.reservation_reserve = not_live_add,
		.reservation_get_size = not_live_size,
		.reservation_is_used = not_live_is,
		.reservation_is_closed = not_live_is,
		.reservation_allocate_buffer = not_live_buffer,
		.reservation_close = not_live_close,
		.trim = not_live_trim,
		.next = &nothing_behind,
	};
}
