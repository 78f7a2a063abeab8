/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the policies of a newer header share: a table with entries behind the known ones. The
 * entries that the shim knows say "NAME open".
 */
#ifndef TESTS_LARGER_H
#define TESTS_LARGER_H

#include <cuweir/policy.h>

#include <stdio.h>

struct larger_table {
	struct cuweir_policy policy;
	void (*more[4])(void);
};

extern CUWEIR_EXPORT const struct larger_table larger_entry __asm__("cuweir_policy_entry");

static inline int open_larger(const struct cuweir_host *host, const char *arguments,
			      void **ret_state)
{
	char line[80];
	snprintf(line, sizeof(line), "%s open", LARGER_NAME);
	return host->log(host, line);
}

#define LARGER_POLICY \
	{ \
		.struct_size = sizeof(struct larger_table), \
		.version = CUWEIR_POLICY_VERSION, \
		.name = LARGER_NAME, \
		.open = open_larger, \
	}

#endif
