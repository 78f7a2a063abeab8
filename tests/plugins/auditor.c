/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy for tests that does nothing until it is closed, and then holds the three books
 * against each other: the totals, the sum of the live records, and what the simulated GPU
 * knows to be in use. Its argument is the file that gets a line for each device and kind,
 * "DEVICE KIND totals=N records=N truth=N".
 */
#include <cuweir/policy.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DEVICES = 8, KINDS = CUWEIR_KIND_IMPORTED + 1 };

/* The numbers that the simulated GPU has for our kinds, see tests/sim/sim.h. */
static const int truth_kinds[KINDS] = {
	[CUWEIR_KIND_DEVICE] = 0,
	[CUWEIR_KIND_MANAGED] = 1,
	[CUWEIR_KIND_HOST] = 2,
	[CUWEIR_KIND_REGISTERED] = 6,
	[CUWEIR_KIND_IMPORTED] = 3,
};

struct auditor {
	const struct cuweir_host *host;
	const char *file;
};

struct sums {
	uint64_t bytes[DEVICES][KINDS];
};

static int open_auditor(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct auditor *auditor = calloc(1, sizeof(*auditor));

	if (auditor == NULL) {
		return host->refuse(host, "no memory");
	}
	auditor->host = host;
	auditor->file = arguments;
	*ret_state = auditor;
	return CUWEIR_SUCCESS;
}

static bool add(const struct cuweir_record *record, void *argument)
{
	struct sums *sums = argument;

	if (record->device >= 0 && record->device < DEVICES && record->kind < KINDS) {
		sums->bytes[record->device][record->kind] += record->charged;
	}
	return true;
}

static void close_auditor(void *state)
{
	struct auditor *auditor = state;
	struct sums sums = { 0 };
	unsigned long long (*used)(int, int) = NULL;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int fd = open(auditor->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (driver != NULL) {
		*(void **)&used = dlsym(driver, "cuweir_sim_used");
	}
	if (fd < 0 || used == NULL) {
		abort();
	}
	auditor->host->walk(auditor->host, add, &sums);
	for (int device = 0; device < DEVICES; device++) {
		for (int kind = CUWEIR_KIND_DEVICE; kind < KINDS; kind++) {
			struct cuweir_totals totals = { .struct_size = sizeof(totals) };

			auditor->host->totals(auditor->host, device, kind, &totals);
			dprintf(fd, "%d %d totals=%llu records=%llu truth=%llu\n", device, kind,
				(unsigned long long)totals.current,
				(unsigned long long)sums.bytes[device][kind],
				used(device, truth_kinds[kind]));
		}
	}
	close(fd);
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "auditor",
	.open = open_auditor,
	.close = close_auditor,
};
