/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded before the shim: while `starve` is on, nobody but the program gets pages. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void starve(bool on);

static bool starving;

void starve(bool on)
{
	__atomic_store_n(&starving, on, __ATOMIC_RELAXED);
}

static bool is_shim(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) != 0 && info.dli_fname != NULL &&
	       strstr(info.dli_fname, "libcuweir.so") != NULL;
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	if (__atomic_load_n(&starving, __ATOMIC_RELAXED) && is_shim(__builtin_return_address(0))) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}
