/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime that reaches the driver by a way nobody owns: the driver's object is opened, its symbol
 * table is walked here, and the rest comes from a private table. Neither dlsym nor cuGetProcAddress
 * is called (decision D-19).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "runtime.h"

typedef void *(*entry_fn)(const char *base, int version, unsigned long long flags);

static size_t count_symbols(const uint32_t *gnu_hash)
{
	uint32_t n_buckets = gnu_hash[0], offset = gnu_hash[1];
	const uint32_t *buckets = gnu_hash + 4 + (size_t)gnu_hash[2] * 2;
	const uint32_t *chain = buckets + n_buckets;
	uint32_t last = 0;

	for (uint32_t i = 0; i < n_buckets; i++) {
		last = buckets[i] > last ? buckets[i] : last;
	}
	if (last < offset) {
		return 0;
	}
	while ((chain[last - offset] & 1U) == 0) {
		last++;
	}
	return last + 1;
}

static void *find(const struct link_map *map, const char *name)
{
	const ElfW(Sym) *symbols = NULL;
	const char *strings = NULL;
	const uint32_t *hash = NULL;
	size_t n;

	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB) {
			symbols = (const void *)d->d_un.d_ptr;
		} else if (d->d_tag == DT_STRTAB) {
			strings = (const void *)d->d_un.d_ptr;
		} else if (d->d_tag == DT_GNU_HASH) {
			hash = (const void *)d->d_un.d_ptr;
		}
	}
	if (symbols == NULL || strings == NULL || hash == NULL) {
		return NULL;
	}
	n = count_symbols(hash);
	for (size_t i = 0; i < n; i++) {
		if (symbols[i].st_shndx != SHN_UNDEF &&
		    strcmp(strings + symbols[i].st_name, name) == 0) {
			return (void *)(map->l_addr + symbols[i].st_value);
		}
	}
	return NULL;
}

cudaError_t rt_find_driver(struct rt_driver *d)
{
	struct link_map *map = NULL;
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	entry_fn entry = NULL;
	void *p;

	if (handle == NULL || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) {
		return cudaErrorInsufficientDriver;
	}
	*(void **)&entry = find(map, "cuweir_sim_private_entry");
	if (entry == NULL) {
		return cudaErrorInsufficientDriver;
	}
	p = entry("cuGetProcAddress", 12000, 0);
	*(void **)&d->lookup = p;
#define TAKE(field, name, version, flags)                                                         \
	p = entry(name, version, flags);                                                          \
	if (p == NULL && (version) <= RT_LEAST_DRIVER) {                                           \
		return cudaErrorSymbolNotFound;                                                    \
	}                                                                                          \
	*(void **)&d->field = p;
#define DRV(base, version) TAKE(f_##base, #base, version, 0)
#define DRV_PT(base, version, pt_version, suffix)                                                  \
	TAKE(f_##base, #base, version, 0)                                                          \
	TAKE(f_##base##_pt, #base, pt_version, 2)
#include "driver.def"
#undef DRV
#undef DRV_PT
	return cudaSuccess;
}
