/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuweir/cuweir.h - what a program may call when it knows of cuweir: a stream-ordered
 * allocator, an event handler, totals and peaks, reservations under a budget.
 *
 *	#include <cuweir/cuweir.h>
 *
 *	static bool spill(void *state, uint64_t size, int retry_count,
 *			  const struct cuweir_event *event)
 *	{
 *		return give_something_back(size);
 *	}
 *
 *	struct cuweir_event_handler handler = {
 *		.struct_size = sizeof(handler),
 *		.on_alloc_failure = spill,
 *	};
 *	cuweir_set_event_handler(&handler, NULL, false);
 *	void *memory = cuweir_allocate_async(1 << 20, 256, 0, stream);
 *	cuweir_deallocate_async(memory, stream);
 *
 * Link with `pkg-config --libs cuweir`. Under `cuweir run`, or another preload of libcuweir.so,
 * these functions and the program's own CUDA calls share books, budgets and policies. Without
 * it they load libcuweir.so privately: it then hears of no call but these, so that totals,
 * budgets and handlers are about memory that was taken by these functions, and such memory is
 * given back by them, before its context ends. In both cases the program has loaded the CUDA
 * driver, or a runtime that does, and made a context current.
 *
 * Units: bytes, 0 to 2^64-1; devices are CUDA's ordinals, -1 for none; kinds are enum
 * cuweir_kind. An `int` that is a result is a CUresult of cuda.h: CUWEIR_SUCCESS, or
 * CUWEIR_ERROR_NOT_INITIALIZED where cuweir is switched off (CUWEIR_DISABLE=1) or its library
 * is not there, or what the function names. Every function may be called from any thread, at
 * the same time as any other, unless it says otherwise; none raises C++ exceptions or leaves a
 * CUDA error pending. The first call opens the policies of CUWEIR_POLICY.
 *
 * Sources: TensorRT's IGpuAsyncAllocator, RAPIDS RMM's event handlers and statistics, Arrow's
 * AllocationReservation.
 */
#ifndef CUWEIR_CUWEIR_H
#define CUWEIR_CUWEIR_H

#include <cuweir/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------
 * What is there.
 */

/* The version of the library behind, "0.1.0"; NULL where there is none. Static storage. */
CUWEIR_EXPORT const char *cuweir_get_version(void);

/* Whether the program's own CUDA calls are heard: true under a preload. */
CUWEIR_EXPORT bool cuweir_hears_cuda(void);

/* ------------------------------------------------------------------------------------------
 * The allocator. Device memory of the current device, through the whole pipeline: policies,
 * budget, retries, thresholds.
 */

/*
 * Memory of `size` bytes, usable in the order of `stream`; NULL is the legacy default stream,
 * CU_STREAM_PER_THREAD the other one. `alignment` is 0 for any, or a power of two up to 256.
 * `flags` are CUWEIR_ALLOCATOR_...; unknown ones are ignored. NULL where it cannot be had, for
 * another alignment, and in a stream that is being captured; size 0 gives NULL, and no CUDA
 * call is made. The caller gives it back by one of the functions below; a free of CUDA's that
 * cuweir hears is as good. Source: IGpuAsyncAllocator::allocateAsync.
 */
CUWEIR_EXPORT void *cuweir_allocate_async(uint64_t size, uint64_t alignment, uint32_t flags,
					  void *stream);

/*
 * Gives `memory` back in the order of `stream`, which follows all work that uses it; NULL is the
 * default stream of the memory's device, whichever is current (the primary context's). True for
 * NULL. False, without a CUDA call, for what no function of this header handed out, and for
 * what was given back already; false too where the driver refuses (the memory is then as it
 * was), or a dealloc threshold gave a status (it is gone). Source: deallocateAsync.
 */
CUWEIR_EXPORT bool cuweir_deallocate_async(void *memory, void *stream);

/*
 * Grows or shrinks `memory`, which was allocated with CUWEIR_ALLOCATOR_RESIZABLE. Shrinking
 * keeps the address, and the bytes stay counted. Growing moves: waits for the context, copies
 * what there was, and gives the old address back; the caller only knows the new one. NULL,
 * with the old memory as it was, for anything else than such memory of the current device,
 * new_size 0, another alignment, want of memory, and while a capture is open.
 * Source: IGpuAllocator::reallocate.
 */
CUWEIR_EXPORT void *cuweir_reallocate(void *memory, uint64_t alignment, uint64_t new_size);

/*
 * As the above, but valid in every stream at once; when cuweir_deallocate is called nobody uses
 * the memory any more. Source: IGpuAllocator::allocate, deallocate.
 */
CUWEIR_EXPORT void *cuweir_allocate(uint64_t size, uint64_t alignment, uint32_t flags);
CUWEIR_EXPORT bool cuweir_deallocate(void *memory);

/* ------------------------------------------------------------------------------------------
 * The event handler: one for the process, outside of all policies, so that it is asked after
 * they have failed and told after them.
 */

struct cuweir_event_handler {
	size_t struct_size; /* sizeof(struct cuweir_event_handler) */
	uint32_t flags;     /* CUWEIR_POLICY_CAPTURE_SAFE, or 0 */
	uint32_t kinds;     /* CUWEIR_KIND_BITs that thresholds apply to; 0: DEVICE */

	/* Copied by cuweir_set_event_handler: any order; NULL or count 0: none. */
	const uint64_t *alloc_thresholds;
	size_t alloc_threshold_count;
	const uint64_t *dealloc_thresholds;
	size_t dealloc_threshold_count;

	/* As in struct cuweir_policy, any of them NULL. The event is valid until they return. */
	int (*on_alloc_threshold)(void *state, uint64_t total, const struct cuweir_event *event);
	int (*on_dealloc_threshold)(void *state, uint64_t total,
				    const struct cuweir_event *event);
	bool (*on_alloc_failure)(void *state, uint64_t size, int retry_count,
				 const struct cuweir_event *event);
	bool (*on_alloc_failure_size)(void *state, uint64_t size);
	void (*on_allocated)(void *state, uint64_t size, const struct cuweir_event *event);
	void (*on_deallocated)(void *state, uint64_t size, const struct cuweir_event *event);

	void (*reserved[8])(void);
};

/*
 * Sets the handler; the struct is copied, `state` is handed to its callbacks. With
 * `enable_debug` it gets on_allocated and on_deallocated, else only while debug is on for all.
 * Totals are as they are: memory that is there already counts. A NULL handler clears.
 * CUWEIR_ERROR_NOT_PERMITTED where one is set: it stays, and clearing it comes first.
 * CUWEIR_ERROR_INVALID_VALUE for a struct_size that is too small. Source: Rmm.setEventHandler.
 */
CUWEIR_EXPORT int cuweir_set_event_handler(const struct cuweir_event_handler *handler, void *state,
					   bool enable_debug);

/*
 * Clears the handler; no error where none is set. When it returns, no callback runs in another
 * thread: so the caller holds no lock that a callback waits for. Called in a callback of the
 * handler itself it does not wait. Source: Rmm.clearEventHandler.
 */
CUWEIR_EXPORT int cuweir_clear_event_handler(void);

/* Debug events for the handler and all policies; CUWEIR_DEBUG=1 starts with them on. */
CUWEIR_EXPORT int cuweir_set_debug(bool on);
CUWEIR_EXPORT bool cuweir_get_debug(void);

/* ------------------------------------------------------------------------------------------
 * Figures, for each device and kind. CUWEIR_ERROR_INVALID_VALUE for a device or kind out of
 * range and for a NULL result.
 */

/* Fills *ret_totals, whose struct_size the caller sets; `peak` is never lowered. */
CUWEIR_EXPORT int cuweir_get_totals(int device, int kind, struct cuweir_totals *ret_totals);

/*
 * The scoped peak: from a reset on, `value` plus what the program has taken beyond what it had
 * then, at its highest. A value that falls below is not seen; the peak stays until the next
 * reset. Before the first reset it is the peak. Source: Rmm.resetScopedMaximumBytesAllocated.
 */
CUWEIR_EXPORT int cuweir_reset_scoped_peak(int device, int kind, uint64_t value);
CUWEIR_EXPORT int cuweir_get_scoped_peak(int device, int kind, uint64_t *ret_peak);

/* What happened within a scope (see cuweir_push_scope). */
struct cuweir_scope {
	size_t struct_size;
	int64_t current;      /* bytes more than at the push; below 0 where there are fewer */
	uint64_t peak;        /* the highest `current` */
	uint64_t allocations; /* operations that took memory */
	uint64_t frees;       /* operations that gave memory back */
	uint64_t reserved[3];
};

/*
 * Opens a scope, whose figures start from 0, within the one that is open; at most 32 for each
 * device and kind, else CUWEIR_ERROR_OUT_OF_MEMORY. pop closes the innermost and fills
 * *ret_scope (its struct_size set by the caller; may be NULL); what it saw counts in the outer
 * one too. CUWEIR_ERROR_ILLEGAL_STATE where none is open. Scopes are the process's, not a
 * thread's. Source: statistics_resource_adaptor, push_counters, pop_counters.
 */
CUWEIR_EXPORT int cuweir_push_scope(int device, int kind);
CUWEIR_EXPORT int cuweir_pop_scope(int device, int kind, struct cuweir_scope *ret_scope);

/*
 * Visits the live allocations, in no order, until `visit` returns false; the record is valid
 * until it returns. `visit` may use CUDA and cuweir.
 */
CUWEIR_EXPORT int cuweir_walk(bool (*visit)(const struct cuweir_record *record, void *argument),
			      void *argument);

/* ------------------------------------------------------------------------------------------
 * The budget and reservations: see struct cuweir_host in policy.h, whose functions of the same
 * names these are.
 */

/*
 * At most `bytes` of the kinds in the mask (0: DEVICE) on `device` together; UINT64_MAX for no
 * budget of the program's: what policies have set holds all the same. Exact when set before the
 * first allocation; set later, it counts what is in the books then. get tells the lowest; any
 * result may be NULL; CUWEIR_ERROR_NOT_FOUND where none is set. set: CUWEIR_ERROR_NOT_PERMITTED
 * for a mask that would take a kind away from another one on which a policy has a limit.
 */
CUWEIR_EXPORT int cuweir_set_budget(int device, uint32_t kinds, uint64_t bytes);
CUWEIR_EXPORT int cuweir_get_budget(int device, uint64_t *ret_bytes, uint64_t *ret_used,
				    uint64_t *ret_reserved);

/*
 * A reservation of one future buffer on `device`; the caller destroys it. The functions on it
 * are for one thread at a time.
 */
CUWEIR_EXPORT int cuweir_reservation_open(int device, struct cuweir_reservation **ret_reservation);

/*
 * Adds `bytes` to it: exact, all or nothing, 0 allowed. CUWEIR_ERROR_OUT_OF_MEMORY over the
 * budget, and nothing has changed, so that less may still be had; CUWEIR_ERROR_INVALID_VALUE
 * where the sum passes 2^64-1; CUWEIR_ERROR_ILLEGAL_STATE after use or close. reserve is
 * another name of add.
 */
CUWEIR_EXPORT int cuweir_reservation_add(struct cuweir_reservation *reservation, uint64_t bytes);
CUWEIR_EXPORT int cuweir_reservation_reserve(struct cuweir_reservation *reservation,
					     uint64_t bytes);

/* The sum of what was added, after use and close too; 0, false, true for NULL. */
CUWEIR_EXPORT uint64_t
cuweir_reservation_get_size(const struct cuweir_reservation *reservation);
CUWEIR_EXPORT bool cuweir_reservation_is_used(const struct cuweir_reservation *reservation);
CUWEIR_EXPORT bool cuweir_reservation_is_closed(const struct cuweir_reservation *reservation);

/*
 * The buffer: get_size bytes in the order of `stream`, whose device is the reservation's (else
 * CUWEIR_ERROR_INVALID_DEVICE, and it is not used). Works once; on failure *ret_memory is
 * NULL, the result says why, and the bytes are given back; an empty reservation gives NULL and
 * success. CUWEIR_ERROR_ILLEGAL_STATE after use or close. The buffer is given back as memory
 * of cuweir_allocate_async is, before or after the reservation is closed.
 */
CUWEIR_EXPORT int cuweir_reservation_allocate_buffer(struct cuweir_reservation *reservation,
						     void *stream, void **ret_memory);

/* Gives back what was not used; again, or after use: nothing. */
CUWEIR_EXPORT int cuweir_reservation_close(struct cuweir_reservation *reservation);

/* Closes and frees the object; NULL is fine. */
CUWEIR_EXPORT void cuweir_reservation_destroy(struct cuweir_reservation *reservation);

#ifdef __cplusplus
}
#endif

#endif
