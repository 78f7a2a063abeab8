/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and loading the object of a policy. Waits for the dynamic linker's lock. */
#ifndef CW_PLUGIN_H
#define CW_PLUGIN_H

#include <cuweir/policy.h>
#include <stddef.h>

/*
 * The table of the policy of this name, or at this path; the object stays for good. NULL with the
 * reason, and what would be right, written.
 */
const struct cuweir_policy *cw_plugin_load(const char *name, char *ret_reason, size_t size);

#endif
