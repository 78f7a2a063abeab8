/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy whose state is gone once its own object is closed: a callback after that would end
 * the program. It says "lingering open ARGUMENTS", "lingering SIZE by CALL" and "lingering
 * close", and sleeps in on_allocated of an allocation of 300 bytes.
 */
#include <cuweir/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct lingering {
	const struct cuweir_host *host;
	uint64_t told;
};

static struct lingering *only;

__attribute__((constructor)) static void load(void)
{
	only = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (only == MAP_FAILED) {
		abort();
	}
}

__attribute__((destructor)) static void unload(void)
{
	munmap(only, 4096);
}

static int open_lingering(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	char line[300];

	only->host = host;
	*ret_state = only;
	snprintf(line, sizeof(line), "lingering open %s", arguments);
	return host->log(host, line);
}

static void close_lingering(void *state)
{
	struct lingering *lingering = state;

	lingering->host->log(lingering->host, "lingering close");
}

static void on_allocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	struct lingering *lingering = state;
	char line[100];

	lingering->told++;
	if (size == 300) {
		usleep(400000);
	}
	snprintf(line, sizeof(line), "lingering %llu by %s", (unsigned long long)size, event->call);
	lingering->host->log(lingering->host, line);
}

static int admit(void *state, const struct cuweir_event *event)
{
	struct lingering *lingering = state;

	lingering->told++;
	return CUWEIR_SUCCESS;
}

static void before_free(void *state, const struct cuweir_event *event)
{
	struct lingering *lingering = state;

	lingering->told++;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.flags = CUWEIR_POLICY_DEBUG,
	.name = "lingering",
	.open = open_lingering,
	.close = close_lingering,
	.on_allocated = on_allocated,
	.admit = admit,
	.before_free = before_free,
};
