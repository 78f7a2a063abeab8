/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy for tests that serves from blocks of 64 KiB, and so can resize within one: in place
 * up to that size, and not at all beyond. It refuses what it should not be asked: memory that it
 * did not hand out, or that was not allocated as resizable.
 */
#include <cuweir/policy.h>
#include <stdatomic.h>

enum { BLOCK = 65536, ALIGNMENT_ASKED = 64 };

static const struct cuweir_host *services;
static _Atomic(void *) resizable; /* the last block handed out with the flag */

static int open_resizer(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	(void)arguments, (void)ret_state;
	services = host;
	return CUWEIR_SUCCESS;
}

static void *allocate(void *state, uint64_t size, uint64_t alignment, uint32_t flags)
{
	void *memory;

	(void)state;
	if (size > BLOCK || (alignment != 0 && alignment != ALIGNMENT_ASKED)) {
		return NULL;
	}
	memory = services->next->allocate(services->next_state, BLOCK, 0, 0);
	if ((flags & CUWEIR_ALLOCATOR_RESIZABLE) != 0) {
		resizable = memory;
	}
	return memory;
}

static void *allocate_async(void *state, uint64_t size, uint64_t alignment, uint32_t flags,
			    void *stream)
{
	(void)stream;
	return allocate(state, size, alignment, flags);
}

static bool deallocate(void *state, void *memory)
{
	(void)state;
	return services->next->deallocate(services->next_state, memory);
}

static bool deallocate_async(void *state, void *memory, void *stream)
{
	(void)stream;
	return deallocate(state, memory);
}

static void *reallocate(void *state, void *memory, uint64_t alignment, uint64_t new_size)
{
	(void)state;
	return memory == resizable && alignment == ALIGNMENT_ASKED && new_size <= BLOCK ? memory
											  : NULL;
}

static const struct cuweir_allocator allocator = {
	.struct_size = sizeof(struct cuweir_allocator),
	.allocate_async = allocate_async,
	.deallocate_async = deallocate_async,
	.reallocate = reallocate,
	.allocate = allocate,
	.deallocate = deallocate,
};

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "resizer",
	.open = open_resizer,
	.allocator = &allocator,
};
