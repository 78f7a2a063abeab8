/* SPDX-License-Identifier: Apache-2.0 */
#include "sites.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf_read.h"
#include "ledger.h"
#include "message.h"
#include "old_glibc.h"
#include "origins.h"

/*
 * A program has a few hundred call sites. What there is beyond this number is summed up by call, at
 * "an unknown place", for which there is always room.
 */
enum { TABLE_SIZE = 8192, TABLE_LIMIT = TABLE_SIZE * 3 / 4, UNKNOWN_LIMIT = TABLE_LIMIT + 1024 };

struct table {
	struct cw_site *entries;
	size_t used;
	int device;
};

static bool same_place(const struct cw_site *entry, const struct cw_origin *origin)
{
	return entry->site == origin->site && entry->hook == origin->hook &&
	       entry->kind == origin->kind && entry->device == origin->device;
}

/* NULL where the table is full and has no such entry. */
static struct cw_site *find(struct table *table, const struct cw_origin *origin)
{
	size_t at = (size_t)((origin->site ^ origin->hook) * UINT64_C(0x9e3779b97f4a7c15) >> 51);

	for (;; at = (at + 1) % TABLE_SIZE) {
		struct cw_site *entry = &table->entries[at % TABLE_SIZE];

		if (entry->count == 0) {
			if (table->used >= (origin->site != 0 ? TABLE_LIMIT : UNKNOWN_LIMIT)) {
				return NULL;
			}
			table->used++;
			entry->site = origin->site;
			entry->hook = origin->hook;
			entry->kind = origin->kind;
			entry->device = origin->device;
			entry->smallest = UINT64_MAX;
			return entry;
		}
		if (same_place(entry, origin)) {
			return entry;
		}
	}
}

static bool add(const struct cw_record *record, void *argument)
{
	const struct cw_origin *origin = cw_origin_get(record->origin);
	struct table *table = argument;
	struct cw_site *entry;

	if (table->device >= 0 && origin->device != table->device) {
		return true;
	}
	entry = find(table, origin);
	if (entry == NULL) {
		struct cw_origin unknown = *origin;

		unknown.site = 0;
		entry = find(table, &unknown);
	}
	if (entry != NULL) {
		entry->bytes += record->size;
		entry->count++;
		entry->smallest = record->size < entry->smallest ? record->size : entry->smallest;
		entry->largest = record->size > entry->largest ? record->size : entry->largest;
	}
	return true;
}

/* Keeps the list sorted, the largest first. */
static size_t keep_largest(struct cw_site *sites, size_t count, size_t room,
			   const struct cw_site *entry)
{
	size_t at = count;

	if (count == room && (room == 0 || entry->bytes <= sites[count - 1].bytes)) {
		return count;
	}
	if (count == room) {
		at--;
	} else {
		count++;
	}
	for (; at > 0 && sites[at - 1].bytes < entry->bytes; at--) {
		sites[at] = sites[at - 1];
	}
	sites[at] = *entry;
	return count;
}

size_t cw_sites_collect(struct cw_site *sites, size_t room, int device, size_t *ret_sites)
{
	const size_t size = TABLE_SIZE * sizeof(struct cw_site);
	struct table table = { .device = device };
	size_t count = 0;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*ret_sites = 0;
	if (memory == MAP_FAILED) {
		cw_message(CW_ERROR, "no memory to sum up call sites in: they are not listed");
		return 0;
	}
	table.entries = memory;
	cw_ledger_walk(add, &table);
	for (size_t i = 0; i < TABLE_SIZE; i++) {
		if (table.entries[i].count != 0) {
			count = keep_largest(sites, count, room, &table.entries[i]);
		}
	}
	*ret_sites = table.used;
	munmap(memory, size);
	return count;
}

const char *cw_site_text(char buffer[CW_SITE_TEXT], uint64_t stored, unsigned int frame)
{
	uint64_t site = cw_stack_frame(stored, frame);
	Dl_info module;

	if (site != 0 && dladdr((void *)(uintptr_t)site, &module) != 0 &&
	    module.dli_fname != NULL) {
		cw_format(buffer, CW_SITE_TEXT, "%s+0x%llx", cw_elf_basename(module.dli_fname),
			  (unsigned long long)(site - (uintptr_t)module.dli_fbase));
	} else {
		cw_format(buffer, CW_SITE_TEXT, CW_SITE_UNKNOWN);
	}
	return buffer;
}

/* ---- modules -------------------------------------------------------------------------------- */

static void note(struct cw_modules *modules, uint64_t site)
{
	Dl_info module;

	if (site == 0 || dladdr((void *)(uintptr_t)site, &module) == 0 ||
	    module.dli_fname == NULL) {
		return;
	}
	for (size_t i = 0; i < modules->count; i++) {
		if (modules->bases[i] == module.dli_fbase) {
			return;
		}
	}
	if (modules->count < CW_MODULES_MAX) {
		modules->bases[modules->count] = module.dli_fbase;
		modules->names[modules->count++] = module.dli_fname;
	}
}

void cw_modules_note(struct cw_modules *modules, uint64_t site)
{
	for (unsigned int i = 0; i < cw_stack_frames(site); i++) {
		note(modules, cw_stack_frame(site, i));
	}
}

/* The program's own is known to the loader by what it was called. */
static bool is_program(const void *base)
{
	Dl_info module;
	const void *headers = (const void *)(uintptr_t)getauxval(AT_PHDR);

	return headers != NULL && dladdr(headers, &module) != 0 && module.dli_fbase == base;
}

const char *cw_module_name(const struct cw_modules *modules, size_t index)
{
	return cw_elf_basename(modules->names[index]);
}

const char *cw_module_path(const struct cw_modules *modules, size_t index, char buffer[PATH_MAX])
{
	const char *name = modules->names[index];
	ssize_t length;

	if (is_program(modules->bases[index])) {
		length = readlink("/proc/self/exe", buffer, PATH_MAX - 1);
		if (length > 0) {
			buffer[length] = '\0';
			return buffer;
		}
	} else if (name[0] != '/' && realpath(name, buffer) != NULL) {
		return buffer;
	}
	return name;
}
