/* SPDX-License-Identifier: Apache-2.0 */
/* A policy that calls a function which nobody has: the dynamic linker refuses it. */
#include <cuweir/policy.h>

int cuweir_nobody_has_this(void *state, const struct cuweir_event *event);

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "unresolved",
	.admit = cuweir_nobody_has_this,
};
