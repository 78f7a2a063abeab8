/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Include in every file of the preloaded object that uses one of the functions below. glibc
 * 2.34 moved them from libdl and libpthread into libc under a new symbol version; a file that
 * was linked there asks for that version, and the object would not load on an older glibc
 * (D-24). The old versions, below 2.17 everywhere, are still served by every glibc. Such a
 * file is named in meson.build, too, under shim_apart_names.
 *
 * Not to be had this way, and so not to be used: stat(), fstat(), lstat() (2.33; the older
 * name differs), statx (2.28), gettid (2.30), getrandom (2.25), reallocarray (2.26): raw
 * syscalls do. dlsym and dlvsym are never imported: see lookup.h.
 */
#ifndef CW_OLD_GLIBC_H
#define CW_OLD_GLIBC_H

#if defined(__x86_64__)
#define CW_OLD(name, x86_64_version) __asm__(".symver " #name "," #name "@GLIBC_" x86_64_version)
#define CW_RENAMED(name, old) __asm__(".symver " #name "," #old "@GLIBC_2.2.5")
#elif defined(__aarch64__)
#define CW_OLD(name, x86_64_version) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#define CW_RENAMED(name, old) __asm__(".symver " #name "," #old "@GLIBC_2.17")
#else
#error "name this architecture's first glibc version"
#endif

CW_OLD(dlopen, "2.2.5");
CW_OLD(dlerror, "2.2.5");
CW_OLD(dladdr, "2.2.5");
CW_OLD(dladdr1, "2.3.3");
CW_OLD(dlinfo, "2.3.3");
CW_OLD(pthread_create, "2.2.5");
CW_OLD(pthread_join, "2.2.5");
CW_OLD(pthread_detach, "2.2.5");
CW_OLD(pthread_kill, "2.2.5");
CW_OLD(pthread_once, "2.2.5");
CW_OLD(pthread_key_create, "2.2.5");
CW_OLD(pthread_key_delete, "2.2.5");
CW_OLD(pthread_getspecific, "2.2.5");
CW_OLD(pthread_setspecific, "2.2.5");
CW_OLD(pthread_sigmask, "2.2.5");
CW_OLD(pthread_mutex_trylock, "2.2.5");
CW_OLD(pthread_mutex_timedlock, "2.2.5");
CW_OLD(pthread_mutexattr_init, "2.2.5");
CW_OLD(pthread_mutexattr_destroy, "2.2.5");
CW_OLD(pthread_mutexattr_settype, "2.2.5");
CW_OLD(pthread_mutexattr_setpshared, "2.2.5");
CW_OLD(pthread_mutexattr_setrobust, "2.12");
CW_OLD(pthread_mutex_consistent, "2.12");
CW_OLD(pthread_condattr_setclock, "2.3.3");
CW_OLD(pthread_condattr_setpshared, "2.2.5");
CW_OLD(pthread_rwlock_rdlock, "2.2.5");
CW_OLD(pthread_rwlock_wrlock, "2.2.5");
CW_OLD(pthread_rwlock_unlock, "2.2.5");
CW_OLD(pthread_setname_np, "2.12");
CW_OLD(sem_init, "2.2.5");
CW_OLD(sem_post, "2.2.5");
CW_OLD(sem_wait, "2.2.5");
/* With 64-bit offsets, as Meson builds, fcntl() compiles to fcntl64(), which came with 2.28. */
CW_RENAMED(fcntl64, fcntl);

#undef CW_OLD
#undef CW_RENAMED

#endif
