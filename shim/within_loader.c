/* SPDX-License-Identifier: Apache-2.0 */
#include "within_loader.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common.h"

enum { WORDS = 512, MOST = 64 }; /* a page; so many are looked through for a caller */

struct range {
	uintptr_t begin;
	uintptr_t end;
};

/* The linker's code. */
static bool find_linker(struct range *ret)
{
	const char *base = (const char *)getauxval(AT_BASE);
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)(const void *)base;
	const ElfW(Phdr) *segment;

	if (base == NULL) {
		return false;
	}
	segment = (const ElfW(Phdr) *)(const void *)(base + header->e_phoff);
	for (int i = 0; i < header->e_phnum; i++, segment++) {
		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0) {
			ret->begin = (uintptr_t)base + segment->p_vaddr;
			ret->end = ret->begin + segment->p_memsz;
			return true;
		}
	}
	return false;
}

/* By the kernel, which knows where a stack ends: that of a coroutine, too. */
static bool read_words(uintptr_t address, uintptr_t *ret_words)
{
	struct iovec here = { ret_words, WORDS * sizeof(*ret_words) };
	struct iovec there = { (void *)address, WORDS * sizeof(*ret_words) };

	return syscall(SYS_process_vm_readv, getpid(), &here, 1L, &there, 1L, 0L) ==
	       (long)here.iov_len;
}

CW_COLD bool cw_within_loader(void)
{
	uintptr_t words[WORDS];
	struct range linker;
	/* From above our own frame, whose copy of the stack would be looked through again. */
	uintptr_t at = (uintptr_t)__builtin_frame_address(0);

	if (!find_linker(&linker)) {
		return false;
	}
	for (int piece = 0; piece < MOST; piece++) {
		/* Whole pages, so that the last one of a stack can be read. */
		uintptr_t from = (at & ~(uintptr_t)(sizeof(words) - 1)) + (uintptr_t)piece * sizeof(words);

		if (!read_words(from, words)) {
			return false;
		}
		for (size_t i = piece == 0 ? (at - from) / sizeof(words[0]) : 0; i < WORDS; i++) {
			if (words[i] >= linker.begin && words[i] < linker.end) {
				return true;
			}
		}
	}
	return false;
}
