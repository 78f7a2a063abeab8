/* SPDX-License-Identifier: Apache-2.0 */
/* An example to copy: tells when memory crosses marks, and waits where it runs out. */
#include <cuweir/policy.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_MARKS 8
#define MAX_RETRIES 5
#define WAIT_NS 200000000ull

struct example {
	const struct cuweir_host *host;
	size_t count;
	uint64_t marks[MAX_MARKS]; /* written in `open` alone, so that it needs no lock */
};

static int open_example(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	struct example *example = calloc(1, sizeof(*example));
	if (example == NULL) {
		return host->refuse(host, "no memory for its state");
	}
	example->host = host;
	for (const char *next = arguments; *next != '\0';) {
		char *end;
		errno = 0;
		uint64_t mark = strtoull(next, &end, 10);
		if (*next < '0' || *next > '9' || errno != 0 || (*end != ',' && *end != '\0') ||
		    example->count == MAX_MARKS) {
			free(example);
			return host->refuse(host, "want up to 8 marks in bytes: 1048576,8388608");
		}
		example->marks[example->count++] = mark;
		next = *end == ',' ? end + 1 : end;
	}
	*ret_state = example;
	return CUWEIR_SUCCESS;
}

static const uint64_t *get_thresholds(void *state, size_t *ret_count)
{
	struct example *example = state;
	*ret_count = example->count;
	return example->marks;
}

static int on_threshold(void *state, uint64_t total, const struct cuweir_event *event)
{
	struct example *example = state;
	char line[200];
	snprintf(line, sizeof(line), "example: device %d is %s a mark: %llu bytes after %s",
		 event->device, event->total_after > event->total_before ? "over" : "under",
		 (unsigned long long)total, event->call);
	example->host->log(example->host, line);
	return CUWEIR_SUCCESS;
}

static bool on_alloc_failure(void *state, uint64_t size, int retry_count,
			     const struct cuweir_event *event)
{
	struct example *example = state;
	if (retry_count >= MAX_RETRIES) {
		return false;
	}
	/* Whatever it says: what is missing may be another process's, whose frees are not seen. */
	example->host->wait_for_free(example->host, WAIT_NS);
	return true;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "example",
	.summary = "tells when memory crosses marks, and waits where it runs out",
	.arguments = "marks in bytes: 1048576,8388608",
	.open = open_example,
	.get_alloc_thresholds = get_thresholds,
	.get_dealloc_thresholds = get_thresholds,
	.on_alloc_threshold = on_threshold,
	.on_dealloc_threshold = on_threshold,
	.on_alloc_failure = on_alloc_failure,
};
