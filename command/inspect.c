/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if __SIZEOF_POINTER__ == 8
#define OWN_CLASS ELFCLASS64
#else
#define OWN_CLASS ELFCLASS32
#endif
#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE
#endif

struct image {
	const unsigned char *bytes;
	size_t size;
};

/* NULL where the range is not all within the file. */
static const void *range(const struct image *image, uint64_t offset, uint64_t size)
{
	return offset <= image->size && size <= image->size - offset ? image->bytes + offset
								      : NULL;
}

static const ElfW(Phdr) *headers(const struct image *image, size_t *ret_count)
{
	const ElfW(Ehdr) *header = range(image, 0, sizeof(*header));
	const ElfW(Phdr) *first = NULL;

	*ret_count = 0;
	if (header != NULL && header->e_phentsize == sizeof(ElfW(Phdr))) {
		first = range(image, header->e_phoff,
			      (uint64_t)header->e_phnum * sizeof(ElfW(Phdr)));
	}
	if (first != NULL) {
		*ret_count = header->e_phnum;
	}
	return first;
}

static uint64_t offset_of(const ElfW(Phdr) *phdr, size_t count, uint64_t address)
{
	for (size_t i = 0; i < count; i++) {
		if (phdr[i].p_type == PT_LOAD && address >= phdr[i].p_vaddr &&
		    address - phdr[i].p_vaddr < phdr[i].p_filesz) {
			return address - phdr[i].p_vaddr + phdr[i].p_offset;
		}
	}
	return UINT64_MAX;
}

/* A string in the file, NULL where it does not end within it. */
static const char *string_at(const struct image *image, uint64_t offset)
{
	const char *text = range(image, offset, 1);

	return text != NULL && memchr(text, '\0', image->size - offset) != NULL ? text : NULL;
}

static void see_needed(const char *name, struct inspection *ret)
{
	if (strncmp(name, "libcudart", 9) == 0) {
		ret->cudart = CUDART_SHARED;
		snprintf(ret->cudart_name, sizeof(ret->cudart_name), "%s", name);
	} else if (strncmp(name, "libcuda.so", 10) == 0) {
		ret->links_driver = true;
	}
}

static void read_dynamic(const struct image *image, const ElfW(Phdr) *phdr, size_t count,
			 const ElfW(Phdr) *dynamic, struct inspection *ret)
{
	size_t entries = dynamic->p_filesz / sizeof(ElfW(Dyn));
	const ElfW(Dyn) *dyn = range(image, dynamic->p_offset, entries * sizeof(ElfW(Dyn)));
	uint64_t strings = UINT64_MAX;

	for (size_t i = 0; dyn != NULL && i < entries; i++) {
		if (dyn[i].d_tag == DT_FLAGS_1 && (dyn[i].d_un.d_val & DF_1_PIE) != 0) {
			ret->library = false;
		}
		if (dyn[i].d_tag == DT_STRTAB) {
			strings = offset_of(phdr, count, dyn[i].d_un.d_ptr);
		}
	}
	for (size_t i = 0; dyn != NULL && strings != UINT64_MAX && i < entries; i++) {
		if (dyn[i].d_tag == DT_NEEDED) {
			const char *name = string_at(image, strings + dyn[i].d_un.d_val);

			if (name != NULL) {
				see_needed(name, ret);
			}
		}
	}
}

static bool mentions(const struct image *image, const char *text)
{
	return memmem(image->bytes, image->size, text, strlen(text)) != NULL;
}

static void read_elf(const struct image *image, bool whole, struct inspection *ret)
{
	const ElfW(Ehdr) *header = range(image, 0, sizeof(*header));
	const ElfW(Phdr) *phdr;
	size_t count;

	ret->elf = true;
	if (header == NULL || header->e_ident[EI_CLASS] != OWN_CLASS ||
	    header->e_machine != OWN_MACHINE) {
		return;
	}
	ret->same_class = true;
	phdr = headers(image, &count);
	for (size_t i = 0; phdr != NULL && i < count; i++) {
		ret->dynamic |= phdr[i].p_type == PT_INTERP;
		if (phdr[i].p_type == PT_DYNAMIC) {
			/* Programs at any address say that they are programs. */
			ret->library = header->e_type == ET_DYN;
			read_dynamic(image, phdr, count, &phdr[i], ret);
		}
	}
	if (!whole) {
		return;
	}
	/* NVIDIA's static runtime opens the driver by this name, and says what it is. */
	if (ret->cudart == CUDART_NONE && mentions(image, "libcuda.so.1")) {
		if (mentions(image, "cudart") || mentions(image, "cudaMalloc")) {
			ret->cudart = CUDART_STATIC;
		} else {
			ret->opens_driver = true;
		}
	}
	ret->nvidia_runtime = ret->cudart == CUDART_STATIC && mentions(image, "cuGetExportTable");
	ret->opens_namespaces = mentions(image, "dlmopen");
}

static void read_script(const struct image *image, struct inspection *ret)
{
	size_t length = 2;
	size_t begin;

	ret->script = true;
	while (length < image->size && (image->bytes[length] == ' ' || image->bytes[length] == '\t')) {
		length++;
	}
	begin = length;
	while (length < image->size && image->bytes[length] > ' ') {
		length++;
	}
	snprintf(ret->interpreter, sizeof(ret->interpreter), "%.*s", (int)(length - begin),
		 (const char *)image->bytes + begin);
}

void inspect(const char *path, bool whole, struct inspection *ret)
{
	struct image image = { 0 };
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *mapped = MAP_FAILED;

	memset(ret, 0, sizeof(*ret));
	if (stat(path, &status) == 0) {
		ret->privileged = (status.st_mode & (S_ISUID | S_ISGID)) != 0 ||
				  getxattr(path, "security.capability", NULL, 0) > 0;
	}
	if (fd < 0) {
		return;
	}
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 4) {
		mapped = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	close(fd);
	if (mapped == MAP_FAILED) {
		return;
	}
	image.bytes = mapped;
	image.size = (size_t)status.st_size;
	ret->readable = true;
	if (memcmp(image.bytes, ELFMAG, SELFMAG) == 0) {
		read_elf(&image, whole, ret);
	} else if (image.bytes[0] == '#' && image.bytes[1] == '!') {
		read_script(&image, ret);
	}
	munmap(mapped, image.size);
}
