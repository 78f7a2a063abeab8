/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock of four bytes for the books (ledger, handles, origins): free when zero, so that
 * static storage needs no initialisation, and takeable before any constructor ran.
 *
 * A pthread mutex is ten times the size and cannot be made anew in a fork child by storing
 * a zero. A spin lock that yields would hang a real-time thread that waits for an ordinary
 * one on the same core. So: a futex of two bits. Uncontended it is one atomic operation each
 * way, and no function is called.
 *
 * Whoever holds one may not call a policy, the driver, or anything that may take another
 * lock, but as the order below says. Any thread; not from a signal handler that may interrupt
 * a holder (no CUDA function may be called there either).
 *
 * Order of the books' locks (lower first): graphs, origins, ledger shards ascending, handle shards
 * ascending. A thread holds two only for origins -> one handle shard, and
 * graphs -> one handle shard.
 */
#ifndef CW_LOCK_H
#define CW_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#define CW_LOCK_HELD 1u
#define CW_LOCK_AWAITED 2u

struct cw_lock {
	uint32_t state;     /* bit 0: held; bit 1: somebody may be waiting */
	uint32_t contended; /* acquisitions that found it held; for benches, wraps */
};

void cw_lock_wait(struct cw_lock *lock);
void cw_lock_wake(struct cw_lock *lock);

/* false: held by another; nothing is waited for. */
static inline bool cw_lock_try(struct cw_lock *lock)
{
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && !defined(__SANITIZE_THREAD__)
	/* Two instructions with the jump, of which compilers make four to eight. */
	bool held;

	__asm__ volatile("lock btsl $0, %1" : "=@ccc"(held), "+m"(lock->state) : : "memory");
	return __builtin_expect(!held, 1);
#else
	return __builtin_expect((__atomic_fetch_or(&lock->state, CW_LOCK_HELD, __ATOMIC_ACQUIRE) &
		CW_LOCK_HELD) == 0, 1);
#endif
}

static inline void cw_lock_acquire(struct cw_lock *lock)
{
	if (!cw_lock_try(lock)) {
		cw_lock_wait(lock);
	}
}

/* Gives it back; true: cw_lock_wake is still to be called. */
static inline bool cw_lock_drop(struct cw_lock *lock)
{
	return __builtin_expect(__atomic_sub_fetch(&lock->state, CW_LOCK_HELD, __ATOMIC_RELEASE) != 0,
		0);
}

static inline void cw_lock_release(struct cw_lock *lock)
{
	if (cw_lock_drop(lock)) {
		cw_lock_wake(lock);
	}
}

/* In a fork child only, where no other thread exists: whatever the state was, it is free. */
static inline void cw_lock_reset(struct cw_lock *lock)
{
	__atomic_store_n(&lock->state, 0, __ATOMIC_RELAXED);
}

#endif
