/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "lock.h"
#include "plain.h"
#include "thread.h"

/* Never freed, since another thread may still look at its thresholds; equal ones come again. */
struct handler {
	struct handler *older;
	struct cuweir_event_handler table;
	void *state;
	bool debug;
	struct cw_thresholds alloc;
	struct cw_thresholds dealloc;
};

static struct handler *current; /* NULL: none is set */
static struct handler *retired;
static struct cw_lock setting;  /* guards `retired`, and that one sets at a time */
static uint32_t users;          /* threads in a callback */
static struct cw_policy *place;
static struct cw_thresholds none;

/* Sequentially consistent: either this sees that it was cleared, or the clearer sees us. */
static const struct handler *enter(void)
{
	const struct handler *handler;

	__atomic_fetch_add(&users, 1, __ATOMIC_SEQ_CST);
	handler = __atomic_load_n(&current, __ATOMIC_SEQ_CST);
	if (handler == NULL) {
		__atomic_fetch_sub(&users, 1, __ATOMIC_SEQ_CST);
	}
	return handler;
}

static void leave(void)
{
	__atomic_fetch_sub(&users, 1, __ATOMIC_SEQ_CST);
}

static int on_alloc_threshold(void *unused, uint64_t total, const struct cuweir_event *event)
{
	const struct handler *handler = enter();
	int status = CUWEIR_SUCCESS;

	(void)unused;
	if (handler == NULL) {
		return status;
	}
	if (handler->table.on_alloc_threshold != NULL) {
		status = handler->table.on_alloc_threshold(handler->state, total, event);
	}
	leave();
	return status;
}

static int on_dealloc_threshold(void *unused, uint64_t total, const struct cuweir_event *event)
{
	const struct handler *handler = enter();
	int status = CUWEIR_SUCCESS;

	(void)unused;
	if (handler == NULL) {
		return status;
	}
	if (handler->table.on_dealloc_threshold != NULL) {
		status = handler->table.on_dealloc_threshold(handler->state, total, event);
	}
	leave();
	return status;
}

static bool on_alloc_failure(void *unused, uint64_t size, int retry_count,
			     const struct cuweir_event *event)
{
	const struct handler *handler = enter();
	bool again = false;

	(void)unused;
	if (handler == NULL) {
		return false;
	}
	if ((event->flags & CUWEIR_EVENT_CAPTURING) == 0 ||
	    (handler->table.flags & CUWEIR_POLICY_CAPTURE_SAFE) != 0) {
		if (handler->table.on_alloc_failure != NULL) {
			again = handler->table.on_alloc_failure(handler->state, size, retry_count,
								event);
		} else if (handler->table.on_alloc_failure_size != NULL) {
			again = handler->table.on_alloc_failure_size(handler->state, size);
		}
	}
	leave();
	return again;
}

static bool wants_debug(const struct handler *handler)
{
	return handler->debug || cw_debug();
}

static void on_allocated(void *unused, uint64_t size, const struct cuweir_event *event)
{
	const struct handler *handler = enter();

	(void)unused;
	if (handler == NULL) {
		return;
	}
	if (wants_debug(handler) && handler->table.on_allocated != NULL) {
		handler->table.on_allocated(handler->state, size, event);
	}
	leave();
}

static void on_deallocated(void *unused, uint64_t size, const struct cuweir_event *event)
{
	const struct handler *handler = enter();

	(void)unused;
	if (handler == NULL) {
		return;
	}
	if (wants_debug(handler) && handler->table.on_deallocated != NULL) {
		handler->table.on_deallocated(handler->state, size, event);
	}
	leave();
}

void cw_program_place(struct cw_policy *policy)
{
	policy->table = (struct cuweir_policy){
		.struct_size = sizeof(policy->table),
		.version = CUWEIR_POLICY_VERSION,
		.flags = CUWEIR_POLICY_CAPTURE_SAFE | CUWEIR_POLICY_DEBUG,
		.name = "program",
		.on_alloc_threshold = on_alloc_threshold,
		.on_dealloc_threshold = on_dealloc_threshold,
		.on_alloc_failure = on_alloc_failure,
		.on_allocated = on_allocated,
		.on_deallocated = on_deallocated,
	};
	policy->bit = 1u << CW_PLACE_PROGRAM;
	cw_host_init(policy);
	policy->alloc = &none;
	policy->dealloc = &none;
	policy->setting = "";
	place = policy;
}

void cw_program_set_outer(uint32_t outer)
{
	cw_lock_acquire(&setting);
	cw_chain.outer = outer;
	if (current == NULL) {
		__atomic_store_n(&cw_chain.first, outer, __ATOMIC_RELEASE);
	}
	cw_lock_release(&setting);
}

static bool same_list(const struct cw_thresholds *a, const struct cw_thresholds *b)
{
	return a->count == b->count &&
	       (a->count == 0 ||
		memcmp(a->values, b->values, a->count * sizeof(a->values[0])) == 0);
}

/* One that was set before and was the same in everything. Lock held. */
static struct handler *take_retired(const struct handler *wanted)
{
	for (struct handler **link = &retired; *link != NULL; link = &(*link)->older) {
		struct handler *old = *link;

		if (memcmp(&old->table, &wanted->table, sizeof(old->table)) == 0 &&
		    old->state == wanted->state && old->debug == wanted->debug &&
		    same_list(&old->alloc, &wanted->alloc) &&
		    same_list(&old->dealloc, &wanted->dealloc)) {
			*link = old->older;
			return old;
		}
	}
	return NULL;
}

static void release(struct handler *handler)
{
	cw_thresholds_release(&handler->alloc);
	cw_thresholds_release(&handler->dealloc);
	free(handler);
}

static struct handler *make(const struct cuweir_event_handler *table, void *state, bool debug)
{
	struct handler *handler = calloc(1, sizeof(*handler));
	size_t size = table->struct_size < sizeof(*table) ? table->struct_size : sizeof(*table);

	if (handler == NULL) {
		return NULL;
	}
	memcpy(&handler->table, table, size);
	handler->state = state;
	handler->debug = debug;
	if (cw_thresholds_init(&handler->alloc, handler->table.alloc_thresholds,
			       handler->table.alloc_threshold_count) != 0 ||
	    cw_thresholds_init(&handler->dealloc, handler->table.dealloc_thresholds,
			       handler->table.dealloc_threshold_count) != 0) {
		release(handler);
		return NULL;
	}
	/* Copied: the program's arrays are not looked at again. */
	handler->table.alloc_thresholds = NULL;
	handler->table.dealloc_thresholds = NULL;
	if (handler->table.kinds == 0) {
		handler->table.kinds = CUWEIR_KIND_BIT(CUWEIR_KIND_DEVICE);
	}
	return handler;
}

/* Lock held. */
static void publish(struct handler *handler)
{
	cw_plain_set(CW_PLAIN_PROGRAM);
	__atomic_store_n(&place->alloc, &handler->alloc, __ATOMIC_RELEASE);
	__atomic_store_n(&place->dealloc, &handler->dealloc, __ATOMIC_RELEASE);
	__atomic_store_n(&current, handler, __ATOMIC_SEQ_CST);
	__atomic_store_n(&place->kinds, handler->table.kinds, __ATOMIC_RELEASE);
	__atomic_store_n(&cw_chain.first, CW_PLACE_PROGRAM, __ATOMIC_RELEASE);
	if (handler->debug) {
		cw_debug_program(true);
	}
}

int cw_program_set(const struct cuweir_event_handler *table, void *state, bool debug)
{
	struct handler *handler;
	struct handler *old = NULL;
	int status = CUWEIR_SUCCESS;

	if (table == NULL ||
	    table->struct_size < offsetof(struct cuweir_event_handler, on_alloc_threshold)) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	if (place == NULL) {
		return CUWEIR_ERROR_OUT_OF_MEMORY;
	}
	handler = make(table, state, debug);
	if (handler == NULL) {
		return CUWEIR_ERROR_OUT_OF_MEMORY;
	}
	cw_lock_acquire(&setting);
	if (current != NULL) {
		status = CUWEIR_ERROR_NOT_PERMITTED;
	} else {
		old = take_retired(handler);
		publish(old != NULL ? old : handler);
	}
	cw_lock_release(&setting);
	if (status != CUWEIR_SUCCESS || old != NULL) {
		release(handler);
	}
	return status;
}

void cw_program_clear(void)
{
	uint32_t own = place != NULL && (cw_thread.in_callback & place->bit) != 0 ? 1 : 0;
	struct handler *handler;

	cw_lock_acquire(&setting);
	handler = current;
	if (handler != NULL) {
		__atomic_store_n(&cw_chain.first, cw_chain.outer, __ATOMIC_RELEASE);
		__atomic_store_n(&place->kinds, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&current, NULL, __ATOMIC_SEQ_CST);
		cw_debug_program(false);
		cw_plain_clear(CW_PLAIN_PROGRAM);
		handler->older = retired;
		retired = handler;
	}
	cw_lock_release(&setting);
	/* Its state may go away when this returns. */
	while (own == 0 && __atomic_load_n(&users, __ATOMIC_SEQ_CST) != 0) {
		sched_yield();
	}
}

void cw_program_postfork_child(void)
{
	bool inside = place != NULL && (cw_thread.in_callback & place->bit) != 0;

	cw_lock_reset(&setting);
	__atomic_store_n(&users, inside ? 1 : 0, __ATOMIC_SEQ_CST);
}
