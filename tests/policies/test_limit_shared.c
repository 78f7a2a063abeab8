/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that share a limit, killed at any moment and started anew: never above it, never
 * stuck, nothing left behind. CUWEIR_TEST_SECONDS says for how long (10).
 *
 * The truth is kept beside: each process adds to its own figure after it has memory and takes
 * away before it gives it back, so that the sum of the figures is never above what is in use.
 */
#include "test_main.h"

#include "test_limit_start.h"

#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 3
#define THREADS 2
#define LIMIT 1000
#define BLOCKS 8

struct truth {
	atomic_ullong bytes[WORKERS];
	atomic_ullong taken[WORKERS];   /* allocations that were admitted */
	atomic_ullong refused[WORKERS];
};

static struct truth *truth;

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct strand {
	void *limit;
	int worker;
	unsigned int random;
};

static void *allocate_and_free(void *argument)
{
	struct strand *strand = argument;
	uint64_t blocks[BLOCKS] = { 0 };
	for (;;) {
		strand->random = strand->random * 1664525u + 1013904223u;
		uint64_t *block = &blocks[strand->random >> 8 & (BLOCKS - 1)];
		struct cuweir_event event = fake_event(*block, 0, 0);
		if (*block != 0) {
			atomic_fetch_sub(&truth->bytes[strand->worker], *block);
			policy->on_deallocated(strand->limit, *block, &event);
			*block = 0;
			continue;
		}
		event = fake_event((strand->random >> 16) % 400 + 1, 0, 0);
		if (policy->admit(strand->limit, &event) != CUWEIR_SUCCESS) {
			atomic_fetch_add(&truth->refused[strand->worker], 1);
			policy->on_alloc_failed(strand->limit, &event);
		} else if ((strand->random >> 4 & 7) == 0) {
			policy->on_alloc_failed(strand->limit, &event); /* the driver had none */
		} else {
			*block = event.requested;
			policy->on_allocated(strand->limit, *block, &event);
			atomic_fetch_add(&truth->bytes[strand->worker], *block);
			atomic_fetch_add(&truth->taken[strand->worker], 1);
		}
	}
	return NULL;
}

static pid_t start(int worker, unsigned int seed)
{
	pid_t child = fork();
	if (child != 0) {
		return child;
	}
	/* Not left running where the test itself fails, or is killed for its time. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct fake_host fake;
	void *state = NULL;
	struct strand strands[THREADS];
	pthread_t thread;
	fake_host_init(&fake);
	fake.budget_status = CUWEIR_SUCCESS;
	if (policy->open(&fake.host, "1000,shared=kill", &state) != CUWEIR_SUCCESS) {
		fprintf(stderr, "%s\n", fake.reason);
		_exit(3);
	}
	for (int i = 0; i < THREADS; i++) {
		strands[i] = (struct strand){ state, worker, seed * 7 + (unsigned int)i };
	}
	pthread_create(&thread, NULL, allocate_and_free, &strands[1]);
	allocate_and_free(&strands[0]);
	_exit(4);
}

static void check_sum(void)
{
	uint64_t sum = 0;
	for (int i = 0; i < WORKERS; i++) {
		sum += atomic_load(&truth->bytes[i]);
	}
	if (sum > LIMIT) {
		fail_msg("%llu bytes are in use, %d is the limit", (unsigned long long)sum, LIMIT);
	}
}

static void test_killed_and_started_anew(void **state)
{
	const char *setting = getenv("CUWEIR_TEST_SECONDS");
	uint64_t end = now_ms() + 1000u * (uint64_t)(setting != NULL ? atoi(setting) : 10);
	unsigned int seed = (unsigned int)getpid();
	unsigned long long kills = 0;
	unsigned long long refused = 0;
	uint64_t moved[WORKERS];
	unsigned long long taken[WORKERS] = { 0 };
	pid_t workers[WORKERS];
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = start(i, seed++);
		moved[i] = now_ms();
	}
	while (now_ms() < end) {
		seed = seed * 1664525u + 1013904223u;
		usleep(seed >> 20); /* up to 4 ms */
		for (int i = 0; i < 20; i++) {
			check_sum();
		}
		for (int i = 0; i < WORKERS; i++) {
			unsigned long long seen = atomic_load(&truth->taken[i]);
			if (seen != taken[i]) {
				taken[i] = seen;
				moved[i] = now_ms();
			} else if (now_ms() - moved[i] > 4000) {
				fail_msg("worker %d is stuck", i);
			}
		}
		/* Its figure goes only when it is surely gone, and nothing is checked before. */
		int victim = (int)(seed >> 10) % WORKERS;
		victim = victim < 0 ? -victim : victim;
		int status;
		kill(workers[victim], SIGKILL);
		assert_int_equal(waitpid(workers[victim], &status, 0), workers[victim]);
		if (!WIFSIGNALED(status)) {
			fail_msg("worker %d ended by itself, status %d", victim,
				 WEXITSTATUS(status));
		}
		atomic_store(&truth->bytes[victim], 0);
		workers[victim] = start(victim, seed);
		moved[victim] = now_ms();
		kills++;
	}
	for (int i = 0; i < WORKERS; i++) {
		kill(workers[i], SIGKILL);
		waitpid(workers[i], NULL, 0);
		refused += atomic_load(&truth->refused[i]);
	}
	assert_true(kills > 50);
	assert_true(refused > 100); /* the limit was reached */
	/* All are gone: the whole limit is there. */
	struct fake_host fake;
	fake_host_init(&fake);
	fake.budget_status = CUWEIR_SUCCESS;
	void *limit = fake_open(&fake, policy, "1000,shared=kill");
	struct cuweir_event event = fake_event(LIMIT, 0, 0);
	assert_int_equal(policy->admit(limit, &event), CUWEIR_SUCCESS);
	policy->on_alloc_failed(limit, &event);
	printf("%llu kills, %llu allocations, %llu refused\n", kills,
	       taken[0] + taken[1] + taken[2], refused);
}

/* P-39: who waits for one that was killed goes on within a second. */
static void test_claims_of_the_dead(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	fake.budget_status = CUWEIR_SUCCESS;
	void *limit = fake_open(&fake, policy, "1000,shared=kill");
	struct cuweir_event event = fake_event(600, 0, 0);
	pid_t child = stop_with_memory(limit, &event);
	assert_int_equal(policy->admit(limit, &event), CUWEIR_ERROR_OUT_OF_MEMORY);
	kill(child, SIGKILL);
	siginfo_t info;
	waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
	uint64_t before = now_ms();
	/* A zombie has nothing any more. */
	assert_int_equal(policy->admit(limit, &event), CUWEIR_SUCCESS);
	assert_true(now_ms() - before < 1000);
	policy->on_alloc_failed(limit, &event);
	waitpid(child, NULL, 0);
}

static int set_up(void **state)
{
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	return truth != MAP_FAILED ? 0 : -1;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "kill" };
	return remove_files(names, 1);
}

TEST_MAIN_WITH(set_up, tear_down,
	cmocka_unit_test(test_killed_and_started_anew),
	cmocka_unit_test(test_claims_of_the_dead));
