/* SPDX-License-Identifier: Apache-2.0 */
/* Made with a newer header, and fills an entry that the shim does not have: refused. */
#define LARGER_NAME "new_entries"
#include "larger.h"

#include <stdlib.h>

const struct larger_table larger_entry = {
	.policy = LARGER_POLICY,
	.more = { [3] = abort }, /* the last one: all of them must be looked at */
};
