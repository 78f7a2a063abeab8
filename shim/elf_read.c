/* SPDX-License-Identifier: Apache-2.0 */
#include "elf_read.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

/* What the functions below need of an object's dynamic section. */
struct tables {
	uintptr_t base;
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Half) * versions;
	const ElfW(Verdef) * definitions;
	const uint32_t *gnu_hash;
	const uint32_t *sysv_hash;
	const char *soname;
};

/*
 * glibc adds the load address to the pointers of a dynamic section in place, except where
 * the section is read-only (the vDSO's is): those are still offsets, below any address.
 */
static const void *pointer_of(const struct link_map *object, const ElfW(Dyn) * entry)
{
	uintptr_t value = entry->d_un.d_ptr;

	if (value < object->l_addr) {
		value += object->l_addr;
	}
	return (const void *)value;
}

static bool read_tables(const struct link_map *object, struct tables *ret_tables)
{
	const ElfW(Dyn) *entry = object == NULL ? NULL : object->l_ld;
	uintptr_t soname = 0;
	bool has_soname = false;

	/* Field by field: for an initialiser clang calls memset() at -O0. */
	ret_tables->base = object == NULL ? 0 : object->l_addr;
	ret_tables->symbols = NULL;
	ret_tables->strings = NULL;
	ret_tables->versions = NULL;
	ret_tables->definitions = NULL;
	ret_tables->gnu_hash = NULL;
	ret_tables->sysv_hash = NULL;
	ret_tables->soname = NULL;
	if (entry == NULL) {
		return false;
	}
	for (; entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
		case DT_SYMTAB:
			ret_tables->symbols = pointer_of(object, entry);
			break;
		case DT_STRTAB:
			ret_tables->strings = pointer_of(object, entry);
			break;
		case DT_VERSYM:
			ret_tables->versions = pointer_of(object, entry);
			break;
		case DT_VERDEF:
			ret_tables->definitions = pointer_of(object, entry);
			break;
		case DT_GNU_HASH:
			ret_tables->gnu_hash = pointer_of(object, entry);
			break;
		case DT_HASH:
			ret_tables->sysv_hash = pointer_of(object, entry);
			break;
		case DT_SONAME:
			soname = entry->d_un.d_val;
			has_soname = true;
			break;
		}
	}
	if (has_soname && ret_tables->strings != NULL) {
		ret_tables->soname = ret_tables->strings + soname;
	}
	return ret_tables->symbols != NULL && ret_tables->strings != NULL;
}

static uint32_t gnu_hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name != '\0'; name++) {
		hash = hash * 33 + (unsigned char)*name;
	}
	return hash;
}

static uint32_t sysv_hash_of(const char *name)
{
	uint32_t hash = 0;

	for (; *name != '\0'; name++) {
		uint32_t high;

		hash = (hash << 4) + (unsigned char)*name;
		high = hash & 0xf0000000u;
		hash = (hash ^ (high >> 24)) & ~high;
	}
	return hash;
}

static bool is_defined(const ElfW(Sym) * symbol)
{
	unsigned int type = symbol->st_info & 0xfu;

	return symbol->st_shndx != SHN_UNDEF && type != STT_TLS && type != STT_SECTION &&
	       type != STT_FILE && (symbol->st_value != 0 || symbol->st_shndx == SHN_ABS);
}

/* How well symbol `index` answers: 0 not at all, 1 where nothing better is found, 2 best. */
static int fitness(const struct tables *tables, uint32_t index, const char *version)
{
	const ElfW(Verdef) *definition = tables->definitions;
	unsigned int wanted;

	if (tables->versions == NULL) {
		return 2;
	}
	wanted = tables->versions[index];
	if (version == NULL) {
		return (wanted & 0x8000u) != 0 ? 1 : 2;
	}
	wanted &= 0x7fffu;
	if (wanted <= VER_NDX_GLOBAL) {
		return 1;
	}
	while (definition != NULL) {
		if (definition->vd_ndx == wanted) {
			const ElfW(Verdaux) *name =
				(const void *)((const char *)definition + definition->vd_aux);

			return cw_elf_same(tables->strings + name->vda_name, version) ? 2 : 0;
		}
		definition = definition->vd_next == 0 ? NULL
						      : (const void *)((const char *)definition +
								       definition->vd_next);
	}
	return 0;
}

struct search {
	const struct tables *tables;
	const char *name;
	const char *version;
	const ElfW(Sym) * best;
	int best_fitness;
};

/* Returns true when nothing better can follow. */
static bool try_symbol(struct search *search, uint32_t index)
{
	const ElfW(Sym) *symbol = &search->tables->symbols[index];
	int fits;

	if (!is_defined(symbol) ||
	    !cw_elf_same(search->tables->strings + symbol->st_name, search->name)) {
		return false;
	}
	fits = fitness(search->tables, index, search->version);
	if (fits > search->best_fitness) {
		search->best = symbol;
		search->best_fitness = fits;
	}
	return search->best_fitness == 2;
}

static void search_gnu(struct search *search)
{
	const uint32_t *head = search->tables->gnu_hash;
	uint32_t bucket_count = head[0];
	uint32_t first = head[1];
	const uint32_t *buckets = (const uint32_t *)((const ElfW(Addr) *)&head[4] + head[2]);
	const uint32_t *chain = buckets + bucket_count;
	uint32_t hash = gnu_hash_of(search->name);
	uint32_t index;

	if (bucket_count == 0) {
		return;
	}
	index = buckets[hash % bucket_count];
	if (index < first) {
		return;
	}
	for (;; index++) {
		uint32_t word = chain[index - first];

		if ((word | 1u) == (hash | 1u) && try_symbol(search, index)) {
			return;
		}
		if ((word & 1u) != 0) {
			return;
		}
	}
}

static void search_sysv(struct search *search)
{
	const uint32_t *head = search->tables->sysv_hash;
	const uint32_t *buckets = head + 2;
	const uint32_t *chain = buckets + head[0];
	uint32_t index;

	if (head[0] == 0) {
		return;
	}
	for (index = buckets[sysv_hash_of(search->name) % head[0]]; index != 0;
	     index = chain[index]) {
		if (try_symbol(search, index)) {
			return;
		}
	}
}

/* An indirect function is asked for its address the way the loader asks. */
static void *resolve_indirect(uintptr_t resolver)
{
#if defined(__aarch64__)
	struct {
		unsigned long size;
		unsigned long hwcap;
		unsigned long hwcap2;
	} argument = { sizeof argument, getauxval(AT_HWCAP), getauxval(AT_HWCAP2) };

	return ((void *(*)(uint64_t, const void *))resolver)(argument.hwcap | (1ull << 62),
							     &argument);
#else
	return ((void *(*)(void))resolver)();
#endif
}

static void *address_of(const struct tables *tables, const ElfW(Sym) * symbol)
{
	uintptr_t value = symbol->st_value;

	if (symbol->st_shndx != SHN_ABS) {
		value += tables->base;
	}
	if ((symbol->st_info & 0xfu) == STT_GNU_IFUNC) {
		return resolve_indirect(value);
	}
	return (void *)value;
}

bool cw_elf_is_relocated(const struct link_map *object)
{
	const ElfW(Dyn) *entry = object == NULL ? NULL : object->l_ld;
	const ElfW(Rela) *slots = NULL;
	struct tables tables;
	size_t size = 0;
	bool with_addends = false;

	if (!read_tables(object, &tables) || object->l_addr == 0) {
		return true;
	}
	for (; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_JMPREL) {
			slots = pointer_of(object, entry);
		} else if (entry->d_tag == DT_PLTRELSZ) {
			size = entry->d_un.d_val;
		} else if (entry->d_tag == DT_PLTREL) {
			with_addends = entry->d_un.d_val == DT_RELA;
		}
	}
	if (slots == NULL || !with_addends) {
		return true;
	}
	for (size_t i = size / sizeof(*slots); i > 0; i--) {
		/* The symbol is in the upper half of 64 bits, above 8 of 32. */
		size_t symbol = slots[i - 1].r_info >> (sizeof(void *) == 8 ? 32 : 8);
		uintptr_t value;

		if (tables.symbols[symbol].st_info >> 4 == STB_WEAK) {
			continue; /* 0 is what it may be */
		}
		/* In the file it is an offset, if anything. */
		value = *(const volatile uintptr_t *)(object->l_addr + slots[i - 1].r_offset);
		return value >= object->l_addr || value > UINT32_MAX;
	}
	return true;
}

void *cw_elf_versioned(const struct link_map *object, const char *name, const char *version)
{
	struct tables tables;
	struct search search;

	if (!read_tables(object, &tables)) {
		return NULL;
	}
	search.tables = &tables;
	search.name = name;
	search.version = version;
	search.best = NULL;
	search.best_fitness = 0;
	if (tables.gnu_hash != NULL) {
		search_gnu(&search);
	} else if (tables.sysv_hash != NULL) {
		search_sysv(&search);
	}
	return search.best == NULL ? NULL : address_of(&tables, search.best);
}

void *cw_elf_symbol(const struct link_map *object, const char *name)
{
	return cw_elf_versioned(object, name, NULL);
}

const char *cw_elf_soname(const struct link_map *object)
{
	struct tables tables;

	read_tables(object, &tables);
	return tables.soname;
}

const char *cw_elf_needed(const struct link_map *object, unsigned int index)
{
	const ElfW(Dyn) *entry;
	struct tables tables;

	if (!read_tables(object, &tables)) {
		return NULL;
	}
	for (entry = object->l_ld; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_NEEDED && index-- == 0) {
			return tables.strings + entry->d_un.d_val;
		}
	}
	return NULL;
}

/* One past the last symbol; a GNU hash table tells it by the end of its last chain. */
static uint32_t symbol_count(const struct tables *tables)
{
	const uint32_t *head = tables->gnu_hash;
	const uint32_t *buckets;
	uint32_t last = 0;

	if (tables->sysv_hash != NULL) {
		return tables->sysv_hash[1];
	}
	if (head == NULL) {
		return 0;
	}
	buckets = (const uint32_t *)((const ElfW(Addr) *)&head[4] + head[2]);
	for (uint32_t i = 0; i < head[0]; i++) {
		last = buckets[i] > last ? buckets[i] : last;
	}
	if (last < head[1]) {
		return 0;
	}
	while ((buckets[head[0] + last - head[1]] & 1u) == 0) {
		last++;
	}
	return last + 1;
}

const char *cw_elf_name_at(const struct link_map *object, const void *address)
{
	struct tables tables;
	uint32_t count = read_tables(object, &tables) ? symbol_count(&tables) : 0;

	for (uint32_t i = 1; i < count; i++) {
		const ElfW(Sym) *symbol = &tables.symbols[i];

		if (is_defined(symbol) && (symbol->st_info & 0xfu) == STT_FUNC &&
		    tables.base + symbol->st_value == (uintptr_t)address) {
			return tables.strings + symbol->st_name;
		}
	}
	return NULL;
}

static const ElfW(Dyn) *dynamic_of(const ElfW(Phdr) * headers, unsigned long count, uintptr_t base)
{
	for (unsigned long i = 0; i < count; i++) {
		if (headers[i].p_type == PT_DYNAMIC) {
			return (const void *)(base + headers[i].p_vaddr);
		}
	}
	return NULL;
}

/* A program need not have DT_DEBUG, or may keep it read-only: then by the loader's symbol. */
static const struct link_map *first_by_loader(void)
{
	uintptr_t base = getauxval(AT_BASE);
	const ElfW(Ehdr) *header = (const void *)base;
	const struct r_debug *debug;
	struct link_map loader;

	if (base == 0) {
		return NULL;
	}
	loader.l_addr = base;
	loader.l_ld = (void *)dynamic_of((const void *)(base + header->e_phoff), header->e_phnum,
					 base);
	debug = cw_elf_symbol(&loader, "_r_debug");
	return debug == NULL ? NULL : debug->r_map;
}

/*
 * The loader publishes its list of objects in the program's DT_DEBUG, for debuggers. To
 * refer to its symbol _r_debug would make the loader one of our DT_NEEDED.
 */
const struct link_map *cw_elf_first(void)
{
	const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
	unsigned long count = getauxval(AT_PHNUM);
	const ElfW(Dyn) *entry;
	uintptr_t base = 0;

	if (headers == NULL) {
		return first_by_loader();
	}
	for (unsigned long i = 0; i < count; i++) {
		if (headers[i].p_type == PT_PHDR) {
			base = (uintptr_t)headers - headers[i].p_vaddr;
		}
	}
	entry = dynamic_of(headers, count, base);
	for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_DEBUG && entry->d_un.d_ptr != 0) {
			return ((const struct r_debug *)entry->d_un.d_ptr)->r_map;
		}
	}
	return first_by_loader();
}
