/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks.h"

#include <errno.h>
#include <execinfo.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "lock.h"
#include "message.h"
#include "plain.h"

enum {
	/* Below the program's call lie our own frames, and those of policies it came through. */
	OWN_FRAMES = 12,
	OWN_FRAMES_MAX = 32,
	ARENA_WORDS = 1 << 20,
	BUCKETS = 1 << 14,
};

struct stack {
	uint32_t hash;
	uint32_t next; /* of its bucket: the place in the arena, 0 at the end */
	uint64_t count;
	uint64_t frames[];
};

/* The first word is never used, so that 0 is no place; pages come as they are touched. */
struct arena {
	uint64_t words[ARENA_WORDS];
	uint32_t buckets[BUCKETS];
	uint32_t used;
};

unsigned int cw_stack_depth_;

static struct arena *arena;
static struct cw_lock lock; /* a leaf, of the arena */

static bool is_stack(uint64_t site)
{
	return arena != NULL && site >= (uint64_t)(uintptr_t)arena->words &&
	       site < (uint64_t)(uintptr_t)(arena->words + ARENA_WORDS);
}

static const struct stack *stack_at(uint64_t site)
{
	return (const struct stack *)(uintptr_t)site;
}

void cw_stacks_open(unsigned int depth)
{
	void *frame[1];
	void *memory;

	if (depth < 2) {
		return; /* the call alone, as ever */
	}
	/* The first call loads libgcc_s.so.1, which holds what walks; later ones take no memory. */
	if (backtrace(frame, 1) != 1) {
		cw_message(CW_ERROR, "CUWEIR_STACK: there is no libgcc_s.so.1 that walks stacks; want "
				     "it installed; call sites are single addresses");
		return;
	}
	memory = mmap(NULL, sizeof(struct arena), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		cw_message(CW_ERROR, "CUWEIR_STACK: no memory to keep stacks in; call sites are "
				     "single addresses");
		return;
	}
	arena = memory;
	arena->used = 1;
	cw_plain_set(CW_PLAIN_STACKS);
	cw_stack_depth_ = depth < CW_STACK_MAX ? depth : CW_STACK_MAX;
}

static uint32_t hash_of(const uint64_t *frames, unsigned int count)
{
	uint64_t hash = count;

	for (unsigned int i = 0; i < count; i++) {
		hash = (hash ^ frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	return (uint32_t)hash;
}

/* Lock held. NULL where there is no room. */
static const struct stack *intern(const uint64_t *frames, unsigned int count)
{
	const size_t head = sizeof(struct stack) / sizeof(uint64_t);
	uint32_t hash = hash_of(frames, count);
	uint32_t *bucket = &arena->buckets[hash % BUCKETS];
	struct stack *stack;

	for (uint32_t at = *bucket; at != 0; at = stack->next) {
		stack = (struct stack *)&arena->words[at];
		if (stack->hash == hash && stack->count == count &&
		    memcmp(stack->frames, frames, count * sizeof(frames[0])) == 0) {
			return stack;
		}
	}
	if (arena->used + head + count > ARENA_WORDS) {
		return NULL;
	}
	stack = (struct stack *)&arena->words[arena->used];
	stack->hash = hash;
	stack->next = *bucket;
	stack->count = count;
	memcpy(stack->frames, frames, count * sizeof(frames[0]));
	*bucket = arena->used;
	arena->used += (uint32_t)(head + count);
	return stack;
}

static CW_COLD void tell_full(void)
{
	static bool told;

	if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED)) {
		cw_message(CW_ERROR, "CUWEIR_STACK: there is no room for more stacks; call sites are "
				     "single addresses from now on, want fewer frames");
	}
}

uint64_t cw_stack_take_(const void *site)
{
	void *found[OWN_FRAMES_MAX + CW_STACK_MAX];
	uint64_t frames[CW_STACK_MAX];
	const struct stack *stack;
	unsigned int count = 0;
	int saved_errno = errno;
	int walked = 0;
	int first = 0;

	/* As a rule few frames are our own; each that is walked costs. */
	for (int own = OWN_FRAMES; own <= OWN_FRAMES_MAX && first == walked;
	     own += OWN_FRAMES_MAX - OWN_FRAMES) {
		walked = backtrace(found, own + (int)cw_stack_depth_);
		for (first = 0; first < walked && found[first] != site; first++) {
		}
	}
	errno = saved_errno;
	for (; first < walked && count < cw_stack_depth_; first++) {
		frames[count++] = (uint64_t)(uintptr_t)found[first];
	}
	if (count < 2) {
		return (uint64_t)(uintptr_t)site;
	}
	cw_lock_acquire(&lock);
	stack = intern(frames, count);
	cw_lock_release(&lock);
	if (stack == NULL) {
		tell_full();
		return (uint64_t)(uintptr_t)site;
	}
	return (uint64_t)(uintptr_t)stack;
}

unsigned int cw_stack_frames(uint64_t site)
{
	return is_stack(site) ? (unsigned int)stack_at(site)->count : 1;
}

uint64_t cw_stack_frame(uint64_t site, unsigned int index)
{
	if (index >= cw_stack_frames(site)) {
		return 0;
	}
	return is_stack(site) ? stack_at(site)->frames[index] : site;
}

/* Another thread of the parent may have been at it. Its sites are in no book of the child's. */
void cw_stacks_postfork_child(void)
{
	if (arena != NULL) {
		cw_lock_reset(&lock);
		memset(arena->buckets, 0, sizeof(arena->buckets));
		arena->used = 1;
	}
}
