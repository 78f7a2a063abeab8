/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds physical memory, where no driver shows it: a handle's value that comes again while
 * the first memory is mapped, calls that were not heard, memory known again by its identity.
 * The batch is a stand-in that only writes down what has ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "physical.h"
#include "stacks.h"
#include "thread.h"
#include "virtual_books.h"
#include "virtual_share.h"

CW_TLS struct cw_thread cw_thread;
unsigned int cw_stack_depth_;

static uint64_t ended[64];
static unsigned int ended_count;
static unsigned int untracked;

uint64_t cw_stack_take_(const void *site)
{
	return (uint64_t)(uintptr_t)site;
}

void cw_batch_begin(struct cw_batch *batch, enum cw_hook_id hook, const void *site)
{
	(void)batch, (void)hook, (void)site;
}

bool cw_batch_take(struct cw_batch *batch, uint64_t key)
{
	(void)batch;
	assert_true(ended_count < 64);
	ended[ended_count++] = cw_key_handle(key);
	return true;
}

void cw_batch_announce(const struct cw_batch *batch)
{
	(void)batch;
}

CUresult cw_batch_finish(struct cw_batch *batch, CUresult result)
{
	(void)batch;
	return result;
}

void cw_count_untracked_allocation(void)
{
	untracked++;
}

static int start(void **state)
{
	(void)state;
	ended_count = 0;
	untracked = 0;
	return 0;
}

static uint64_t create(uint64_t handle)
{
	uint64_t number = cw_physical_number();

	assert_true(cw_physical_enter(number));
	assert_true(cw_virtual_handle(handle, number));
	return number;
}

static void map(uint64_t handle, uint64_t start_address, uint64_t size)
{
	cw_virtual_mapped(start_address, size, cw_virtual_hold(handle));
}

static bool release(uint64_t handle)
{
	struct cw_virtual_release one;

	return cw_virtual_release_begin(&one, handle, NULL);
}

static void unmap(uint64_t start_address, uint64_t size)
{
	cw_virtual_unmap_begin(start_address, size, NULL);
	cw_virtual_unmap_end(start_address, size, true);
}

static void value_comes_again(void **state)
{
	uint64_t first = create(7);
	uint64_t second, third;

	(void)state;
	map(7, 0x10000, 0x10000);
	assert_true(release(7));
	second = create(7);
	map(7, 0x20000, 0x10000);
	assert_true(release(7));
	third = create(7);
	assert_int_equal(ended_count, 0);
	assert_true(release(7));
	assert_int_equal(ended_count, 1);
	assert_int_equal(ended[0], third);
	unmap(0x10000, 0x10000);
	assert_int_equal(ended_count, 2);
	assert_int_equal(ended[1], first);
	unmap(0x20000, 0x10000);
	assert_int_equal(ended_count, 3);
	assert_int_equal(ended[2], second);
	assert_false(release(7));
}

/* The driver hands a value out that we think is alive: its releases were not heard. */
static void releases_not_heard(void **state)
{
	uint64_t first = create(8);
	uint64_t second = create(8);

	(void)state;
	assert_int_equal(ended_count, 1);
	assert_int_equal(ended[0], first);
	assert_true(release(8));
	assert_int_equal(ended[1], second);
	assert_int_equal(ended_count, 2);
}

static void unmappings_not_heard(void **state)
{
	uint64_t first = create(9);
	uint64_t second = create(10);

	(void)state;
	map(9, 0x30000, 0x10000);
	assert_true(release(9));
	map(10, 0x30000, 0x20000);
	assert_int_equal(ended_count, 1);
	assert_int_equal(ended[0], first);
	assert_true(release(10));
	/* A mapping in front of it that nobody heard of does not hide it. */
	unmap(0x20000, 0x30000);
	assert_int_equal(ended_count, 2);
	assert_int_equal(ended[1], second);
}

static void what_failed_is_as_before(void **state)
{
	struct cw_virtual_release one;
	uint64_t number = create(11);

	(void)state;
	map(11, 0x40000, 0x10000);
	assert_true(cw_virtual_release_begin(&one, 11, NULL));
	cw_virtual_release_undo(&one);
	cw_virtual_unmap_begin(0x40000, 0x10000, NULL);
	cw_virtual_unmap_end(0x40000, 0x10000, false);
	assert_int_equal(ended_count, 0);
	assert_true(release(11));
	cw_virtual_unmap_begin(0x40000, 0x10000, NULL);
	assert_int_equal(ended_count, 1);
	cw_virtual_unmap_end(0x40000, 0x10000, false);
	unmap(0x40000, 0x10000);
	assert_int_equal(ended_count, 2);
	assert_int_equal(ended[1], number);
	unmap(0x40000, 0x10000);
	assert_int_equal(ended_count, 2);
}

static void retained_by_address(void **state)
{
	uint64_t number = create(12);

	(void)state;
	map(12, 0x50000, 0x20000);
	assert_true(release(12));
	cw_virtual_retained(12, 0x6ffff);
	unmap(0x50000, 0x20000);
	assert_int_equal(ended_count, 0);
	assert_true(release(12));
	assert_int_equal(ended_count, 1);
	assert_int_equal(ended[0], number);
}

static void what_is_no_memory(void **state)
{
	(void)state;
	assert_true(cw_virtual_handle(13, 0));
	map(13, 0x70000, 0x10000);
	unmap(0x70000, 0x10000);
	assert_true(release(13));
	assert_false(release(13));
	assert_int_equal(ended_count, 0);
}

static void known_again_by_its_file(void **state)
{
	int file = memfd_create("memory", 0);
	int other = memfd_create("memory", 0);
	int again = dup(file);
	uint64_t number = create(14);
	int device;

	(void)state;
	cw_virtual_exported(14, (void *)(intptr_t)file, 1);
	cw_virtual_imported(15, (void *)(intptr_t)again, 1, 0);
	assert_true(release(14));
	assert_int_equal(ended_count, 0);
	assert_true(release(15));
	assert_int_equal(ended_count, 1);
	assert_int_equal(ended[0], number);

	/* Another process's memory: it has a size when it is mapped, and ends like any. */
	cw_virtual_imported(16, (void *)(intptr_t)other, 1, 3);
	cw_virtual_imported(17, (void *)(intptr_t)other, 1, 3);
	number = cw_virtual_hold(17);
	assert_true(number != 0);
	assert_true(cw_physical_first_mapping(number, &device));
	assert_int_equal(device, 3);
	assert_false(cw_physical_first_mapping(number, &device));
	cw_virtual_let_go(number);
	assert_true(release(16));
	assert_int_equal(ended_count, 1);
	assert_true(release(17));
	assert_int_equal(ended_count, 2);

	/* Never mapped, it had no record. */
	cw_virtual_imported(18, (void *)(intptr_t)file, 1, 0);
	assert_true(release(18));
	assert_int_equal(ended_count, 2);
	close(file);
	close(other);
	close(again);
}

static void identities(void **state)
{
	char fabric[64] = { 1, 2, 3 };
	char same[64] = { 1, 2, 3 };
	int device_file = open("/dev/null", 0);

	(void)state;
	assert_true(cw_share_identity(fabric, 8) == cw_share_identity(same, 8));
	same[63] = 1;
	assert_true(cw_share_identity(fabric, 8) != cw_share_identity(same, 8));
	/* All of a driver's descriptors are of one device file: they tell nothing. */
	assert_true(cw_share_identity((void *)(intptr_t)device_file, 1) == 0);
	assert_true(cw_share_identity((void *)(intptr_t)-1, 1) == 0);
	assert_true(cw_share_identity(fabric, 2) == 0);
	close(device_file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(value_comes_again, start),
		cmocka_unit_test_setup(releases_not_heard, start),
		cmocka_unit_test_setup(unmappings_not_heard, start),
		cmocka_unit_test_setup(what_failed_is_as_before, start),
		cmocka_unit_test_setup(retained_by_address, start),
		cmocka_unit_test_setup(what_is_no_memory, start),
		cmocka_unit_test_setup(known_again_by_its_file, start),
		cmocka_unit_test_setup(identities, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
