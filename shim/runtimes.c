/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes.h"

#include "config.h"

/* Eight at once is more than anybody loads; a ninth is left alone, like a stranger's. */
#define RUNTIME_SLOTS 8

struct runtime {
	_Atomic(uintptr_t) low; /* the other fields are valid once this is set */
	_Atomic(uintptr_t) high;
	_Atomic(bool) heard;
	_Atomic(bool) woken;
	_Atomic(void *) real[CW_HOOK_COUNT];
};

/* In the place of `low`, which it is below: the library was unloaded, and the slot is free. */
#define GONE 1u

static struct runtime runtimes[RUNTIME_SLOTS];
static _Atomic(int) first_runtime = CW_NO_RUNTIME;

/*
 * What is known about a return address, in one word so that no reader sees half of it: the
 * address in the upper 48 bits, then the runtime it lies in and the one its object is linked
 * to, each as slot + 1.
 */
#define SITE_SLOTS 512u
#define SITE_INSIDE_SHIFT 8
#define SITE_LINKED_SHIFT 0

static _Atomic(uint64_t) sites[SITE_SLOTS];

int cw_runtime_slot(uintptr_t low, uintptr_t high)
{
	int unused = CW_NO_RUNTIME;

	for (int slot = 0; slot < RUNTIME_SLOTS; slot++) {
		struct runtime *runtime = &runtimes[slot];
		uintptr_t held = atomic_load_explicit(&runtime->low, memory_order_relaxed);

		if (held == low &&
		    high == atomic_load_explicit(&runtime->high, memory_order_relaxed)) {
			return slot;
		}
		if (held <= GONE && unused == CW_NO_RUNTIME) {
			unused = slot;
		}
		if (held == 0) {
			break;
		}
	}
	if (unused != CW_NO_RUNTIME) {
		atomic_store_explicit(&runtimes[unused].high, high, memory_order_relaxed);
		atomic_store_explicit(&runtimes[unused].low, low, memory_order_release);
	}
	return unused;
}

bool cw_runtimes_any(void)
{
	return atomic_load_explicit(&runtimes[0].low, memory_order_relaxed) != 0;
}

static void forget_runtime(struct runtime *runtime)
{
	atomic_store_explicit(&runtime->low, GONE, memory_order_relaxed);
	atomic_store_explicit(&runtime->high, 0, memory_order_relaxed);
	atomic_store_explicit(&runtime->heard, false, memory_order_relaxed);
	atomic_store_explicit(&runtime->woken, false, memory_order_relaxed);
	for (unsigned int hook = 0; hook < CW_HOOK_COUNT; hook++) {
		atomic_store_explicit(&runtime->real[hook], NULL, memory_order_relaxed);
	}
}

void cw_runtimes_forget(uint32_t seen)
{
	for (int slot = 0; slot < RUNTIME_SLOTS; slot++) {
		if ((seen & 1u << slot) == 0 &&
		    atomic_load_explicit(&runtimes[slot].low, memory_order_relaxed) > GONE) {
			if (slot == atomic_load_explicit(&first_runtime, memory_order_relaxed)) {
				cw_runtime_see_first(CW_NO_RUNTIME);
			}
			forget_runtime(&runtimes[slot]);
		}
	}
	for (unsigned int i = 0; i < SITE_SLOTS; i++) {
		atomic_store_explicit(&sites[i], 0, memory_order_relaxed);
	}
}

void cw_runtime_see_first(int slot)
{
	if (atomic_load_explicit(&first_runtime, memory_order_relaxed) == slot) {
		return;
	}
	cw_real_forget(CW_DOOR_RUNTIME);
	atomic_store_explicit(&first_runtime, slot, memory_order_release);
}

static uint64_t site_fact(int slot, unsigned int shift)
{
	return (uint64_t)(slot + 1) << shift;
}

static int fact_slot(uint64_t facts, unsigned int shift)
{
	return (int)(facts >> shift & 0xffu) - 1;
}

static uint64_t site_facts(const void *site)
{
	uint64_t key = (uint64_t)(uintptr_t)site << 16;
	uint64_t hash = (uint64_t)(uintptr_t)site * 0x9e3779b97f4a7c15u;
	_Atomic(uint64_t) *cached = &sites[(hash >> 32) % SITE_SLOTS];
	uint64_t facts = atomic_load_explicit(cached, memory_order_relaxed);
	int inside;
	int linked;

	if ((facts & ~(uint64_t)0xffff) == key) {
		return facts;
	}
	cw_runtimes_of_site(site, &inside, &linked);
	facts = site_fact(inside, SITE_INSIDE_SHIFT) | site_fact(linked, SITE_LINKED_SHIFT);
	if ((uintptr_t)site >> 48 == 0) {
		atomic_store_explicit(cached, key | facts, memory_order_relaxed);
	}
	return facts;
}

void *cw_real_runtime(enum cw_hook_id hook, const void *site)
{
	uint64_t facts = site_facts(site);
	int inside = fact_slot(facts, SITE_INSIDE_SHIFT);
	int slot = inside != CW_NO_RUNTIME ? inside : fact_slot(facts, SITE_LINKED_SHIFT);
	void *real;

	if (slot == CW_NO_RUNTIME ||
	    slot == atomic_load_explicit(&first_runtime, memory_order_acquire)) {
		return cw_real_of(hook);
	}
	real = atomic_load_explicit(&runtimes[slot].real[hook], memory_order_acquire);
	if (real == NULL) {
		real = cw_resolve_in(hook, slot);
		atomic_store_explicit(&runtimes[slot].real[hook], real, memory_order_release);
	}
	return real;
}

void cw_runtime_note_lookup(const void *site)
{
	int inside = fact_slot(site_facts(site), SITE_INSIDE_SHIFT);

	if (inside != CW_NO_RUNTIME &&
	    !atomic_load_explicit(&runtimes[inside].heard, memory_order_relaxed)) {
		atomic_store_explicit(&runtimes[inside].heard, true, memory_order_relaxed);
	}
}

int cw_runtime_device(const void *runtime_function, int *ret_device)
{
	int (*get_device)(int *) =
		(int (*)(int *))cw_function_beside(runtime_function, "cudaGetDevice");

	return get_device != NULL ? get_device(ret_device) : -1;
}

/*
 * A runtime looks its driver up within its first call, whichever that is, so that until then
 * nothing is known of it. A question that changes nothing and makes no context has that done,
 * as the program's call would next. In several threads at once: the runtime takes care of that.
 */
static CW_COLD enum cw_hearing wake(struct runtime *runtime, const void *runtime_function)
{
	int device;

	if (cw_runtime_device(runtime_function, &device) > 0) {
		return CW_RUNTIME_BROKEN;
	}
	atomic_store_explicit(&runtime->woken, true, memory_order_relaxed);
	return atomic_load_explicit(&runtime->heard, memory_order_relaxed) ? CW_RUNTIME_HEARD
									   : CW_RUNTIME_ALONE;
}

static enum cw_hearing hearing_of(const void *runtime_function)
{
	uintptr_t address = (uintptr_t)runtime_function;

	for (int slot = 0; slot < RUNTIME_SLOTS; slot++) {
		struct runtime *runtime = &runtimes[slot];
		uintptr_t low = atomic_load_explicit(&runtime->low, memory_order_acquire);

		if (low == 0) {
			break;
		}
		if (address < low ||
		    address >= atomic_load_explicit(&runtime->high, memory_order_relaxed)) {
			continue;
		}
		if (atomic_load_explicit(&runtime->heard, memory_order_relaxed)) {
			return CW_RUNTIME_HEARD;
		}
		return atomic_load_explicit(&runtime->woken, memory_order_relaxed)
			       ? CW_RUNTIME_ALONE : wake(runtime, runtime_function);
	}
	return CW_RUNTIME_ALONE;
}

/* Where the driver door is off, the runtime is as alone as one that it does not hear. */
enum cw_hearing cw_runtime_hearing(const void *runtime_function)
{
	enum cw_hearing hearing = hearing_of(runtime_function);

	return cw_config.driver_off && hearing == CW_RUNTIME_HEARD ? CW_RUNTIME_ALONE : hearing;
}
