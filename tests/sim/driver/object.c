/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles. All objects live in slots of one mapping that is never given back: a handle is valid if
 * it points at a slot's beginning and the slot's type is the wanted one, so that stale and foreign
 * handles are refused without a table. No malloc, for the sanitizers' and valgrind's sake.
 */
#include <string.h>
#include <sys/mman.h>

#include "internal.h"
#include "array.h"
#include "space.h"

#define SLOT 512U
#define SLOTS (1U << 21)

static char *slots;
static uint32_t used_slots;
static uint64_t next_id = 1;
static struct sim_obj *spare;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uintptr_t first;

_Static_assert(sizeof(struct sim_stream) <= SLOT, "slot");
_Static_assert(sizeof(struct sim_pool) <= SLOT, "slot");
_Static_assert(sizeof(struct sim_node) <= SLOT, "slot");
_Static_assert(sizeof(struct sim_ctx) <= SLOT, "slot");
_Static_assert(sizeof(struct sim_event) <= SLOT, "slot");
_Static_assert(sizeof(struct sim_array) <= SLOT, "slot");
_Static_assert(sizeof(struct sim_memory) <= SLOT, "slot");

static struct sim_obj *take_slot(void)
{
	struct sim_obj *o;

	if (slots == NULL) {
		void *p = mmap(NULL, (size_t)SLOT * SLOTS, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (p == MAP_FAILED) {
			return NULL;
		}
		slots = p;
		atomic_store(&first, (uintptr_t)p);
	}
	if (spare != NULL) {
		o = spare;
		spare = o->next_free;
		return o;
	}
	if (used_slots == SLOTS - 1) {
		return NULL;
	}
	o = (struct sim_obj *)(void *)(slots + (size_t)++used_slots * SLOT);
	o->slot = used_slots;
	return o;
}

void *sim_obj_new(enum sim_type type)
{
	struct sim_obj *o;

	pthread_mutex_lock(&lock);
	o = take_slot();
	if (o != NULL) {
		memset((char *)o + sizeof(*o), 0, SLOT - sizeof(*o));
		o->id = next_id++;
		o->next_free = NULL;
		atomic_store_explicit(&o->type, (uint32_t)type, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return o;
}

void *sim_obj_get(const void *handle, enum sim_type type)
{
	uintptr_t base = atomic_load_explicit(&first, memory_order_acquire);
	uintptr_t off = (uintptr_t)handle - base;
	struct sim_obj *o = (struct sim_obj *)(uintptr_t)handle;

	if (base == 0 || off >= (uintptr_t)SLOT * SLOTS || off % SLOT != 0 || off == 0) {
		return NULL;
	}
	return atomic_load_explicit(&o->type, memory_order_acquire) == (uint32_t)type ? o : NULL;
}

void sim_obj_free(struct sim_obj *o)
{
	atomic_store_explicit(&o->type, 0, memory_order_release);
	pthread_mutex_lock(&lock);
	o->next_free = spare;
	spare = o;
	pthread_mutex_unlock(&lock);
}

/* For the trace: the handle's number, or 0 for what is no handle. */
uint64_t sim_obj_offset(uint64_t value)
{
	uintptr_t base = atomic_load(&first);

	return base != 0 && value - base < (uint64_t)SLOT * SLOTS ? (value - base) / SLOT : 0;
}
