/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock of four bytes that costs two atomic operations where nobody else holds it: a futex
 * with three states. Zero is free, and zeroed memory needs no initialisation.
 */
#ifndef CUWEIR_POOL_LOCK_H
#define CUWEIR_POOL_LOCK_H

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

struct pool_lock {
	uint32_t state; /* 0 free, 1 held, 2 held and somebody may be waiting */
};

static inline void pool_lock_wait(struct pool_lock *lock)
{
	int saved_errno = errno;

	while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE) != 0) {
		syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
	}
	errno = saved_errno;
}

static inline void pool_lock_wake(struct pool_lock *lock)
{
	int saved_errno = errno;

	syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved_errno;
}

static inline void pool_lock_acquire(struct pool_lock *lock)
{
	uint32_t free_state = 0;

	if (__builtin_expect(!__atomic_compare_exchange_n(&lock->state, &free_state, 1, 0,
							  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED),
			     0)) {
		pool_lock_wait(lock);
	}
}

static inline void pool_lock_release(struct pool_lock *lock)
{
	if (__builtin_expect(__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2, 0)) {
		pool_lock_wake(lock);
	}
}

#endif
