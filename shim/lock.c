/* SPDX-License-Identifier: Apache-2.0 */
/* The slow half of lock.h. Calls nothing but the futex system call; keeps errno. */
#include "lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Holders run a few hundred instructions (a growing shard some thousand), so most waits end
 * while spinning, and the two system calls of a sleep are saved.
 */
#define SPINS 100

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void futex(uint32_t *word, int operation, uint32_t value)
{
	int saved = errno;

	/* Errors are of no interest: whoever wakes, for whatever reason, looks again. */
	(void)syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
	errno = saved;
}

void cw_lock_wait(struct cw_lock *lock)
{
	__atomic_fetch_add(&lock->contended, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < SPINS; i++) {
		uint32_t expected = 0;

		if (__atomic_load_n(&lock->state, __ATOMIC_RELAXED) == 0 &&
				__atomic_compare_exchange_n(&lock->state, &expected, 1, false,
					__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			return;
		}
		pause_briefly();
	}
	/* Taken as 2 from here on, since others may sleep: at worst a wake too many. */
	while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE) != 0) {
		futex(&lock->state, FUTEX_WAIT_PRIVATE, 2);
	}
}

void cw_lock_wake(struct cw_lock *lock)
{
	futex(&lock->state, FUTEX_WAKE_PRIVATE, 1);
}
