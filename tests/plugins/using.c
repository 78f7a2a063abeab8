/* SPDX-License-Identifier: Apache-2.0 */
/* A policy whose object takes 600 bytes as it is loaded: nobody is told, but the books know. */
#include <cuweir/policy.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static int load_status = -1;
static const struct cuweir_host *the_host;

static int use(void *driver)
{
	int (*retain)(void **, int);
	int (*push)(void *);
	int (*pop)(void **);
	int (*alloc)(unsigned long long *, size_t);
	unsigned long long p;
	void *context;
	int status;

	*(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
	*(void **)&push = dlsym(driver, "cuCtxPushCurrent_v2");
	*(void **)&pop = dlsym(driver, "cuCtxPopCurrent_v2");
	*(void **)&alloc = dlsym(driver, "cuMemAlloc_v2");
	status = retain(&context, 0);
	status = status != 0 ? status : push(context);
	status = status != 0 ? status : alloc(&p, 600);
	return status != 0 ? status : pop(&context);
}

__attribute__((constructor)) static void load(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	load_status = driver != NULL ? use(driver) : -2;
}

static int open_using(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	char line[80];

	the_host = host;
	snprintf(line, sizeof(line), "using: %d at its load", load_status);
	return host->log(host, line);
}

static void on_allocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	char line[100];

	snprintf(line, sizeof(line), "using %llu, total %llu", (unsigned long long)size,
		 (unsigned long long)event->total_after);
	the_host->log(the_host, line);
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.flags = CUWEIR_POLICY_DEBUG,
	.name = "using",
	.open = open_using,
	.on_allocated = on_allocated,
};
