/* SPDX-License-Identifier: Apache-2.0 */
/* log_cost MODULE ARGUMENTS N: N allocations and frees through the policy, to be counted. */
#include "fake_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

int main(int argc, char **argv)
{
	static struct fake_host fake;
	if (argc < 4) {
		return 2;
	}
	const struct cuweir_policy *policy = fake_load(argv[1]);
	fake_host_init(&fake);
	void *log = fake_open(&fake, policy, argv[2]);
	struct cuweir_event event = fake_event(1048576, 0, 1048576);
	int count = atoi(argv[3]);
	for (int i = 0; i < count; i++) {
		event.pointer = (void *)(0x7f0000000000 + (uintptr_t)i * 1048576);
		policy->admit(log, &event);
		policy->on_allocated(log, 1048576, &event);
		policy->before_free(log, &event);
	}
	policy->close(log);
	return 0;
}
