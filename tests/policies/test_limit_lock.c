/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a shared limit: held by the dead, and by the stopped. */
#include "test_main.h"

#include "test_limit_start.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void *claim(void *limit)
{
	struct cuweir_event event = fake_event(10, 0, 0);
	return policy->admit(limit, &event) == CUWEIR_SUCCESS ? limit : NULL;
}

/* Killed with the lock held: two that wait for it get it, one after the other. */
static void test_lock_of_the_dead(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	fake.budget_status = CUWEIR_SUCCESS;
	void *limit = fake_open(&fake, policy, "1000,shared=lock");
	struct shared_file *file = map_file("lock");
	struct cuweir_event event = fake_event(10, 0, 0);
	pid_t child = fork();
	if (child == 0) {
		pthread_mutex_lock(&file->lock);
		raise(SIGSTOP);
	}
	int status;
	waitpid(child, &status, WUNTRACED);
	assert_true(WIFSTOPPED(status));
	pthread_t threads[2];
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, claim, limit), 0);
	}
	usleep(200 * 1000); /* both wait: nothing but the lock orders what they do next */
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	for (int i = 0; i < 2; i++) {
		void *result = NULL;
		pthread_join(threads[i], &result);
		assert_ptr_equal(result, limit);
		policy->on_alloc_failed(limit, &event);
	}
	munmap(file, sizeof(*file));
}

/* Out of descriptors nobody's start can be read, and whoever is there still counts. */
static void test_without_descriptors(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	fake.budget_status = CUWEIR_SUCCESS;
	void *limit = fake_open(&fake, policy, "1000,shared=lock");
	struct cuweir_event event = fake_event(600, 0, 0);
	pid_t child = stop_with_memory(limit, &event);
	struct rlimit old;
	getrlimit(RLIMIT_NOFILE, &old);
	struct rlimit none = { 0, old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	int refused = policy->admit(limit, &event);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	int admitted = policy->admit(limit, &event);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(refused, CUWEIR_ERROR_OUT_OF_MEMORY);
	assert_int_equal(admitted, CUWEIR_SUCCESS);
	policy->on_alloc_failed(limit, &event);
}

static pid_t stop_with_lock(struct shared_file *file)
{
	pid_t child = fork();
	int status;
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_mutex_lock(&file->lock);
		raise(SIGSTOP);
		pthread_mutex_unlock(&file->lock);
		_exit(0);
	}
	waitpid(child, &status, WUNTRACED);
	assert_true(WIFSTOPPED(status));
	return child;
}

static void let_go_on(pid_t child)
{
	int status;
	kill(child, SIGCONT);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* What is freed while another process is stopped with the lock counts at once. */
static void test_lock_of_the_stopped(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	fake.budget_status = CUWEIR_SUCCESS;
	void *limit = fake_open(&fake, policy, "1000,shared=lock");
	struct shared_file *file = map_file("lock");
	struct cuweir_event event = fake_event(300, 0, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(policy->admit(limit, &event), CUWEIR_SUCCESS);
		policy->on_allocated(limit, 300, &event);
	}
	pid_t child = stop_with_lock(file);
	uint64_t before = now_ms();
	for (int i = 0; i < 3; i++) {
		policy->on_deallocated(limit, 300, &event);
	}
	assert_true(now_ms() - before < 1000);
	for (uint32_t i = 0; i < file->used; i++) {
		assert_int_equal(file->places[i].bytes[0], 0);
	}
	/* The first that needs the lock waits for it, the next ones only try. */
	assert_int_equal(policy->admit(limit, &event), CUWEIR_ERROR_OUT_OF_MEMORY);
	assert_true(now_ms() - before >= 4900);
	before = now_ms();
	assert_int_equal(policy->admit(limit, &event), CUWEIR_ERROR_OUT_OF_MEMORY);
	struct cuweir_memory_info info = {
		.struct_size = sizeof(info), .free_bytes = 5000, .total_bytes = 5000,
	};
	policy->memory_info(limit, &info);
	assert_true(now_ms() - before < 2000);
	assert_int_equal(fake.line_count, 1);
	assert_non_null(strstr(fake.lines[0], "shared=lock cannot be asked: a stopped process "
					      "holds its lock"));
	let_go_on(child);
	event = fake_event(1000, 0, 0);
	assert_int_equal(policy->admit(limit, &event), CUWEIR_SUCCESS);
	policy->on_alloc_failed(limit, &event);
	munmap(file, sizeof(*file));
}

/* A child of fork has no place yet: what it has without a claim counts when it has the lock. */
static void test_pending(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	fake.budget_status = CUWEIR_SUCCESS;
	void *limit = fake_open(&fake, policy, "1000,shared=lock");
	struct shared_file *file = map_file("lock");
	struct cuweir_event event = fake_event(400, 0, 0);
	/* The device has its number before. */
	assert_int_equal(policy->admit(limit, &event), CUWEIR_SUCCESS);
	policy->on_alloc_failed(limit, &event);
	pid_t stopped = stop_with_lock(file);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		policy->on_allocated(limit, 400, &event);
		policy->on_allocated(limit, 400, &event);
		policy->on_deallocated(limit, 400, &event);
		raise(SIGSTOP);
		event = fake_event(601, 0, 0);
		bool good = policy->admit(limit, &event) == CUWEIR_ERROR_OUT_OF_MEMORY;
		event = fake_event(600, 0, 0);
		_exit(good && policy->admit(limit, &event) == CUWEIR_SUCCESS ? 0 : 1);
	}
	int status;
	waitpid(child, &status, WUNTRACED);
	assert_true(WIFSTOPPED(status));
	let_go_on(stopped);
	let_go_on(child);
	munmap(file, sizeof(*file));
}

static int tear_down(void **state)
{
	static const char *const names[] = { "lock" };
	return remove_files(names, 1);
}

TEST_MAIN_WITH(NULL, tear_down,
	cmocka_unit_test(test_lock_of_the_dead),
	cmocka_unit_test(test_without_descriptors),
	cmocka_unit_test(test_lock_of_the_stopped),
	cmocka_unit_test(test_pending));
