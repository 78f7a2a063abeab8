/* SPDX-License-Identifier: Apache-2.0 */
#include "virtual_share.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handles.h"

/* Namespace in handles.h: identity -> number. */
enum { SHARE_SPACE = 97 };

/* CUmemAllocationHandleType; the second is younger than the oldest headers. */
enum { FILE_DESCRIPTOR = 1, FABRIC = 8, FABRIC_BYTES = 64 };

/* FNV-1a. */
static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < size; i++) {
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	}
	return hash;
}

uint64_t cw_share_identity(const void *shareable, int type)
{
	const uint64_t start = UINT64_C(0xcbf29ce484222325);
	int saved_errno = errno;
	struct stat file;
	long failed;

	if (type == FABRIC && shareable != NULL) {
		return mix(start, shareable, FABRIC_BYTES) | 1;
	}
	if (type != FILE_DESCRIPTOR) {
		return 0;
	}
	failed = syscall(SYS_fstat, (int)(intptr_t)shareable, &file);
	errno = saved_errno;
	if (failed != 0 || S_ISCHR(file.st_mode)) {
		return 0;
	}
	return mix(mix(start, &file.st_dev, sizeof(file.st_dev)), &file.st_ino,
		   sizeof(file.st_ino)) | 1;
}

void cw_share_remember(uint64_t identity, uint64_t number)
{
	cw_handles_set(SHARE_SPACE, identity, number, 0);
}

uint64_t cw_share_find(uint64_t identity)
{
	struct cw_handle entry;

	return identity != 0 && cw_handles_get(SHARE_SPACE, identity, &entry) ? entry.value : 0;
}

static bool of_number(const struct cw_handle *entry, void *argument)
{
	const uint64_t *number = argument;

	return entry->value == *number;
}

void cw_share_forget(uint64_t number)
{
	cw_handles_remove_if(SHARE_SPACE, of_number, &number);
}
