/* SPDX-License-Identifier: Apache-2.0 */
/* Made with a header of a version that is above the shim's: refused, open is not called. */
#include <cuweir/policy.h>

#include <stdlib.h>

static int open_new(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	abort();
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION + 1,
	.name = "new_abi",
	.open = open_new,
};
