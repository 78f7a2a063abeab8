/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of cuweir.h. */
#include "api.h"

#include "chain.h"
#include "common.h"
#include "cuda_api.h"
#include "direct.h"
#include "lifecycle.h"
#include "lock.h"
#include "program.h"
#include "reservation.h"
#include "scopes.h"
#include "version.h"

/* The services of the place that the program's own handler has in the chain. */
static const struct cuweir_host *host(void)
{
	return cw_ready() && cw_chain.policies != NULL
		       ? &cw_chain.policies[CW_PLACE_PROGRAM].host : NULL;
}

#define SITE __builtin_return_address(0)

CUWEIR_EXPORT const char *cuweir_get_version(void)
{
	return CW_VERSION;
}

CUWEIR_EXPORT bool cuweir_hears_cuda(void)
{
	return !cw_direct_alone() && cw_ready();
}

/* T-13 to T-15: what CUDA's allocations have anyway. */
static bool can_align(uint64_t alignment)
{
	return (alignment & (alignment - 1)) == 0 && alignment <= 256;
}

static void *allocate(uint64_t size, uint64_t alignment, uint32_t flags, bool ordered,
		      CUstream stream, const void *site)
{
	struct cw_direct direct = {
		.size = size,
		.alignment = (uint16_t)alignment,
		.ordered = ordered,
		.resizable = (flags & CUWEIR_ALLOCATOR_RESIZABLE) != 0,
		.stream = stream,
		.site = site,
	};

	if (size == 0 || !can_align(alignment) || host() == NULL) {
		return NULL;
	}
	return cw_direct_allocate(&direct) == CUDA_SUCCESS ? direct.memory : NULL;
}

CUWEIR_EXPORT void *cuweir_allocate_async(uint64_t size, uint64_t alignment, uint32_t flags,
					  void *stream)
{
	return allocate(size, alignment, flags, true, stream, SITE);
}

CUWEIR_EXPORT void *cuweir_allocate(uint64_t size, uint64_t alignment, uint32_t flags)
{
	return allocate(size, alignment, flags, false, NULL, SITE);
}

CUWEIR_EXPORT bool cuweir_deallocate_async(void *memory, void *stream)
{
	return memory == NULL || (host() != NULL &&
				  cw_direct_free(memory, true, stream, SITE) == CUDA_SUCCESS);
}

CUWEIR_EXPORT bool cuweir_deallocate(void *memory)
{
	return memory == NULL || (host() != NULL &&
				  cw_direct_free(memory, false, NULL, SITE) == CUDA_SUCCESS);
}

CUWEIR_EXPORT void *cuweir_reallocate(void *memory, uint64_t alignment, uint64_t new_size)
{
	if (memory == NULL || new_size == 0 || !can_align(alignment) || host() == NULL) {
		return NULL;
	}
	return cw_direct_reallocate(memory, alignment, new_size, SITE);
}

CUWEIR_EXPORT int cuweir_set_event_handler(const struct cuweir_event_handler *handler, void *state,
					   bool enable_debug)
{
	if (host() == NULL) {
		return CUWEIR_ERROR_NOT_INITIALIZED;
	}
	if (handler == NULL) {
		cw_program_clear();
		return CUWEIR_SUCCESS;
	}
	return cw_program_set(handler, state, enable_debug);
}

CUWEIR_EXPORT int cuweir_clear_event_handler(void)
{
	if (host() == NULL) {
		return CUWEIR_ERROR_NOT_INITIALIZED;
	}
	cw_program_clear();
	return CUWEIR_SUCCESS;
}

CUWEIR_EXPORT bool cuweir_get_debug(void)
{
	return host() != NULL && host()->get_debug(host());
}

/* The rest: what the library is not there for answers the one, else the other. */
#define SERVICE(name, call, ...)                                                                   \
	CUWEIR_EXPORT int name(__VA_ARGS__)                                                        \
	{                                                                                          \
		return host() != NULL ? (call) : (int)CUWEIR_ERROR_NOT_INITIALIZED;                \
	}

SERVICE(cuweir_set_debug, host()->set_debug(host(), on), bool on)
SERVICE(cuweir_get_totals, host()->totals(host(), device, kind, ret_totals), int device, int kind,
	struct cuweir_totals *ret_totals)
SERVICE(cuweir_reset_scoped_peak, cw_scope_reset(device, kind, value), int device, int kind,
	uint64_t value)
SERVICE(cuweir_get_scoped_peak, cw_scope_peak(device, kind, ret_peak), int device, int kind,
	uint64_t *ret_peak)
SERVICE(cuweir_push_scope, cw_scope_push(device, kind), int device, int kind)
SERVICE(cuweir_pop_scope, cw_scope_pop(device, kind, ret_scope), int device, int kind,
	struct cuweir_scope *ret_scope)
SERVICE(cuweir_walk, host()->walk(host(), visit, argument),
	bool (*visit)(const struct cuweir_record *record, void *argument), void *argument)
SERVICE(cuweir_set_budget, host()->set_budget(host(), device, kinds, bytes), int device,
	uint32_t kinds, uint64_t bytes)
SERVICE(cuweir_get_budget,
	host()->get_budget(host(), device, ret_bytes, ret_used, ret_reserved), int device,
	uint64_t *ret_bytes, uint64_t *ret_used, uint64_t *ret_reserved)
SERVICE(cuweir_reservation_open, cw_reservation_open(device, ret_reservation), int device,
	struct cuweir_reservation **ret_reservation)
SERVICE(cuweir_reservation_add, cw_reservation_add(reservation, bytes),
	struct cuweir_reservation *reservation, uint64_t bytes)
SERVICE(cuweir_reservation_reserve, cw_reservation_add(reservation, bytes),
	struct cuweir_reservation *reservation, uint64_t bytes)
SERVICE(cuweir_reservation_allocate_buffer,
	cw_reservation_allocate_buffer(reservation, stream, ret_memory, SITE),
	struct cuweir_reservation *reservation, void *stream, void **ret_memory)

CUWEIR_EXPORT uint64_t
cuweir_reservation_get_size(const struct cuweir_reservation *reservation)
{
	return cw_reservation_get_size(reservation);
}

CUWEIR_EXPORT bool cuweir_reservation_is_used(const struct cuweir_reservation *reservation)
{
	return cw_reservation_is_used(reservation);
}

CUWEIR_EXPORT bool cuweir_reservation_is_closed(const struct cuweir_reservation *reservation)
{
	return cw_reservation_is_closed(reservation);
}

CUWEIR_EXPORT int cuweir_reservation_close(struct cuweir_reservation *reservation)
{
	return cw_reservation_close(reservation);
}

CUWEIR_EXPORT void cuweir_reservation_destroy(struct cuweir_reservation *reservation)
{
	cw_reservation_destroy(reservation);
}

/* Filled in when it is asked for: as a constant it would be a relocation for each function. */
static void fill(struct cuweir_api *api)
{
#define CW_API(result, name, failed, args, ...) api->name = name;
#define CW_API_VOID(name, args, ...) api->name = name;
#include "api.def"
	api->struct_size = sizeof(*api);
}

CUWEIR_EXPORT const struct cuweir_api *cuweir_api_v1(bool alone)
{
	static struct cuweir_api api;
	static struct cw_lock filling;

	cw_lock_acquire(&filling);
	if (api.struct_size == 0) {
		fill(&api);
	}
	cw_lock_release(&filling);
	if (alone) {
		cw_direct_set_alone();
	}
	return &api;
}
