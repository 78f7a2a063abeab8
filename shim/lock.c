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
		if ((__atomic_load_n(&lock->state, __ATOMIC_RELAXED) & CW_LOCK_HELD) == 0 &&
				cw_lock_try(lock)) {
			return;
		}
		pause_briefly();
	}
	/* Marked from here on, since others may sleep: at worst a wake too many. */
	while ((__atomic_exchange_n(&lock->state, CW_LOCK_HELD | CW_LOCK_AWAITED,
			__ATOMIC_ACQUIRE) & CW_LOCK_HELD) != 0) {
		futex(&lock->state, FUTEX_WAIT_PRIVATE, CW_LOCK_HELD | CW_LOCK_AWAITED);
	}
}

/*
 * It is given back but for the mark. Somebody may have taken it since, and keeps it; the mark
 * goes before the wake, so that whoever fails to take it hereafter marks it anew: the one that
 * is woken here, or one that came in between, for all who sleep still.
 */
void cw_lock_wake(struct cw_lock *lock)
{
	__atomic_fetch_and(&lock->state, ~CW_LOCK_AWAITED, __ATOMIC_RELAXED);
	futex(&lock->state, FUTEX_WAKE_PRIVATE, 1);
}
