/* SPDX-License-Identifier: Apache-2.0 */
#include "wait.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint32_t cw_wait_listeners_;
static uint32_t frees_heard;

uint32_t cw_wait_frees_heard(void)
{
	return __atomic_load_n(&frees_heard, __ATOMIC_SEQ_CST);
}

uint32_t cw_wait_listen(void)
{
	__atomic_fetch_add(&cw_wait_listeners_, 1, __ATOMIC_SEQ_CST);
	return cw_wait_frees_heard();
}

void cw_wait_leave(void)
{
	__atomic_fetch_sub(&cw_wait_listeners_, 1, __ATOMIC_SEQ_CST);
}

CW_COLD void cw_wait_wake_(void)
{
	int saved_errno = errno;

	__atomic_fetch_add(&frees_heard, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &frees_heard, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	errno = saved_errno;
}

bool cw_wait(uint32_t seen, uint64_t timeout_ns)
{
	enum { NS_PER_S = 1000000000 };
	struct timespec deadline;
	int saved_errno = errno;
	bool came = true;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	if (timeout_ns / NS_PER_S > 1u << 30) {
		timeout_ns = (1ull << 30) * NS_PER_S;
	}
	deadline.tv_sec += (time_t)(timeout_ns / NS_PER_S);
	deadline.tv_nsec += (long)(timeout_ns % NS_PER_S);
	if (deadline.tv_nsec >= NS_PER_S) {
		deadline.tv_nsec -= NS_PER_S;
		deadline.tv_sec++;
	}
	while (__atomic_load_n(&frees_heard, __ATOMIC_SEQ_CST) == seen) {
		long result = syscall(SYS_futex, &frees_heard, FUTEX_WAIT_BITSET_PRIVATE, seen,
				      &deadline, NULL, FUTEX_BITSET_MATCH_ANY);

		if (result < 0 && errno == ETIMEDOUT) {
			came = __atomic_load_n(&frees_heard, __ATOMIC_SEQ_CST) != seen;
			break;
		}
	}
	errno = saved_errno;
	return came;
}

void cw_wait_postfork_child(void)
{
	__atomic_store_n(&cw_wait_listeners_, 0, __ATOMIC_SEQ_CST);
}
