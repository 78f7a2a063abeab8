/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host without a shim, for unit tests of policies: it answers from fields that the test
 * sets and keeps what the policy asked for. One struct cuweir_host for each fake.
 */
#ifndef TESTS_FAKE_HOST_H
#define TESTS_FAKE_HOST_H

#include <cuweir/policy.h>

#include <pthread.h>

#define FAKE_DEVICES 2
#define FAKE_LINES 64
#define FAKE_WAITS 16

struct fake_host {
	struct cuweir_host host;
	pthread_mutex_t lock; /* of the lines */
	size_t line_count;    /* of all, also those beyond FAKE_LINES */
	char lines[FAKE_LINES][512];
	char reason[512]; /* of the last refuse */
	bool debug;
	struct cuweir_totals totals[FAKE_DEVICES][CUWEIR_KIND_COUNT];

	int wait_answers[FAKE_WAITS]; /* of wait_for_free, in turn; the last one stays */
	uint64_t wait_times[FAKE_WAITS];
	size_t wait_count;

	int budget_status; /* NOT_SUPPORTED at first */
	int budget_device;
	uint32_t budget_kinds;
	uint64_t budget_bytes;
	uint64_t budget_used;
	uint64_t budget_reserved;
	uint64_t budgets[64]; /* by device; UINT64_MAX where none was set */

	int trim_status; /* NOT_SUPPORTED at first */
	int trim_device;
	unsigned int trim_count;

	const struct cuweir_event *event; /* of current_event */

	/* Of driver_function; NULL there or from it: CUWEIR_ERROR_NOT_FOUND. */
	void *(*find_driver)(const char *symbol);

	/* What stands behind the policy: an allocator that counts and hands out addresses. */
	struct cuweir_allocator next;
	uint64_t next_left; /* bytes that it still has */
	unsigned int next_allocations;
	unsigned int next_frees;
	void *next_freed_stream;
	void *next_freed;
	uint64_t next_sizes[256]; /* by block */
};

void fake_host_init(struct fake_host *fake);

/* Loads a module and returns its table; the test fails where that cannot be done. */
const struct cuweir_policy *fake_load(const char *path);

/* Opens a policy that must open, and returns its state. */
void *fake_open(struct fake_host *fake, const struct cuweir_policy *policy,
		const char *arguments);

/* Opens a policy that must refuse: its reason, an empty text where it gave none. */
const char *fake_open_refused(struct fake_host *fake, const struct cuweir_policy *policy,
			      const char *arguments);

/* An event of cudaMalloc on device 0 and this thread, `total` before and after it. */
struct cuweir_event fake_event(uint64_t size, uint64_t total_before, uint64_t total_after);

/* The same facts with a pointer and the total where it is: what before_free is told. */
struct cuweir_event fake_free_event(uint64_t size, void *pointer, uint64_t total);

#endif
