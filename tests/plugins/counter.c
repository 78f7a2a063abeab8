/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy for tests that counts the crossings of one threshold, both ways, and whether each
 * told crossing was one by its own before and after. Arguments: THRESHOLD:FILE; at the close
 * the file gets "ups=N downs=N wrong=N".
 */
#include <cuweir/policy.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t threshold[1];
static const char *file;
static atomic_ullong ups;
static atomic_ullong downs;
static atomic_ullong wrong;

static int open_counter(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	(void)ret_state;
	file = strchr(arguments, ':');
	if (file == NULL) {
		return host->refuse(host, "want THRESHOLD:FILE");
	}
	file++;
	threshold[0] = strtoull(arguments, NULL, 10);
	return CUWEIR_SUCCESS;
}

static const uint64_t *thresholds(void *state, size_t *ret_count)
{
	(void)state;
	*ret_count = 1;
	return threshold;
}

static int on_alloc_threshold(void *state, uint64_t total, const struct cuweir_event *event)
{
	(void)state;
	ups++;
	wrong += !(event->total_before < threshold[0] && threshold[0] <= event->total_after &&
		   total == event->total_after);
	return CUWEIR_SUCCESS;
}

static int on_dealloc_threshold(void *state, uint64_t total, const struct cuweir_event *event)
{
	(void)state;
	downs++;
	wrong += !(event->total_before >= threshold[0] && threshold[0] > event->total_after &&
		   total == event->total_after);
	return CUWEIR_SUCCESS;
}

static void close_counter(void *state)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	(void)state;
	if (fd < 0 || dprintf(fd, "ups=%llu downs=%llu wrong=%llu\n", ups, downs, wrong) < 0) {
		abort();
	}
	close(fd);
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "counter",
	.open = open_counter,
	.close = close_counter,
	.get_alloc_thresholds = thresholds,
	.get_dealloc_thresholds = thresholds,
	.on_alloc_threshold = on_alloc_threshold,
	.on_dealloc_threshold = on_dealloc_threshold,
};
