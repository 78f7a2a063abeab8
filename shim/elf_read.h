/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the symbol tables of objects that are already loaded. Freestanding: of libc it calls
 * getauxval() alone, so it may be used from the first look-up of a process on, by any thread,
 * in a callback, in a fork child and in a signal handler. Of a link_map only l_addr, l_name
 * and l_ld are read; a caller with the facts from elsewhere may make one up on its stack.
 * The caller sees to it that the object stays loaded meanwhile. A NULL object has nothing.
 */
#ifndef CW_ELF_H
#define CW_ELF_H

#include <link.h>
#include <stdbool.h>

/* The first object of the process, the program itself; NULL where none can be found. */
const struct link_map *cw_elf_first(void);

/*
 * The address of a symbol that the object defines, NULL where it defines none of that name.
 * Of several versions the default one is taken, as the linker would. An indirect function is
 * resolved. cw_elf_versioned() takes the given version, or an unversioned definition.
 */
void *cw_elf_symbol(const struct link_map *object, const char *name);
void *cw_elf_versioned(const struct link_map *object, const char *name, const char *version);

/*
 * Whether the loader has relocated the object, as far as its last jump slot tells: one that
 * another thread is just loading is in the list before it can be called.
 */
bool cw_elf_is_relocated(const struct link_map *object);

/* DT_SONAME, NULL where the object has none. */
const char *cw_elf_soname(const struct link_map *object);

/* The index-th DT_NEEDED, NULL past the last. */
const char *cw_elf_needed(const struct link_map *object, unsigned int index);

/* The name of a function that the object exports at exactly this address, or NULL. */
const char *cw_elf_name_at(const struct link_map *object, const void *address);

/* Text, without libc. */
static inline bool cw_elf_same(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static inline bool cw_elf_begins(const char *text, const char *prefix)
{
	while (*prefix != '\0') {
		if (*text++ != *prefix++) {
			return false;
		}
	}
	return true;
}

/* The last part of a path; of one without a slash, all of it. */
static inline const char *cw_elf_basename(const char *path)
{
	const char *last = path;

	for (; *path != '\0'; path++) {
		if (*path == '/') {
			last = path + 1;
		}
	}
	return last;
}

#endif
