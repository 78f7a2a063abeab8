/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Include in every file of a policy that uses one of the functions below. A policy is loaded
 * where the shim is, into containers with an old glibc too (D-24): newer glibcs moved these
 * into libc under a new symbol version, and still serve the old one. stat and fstat have no
 * old version under their name; the system calls fill the same struct.
 */
#ifndef CUWEIR_POLICY_OLD_GLIBC_H
#define CUWEIR_POLICY_OLD_GLIBC_H

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OLD_VERSION(name, x86_64_version) \
	__asm__(".symver " #name "," #name "@GLIBC_" x86_64_version)
#elif defined(__aarch64__)
#define OLD_VERSION(name, x86_64_version) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#else
#define OLD_VERSION(name, x86_64_version) _Static_assert(1, "")
#endif

OLD_VERSION(pthread_sigmask, "2.2.5");
OLD_VERSION(pthread_mutex_trylock, "2.2.5");
OLD_VERSION(pthread_mutex_timedlock, "2.2.5");
OLD_VERSION(pthread_mutexattr_init, "2.2.5");
OLD_VERSION(pthread_mutexattr_destroy, "2.2.5");
OLD_VERSION(pthread_mutexattr_setpshared, "2.2.5");
OLD_VERSION(pthread_mutexattr_setrobust, "2.12");
OLD_VERSION(pthread_mutex_consistent, "2.12");

#undef OLD_VERSION

static inline int old_fstat(int fd, struct stat *ret_status)
{
	return (int)syscall(SYS_fstat, fd, ret_status);
}

static inline int old_stat(const char *path, struct stat *ret_status)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, ret_status, 0);
}

#endif
