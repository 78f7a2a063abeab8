/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a shared limit: held by the dead. */
#include "test_main.h"

#include "test_limit_start.h"

#include "../../policy/limit_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void *claim(void *limit)
{
	struct cuweir_event event = fake_event(10, 0, 0);
	return policy->admit(limit, &event) == CUWEIR_SUCCESS ? limit : NULL;
}

static struct shared_file *map_file(void)
{
	int fd = open(path_of("lock"), O_RDWR | O_CLOEXEC);
	void *file = mmap(NULL, sizeof(struct shared_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  0);
	close(fd);
	assert_ptr_not_equal(file, MAP_FAILED);
	return file;
}

/* Killed with the lock held: two that wait for it get it, one after the other. */
static void test_lock_of_the_dead(void **state)
{
	struct fake_host fake;
	fake_host_init(&fake);
	fake.budget_status = CUWEIR_SUCCESS;
	void *limit = fake_open(&fake, policy, "1000,shared=lock");
	struct shared_file *file = map_file();
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
	pid_t child = fork();
	if (child == 0) {
		_exit(policy->admit(limit, &event) == CUWEIR_SUCCESS ? raise(SIGSTOP) : 1);
	}
	int status;
	waitpid(child, &status, WUNTRACED);
	assert_true(WIFSTOPPED(status));
	struct rlimit old;
	getrlimit(RLIMIT_NOFILE, &old);
	struct rlimit none = { 0, old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	int refused = policy->admit(limit, &event);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	int admitted = policy->admit(limit, &event);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(refused, CUWEIR_ERROR_OUT_OF_MEMORY);
	assert_int_equal(admitted, CUWEIR_SUCCESS);
	policy->on_alloc_failed(limit, &event);
}

static int tear_down(void **state)
{
	static const char *const names[] = { "lock" };
	return remove_files(names, 1);
}

TEST_MAIN_WITH(NULL, tear_down,
	cmocka_unit_test(test_lock_of_the_dead),
	cmocka_unit_test(test_without_descriptors));
