/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: each look at the monotonic clock finds another second gone. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static long seconds;
	long result = syscall(SYS_clock_gettime, clock, now);

	if (clock == CLOCK_MONOTONIC) {
		now->tv_sec += __atomic_add_fetch(&seconds, 1, __ATOMIC_RELAXED);
	}
	return (int)result;
}
