/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy whose open waits for its program's constructor (tests/apps/opening.c), and asks the loader
 * for a library then. It says how large each allocation was.
 */
#include <cuweir/policy.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static const struct cuweir_host *the_host;

static int open_slowly(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	atomic_bool *in_open = dlsym(RTLD_DEFAULT, "opening_in_open");
	atomic_bool *in_constructor = dlsym(RTLD_DEFAULT, "opening_in_constructor");

	the_host = host;
	if (in_open == NULL || in_constructor == NULL) {
		return host->refuse(host, "want the program opening");
	}
	atomic_store(in_open, true);
	for (int i = 0; i < 20000 && !atomic_load(in_constructor); i++) {
		usleep(1000);
	}
	return dlopen("libpthread.so.0", RTLD_NOW) != NULL ? CUWEIR_SUCCESS : CUWEIR_ERROR_UNKNOWN;
}

static void on_allocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	char line[40];

	snprintf(line, sizeof(line), "slow_open %llu", (unsigned long long)size);
	the_host->log(the_host, line);
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.flags = CUWEIR_POLICY_DEBUG,
	.name = "slow_open",
	.open = open_slowly,
	.on_allocated = on_allocated,
};
