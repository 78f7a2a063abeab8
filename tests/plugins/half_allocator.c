/* SPDX-License-Identifier: Apache-2.0 */
/* A policy that would serve, and could not take back what it hands out. */
#include <cuweir/policy.h>

#include <stddef.h>

static void *allocate_async(void *state, uint64_t size, uint64_t alignment, uint32_t flags,
			    void *stream)
{
	return NULL;
}

static const struct cuweir_allocator allocator = {
	.struct_size = sizeof(allocator),
	.allocate_async = allocate_async,
};

extern CUWEIR_EXPORT const struct cuweir_policy cuweir_policy_entry;
const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "half_allocator",
	.allocator = &allocator,
};
