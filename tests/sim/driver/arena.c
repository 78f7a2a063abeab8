/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address space of a device, cut into blocks. Free blocks are kept by size in two-level segregated
 * lists, so that taking and giving cost the same whatever is live; everything about a block is held
 * outside the memory itself, which stays untouched (and so costs no host memory) until it is used.
 */
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

#define NONE 0U

static void *map(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Size class of a number of granules: exact below SIM_SL, then 16 steps per power of two. */
static void class_of(uint64_t granules, unsigned int *fl, unsigned int *sl)
{
	if (granules < SIM_SL) {
		*fl = 0;
		*sl = (unsigned int)granules;
	} else {
		unsigned int log2 = 63U - (unsigned int)__builtin_clzll(granules);

		*fl = log2 - 3;
		*sl = (unsigned int)(granules >> (log2 - 4)) & (SIM_SL - 1);
	}
}

static void mark(struct sim_arena *a, uint64_t granule, uint32_t i)
{
	a->start[granule] = i;
	for (unsigned int l = 0; l < a->levels; l++) {
		uint64_t *w = &a->level[l][granule / 64];
		uint64_t before = *w;

		*w |= 1ULL << (granule % 64);
		if (before != 0) {
			return;
		}
		granule /= 64;
	}
}

static void unmark(struct sim_arena *a, uint64_t granule)
{
	a->start[granule] = NONE;
	for (unsigned int l = 0; l < a->levels; l++) {
		uint64_t *w = &a->level[l][granule / 64];

		*w &= ~(1ULL << (granule % 64));
		if (*w != 0) {
			return;
		}
		granule /= 64;
	}
}

/* The last marked granule at or before the given one; there always is one. */
static uint64_t last_mark(const struct sim_arena *a, uint64_t granule)
{
	unsigned int l = 0;

	for (; l < a->levels; l++) {
		unsigned int bit = granule % 64;
		uint64_t w = a->level[l][granule / 64];

		w &= bit == 63 ? ~0ULL : (1ULL << (bit + 1)) - 1;
		if (w != 0) {
			granule = granule / 64 * 64 + 63U - (unsigned int)__builtin_clzll(w);
			break;
		}
		if (granule / 64 == 0) {
			return 0;
		}
		granule = granule / 64 - 1;
	}
	while (l-- > 0) {
		uint64_t w = a->level[l][granule];

		granule = granule * 64 + 63U - (unsigned int)__builtin_clzll(w);
	}
	return granule;
}

static uint32_t new_block(struct sim_arena *a)
{
	uint32_t i = a->spare;

	if (i != NONE) {
		a->spare = a->blocks[i].next;
		return i;
	}
	return a->n_blocks + 1 < a->max_blocks ? ++a->n_blocks : NONE;
}

void sim_list_add(struct sim_arena *a, uint32_t *head, uint32_t i)
{
	struct sim_block *b = &a->blocks[i];

	b->link_prev = NONE;
	b->link_next = *head;
	if (*head != NONE) {
		a->blocks[*head].link_prev = i;
	}
	*head = i;
}

void sim_list_del(struct sim_arena *a, uint32_t *head, uint32_t i)
{
	struct sim_block *b = &a->blocks[i];

	if (b->link_next != NONE) {
		a->blocks[b->link_next].link_prev = b->link_prev;
	}
	if (b->link_prev != NONE) {
		a->blocks[b->link_prev].link_next = b->link_next;
	} else {
		*head = b->link_next;
	}
}

static void put_free(struct sim_arena *a, uint32_t i)
{
	unsigned int fl, sl;

	class_of(a->blocks[i].span / SIM_GRANULE, &fl, &sl);
	a->blocks[i].state = SIM_FREE;
	sim_list_add(a, &a->head[fl][sl], i);
	a->sl_map[fl] |= (uint16_t)(1U << sl);
	a->fl_map |= 1ULL << fl;
}

static void drop_free(struct sim_arena *a, uint32_t i)
{
	unsigned int fl, sl;

	class_of(a->blocks[i].span / SIM_GRANULE, &fl, &sl);
	sim_list_del(a, &a->head[fl][sl], i);
	if (a->head[fl][sl] == NONE) {
		a->sl_map[fl] &= (uint16_t)~(1U << sl);
		if (a->sl_map[fl] == 0) {
			a->fl_map &= ~(1ULL << fl);
		}
	}
}

bool sim_arena_init(struct sim_arena *a, uint64_t size)
{
	uint64_t granules;
	uint64_t n;
	uint32_t i;

	size = (size + (1U << 21) - 1) >> 21 << 21;
	while ((a->base = map(size + (1U << 21))) == NULL && size > 1U << 26) {
		size = size / 2 >> 21 << 21;
	}
	if (a->base == NULL) {
		return false;
	}
	a->base += -(uintptr_t)a->base & ((1U << 21) - 1);
	granules = size / SIM_GRANULE;
	a->max_blocks = granules + 2 < 1U << 25 ? (uint32_t)granules + 2 : 1U << 25;
	a->blocks = map((uint64_t)a->max_blocks * sizeof(*a->blocks));
	a->start = map(granules * sizeof(*a->start));
	for (n = granules; n > 0 && a->levels < SIM_LEVELS; n = n > 1 ? (n + 63) / 64 : 0) {
		a->level[a->levels++] = map((n + 63) / 64 * 8);
		if (n <= 64) {
			break;
		}
	}
	if (a->blocks == NULL || a->start == NULL) {
		return false;
	}
	i = new_block(a);
	a->blocks[i].span = size;
	mark(a, 0, i);
	put_free(a, i);
	a->size = size;
	return true;
}

/* Cut a block after span bytes; the rest becomes a block of the same state, in no list. */
bool sim_arena_split(struct sim_arena *a, uint32_t i, uint64_t span, uint32_t *ret_rest)
{
	uint32_t r = new_block(a);
	struct sim_block *b = &a->blocks[i];
	struct sim_block *n;

	if (r == NONE) {
		return false;
	}
	n = &a->blocks[r];
	*n = *b;
	n->off = b->off + span;
	n->span = b->span - span;
	n->prev = i;
	if (n->next != NONE) {
		a->blocks[n->next].prev = r;
	}
	b->next = r;
	b->span = span;
	mark(a, n->off / SIM_GRANULE, r);
	*ret_rest = r;
	return true;
}

static void merge_next(struct sim_arena *a, uint32_t i)
{
	struct sim_block *b = &a->blocks[i];
	uint32_t n = b->next;

	unmark(a, a->blocks[n].off / SIM_GRANULE);
	b->span += a->blocks[n].span;
	b->next = a->blocks[n].next;
	if (b->next != NONE) {
		a->blocks[b->next].prev = i;
	}
	a->blocks[n].next = a->spare;
	a->spare = n;
}

static void really_give(struct sim_arena *a, uint32_t i)
{
	uint32_t n = a->blocks[i].next;
	uint32_t p = a->blocks[i].prev;

	if (n != NONE && a->blocks[n].state == SIM_FREE && n != a->held) {
		drop_free(a, n);
		merge_next(a, i);
	}
	if (p != NONE && a->blocks[p].state == SIM_FREE && p != a->held) {
		drop_free(a, p);
		merge_next(a, p);
		i = p;
	}
	put_free(a, i);
}

static uint32_t find_fit(struct sim_arena *a, uint64_t granules)
{
	unsigned int fl, sl;
	uint64_t up;
	uint32_t map16;

	if (granules >= SIM_SL) {
		granules += (1ULL << (63 - __builtin_clzll(granules) - 4)) - 1;
	}
	class_of(granules, &fl, &sl);
	map16 = (uint32_t)a->sl_map[fl] & (0xffffU << sl);
	if (map16 == 0) {
		up = a->fl_map & (~0ULL << (fl + 1));
		if (up == 0) {
			return NONE;
		}
		fl = (unsigned int)__builtin_ctzll(up);
		map16 = a->sl_map[fl];
	}
	return a->head[fl][__builtin_ctz(map16)];
}

static void unhold(struct sim_arena *a)
{
	uint32_t i = a->held;

	if (i != NONE) {
		a->held = NONE;
		really_give(a, i);
	}
}

uint32_t sim_arena_take(struct sim_arena *a, uint64_t size)
{
	uint64_t span = (size + SIM_GRANULE - 1) / SIM_GRANULE * SIM_GRANULE;
	uint32_t i = a->held;
	uint32_t rest;

	if (span < size || span > a->size) {
		return NONE;
	}
	if (i != NONE && a->blocks[i].span >= span) {
		a->held = NONE;
	} else {
		i = find_fit(a, span / SIM_GRANULE);
		if (i == NONE) {
			unhold(a);
			i = find_fit(a, span / SIM_GRANULE);
		}
		if (i == NONE) {
			return NONE;
		}
		drop_free(a, i);
	}
	a->blocks[i].state = SIM_LIVE;
	if (a->blocks[i].span > span && sim_arena_split(a, i, span, &rest)) {
		really_give(a, rest);
	}
	a->blocks[i].size = size;
	return i;
}

void sim_arena_give(struct sim_arena *a, uint32_t i)
{
	struct sim_block *b = &a->blocks[i];

	if (b->span >= 16U << 20) {
		madvise(a->base + b->off, b->span, MADV_DONTNEED);
	}
	b->state = SIM_FREE;
	if (sim_set.reissue) {
		uint32_t old = a->held;

		a->held = i;
		if (old != NONE) {
			really_give(a, old);
		}
		return;
	}
	really_give(a, i);
}

uint32_t sim_arena_at(const struct sim_arena *a, uint64_t addr)
{
	uint64_t off = addr - (uint64_t)(uintptr_t)a->base;
	uint32_t i;

	if (off >= a->size || off % SIM_GRANULE != 0) {
		return NONE;
	}
	i = a->start[off / SIM_GRANULE];
	return i != NONE && a->blocks[i].state != SIM_FREE ? i : NONE;
}

uint32_t sim_arena_find(const struct sim_arena *a, uint64_t addr)
{
	uint64_t off = addr - (uint64_t)(uintptr_t)a->base;
	uint32_t i;

	if (off >= a->size) {
		return NONE;
	}
	i = a->start[last_mark(a, off / SIM_GRANULE)];
	if (i == NONE || a->blocks[i].state == SIM_FREE ||
	    off - a->blocks[i].off >= a->blocks[i].size) {
		return NONE;
	}
	return i;
}
