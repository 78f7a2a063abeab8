/* SPDX-License-Identifier: Apache-2.0 */
/* policy.h alone, as a policy in C sees it: it compiles by itself and has the layout it had. */
#include <cuweir/policy.h>

#include "header_abi.h"

static int open_nothing(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	*ret_state = NULL;
	return arguments[0] == '\0' ? CUWEIR_SUCCESS : host->refuse(host, "want no arguments");
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "nothing",
	.open = open_nothing,
};
