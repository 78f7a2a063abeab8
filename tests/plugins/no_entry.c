/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that loads and is no policy: its table has another name. */
#include <cuweir/policy.h>

extern CUWEIR_EXPORT const struct cuweir_policy policy_entry;
const struct cuweir_policy policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "no_entry",
};
