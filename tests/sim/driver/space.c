/* SPDX-License-Identifier: Apache-2.0 */
/* Two tables sorted by address: reservations, and mapped pieces. */
#include <string.h>
#include <sys/mman.h>

#include "internal.h"
#include "space.h"

#define MAX_SPACES (1U << 18)
#define MAX_RESERVED (1U << 16)

pthread_mutex_t sim_space_lock = PTHREAD_MUTEX_INITIALIZER;

static struct sim_space *spaces;
static size_t n_spaces;
static struct sim_reservation *reserved;
static size_t n_reserved;
static _Atomic bool any;

static void *table(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static bool ready(void)
{
	if (spaces == NULL) {
		spaces = table(MAX_SPACES * sizeof(*spaces));
		reserved = table(MAX_RESERVED * sizeof(*reserved));
	}
	atomic_store(&any, true);
	return spaces != NULL && reserved != NULL;
}

/* The number of pieces that begin at or before an address. */
static size_t spaces_upto(uint64_t addr)
{
	size_t lo = 0, hi = n_spaces;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (spaces[mid].addr <= addr) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

static size_t reserved_upto(uint64_t addr)
{
	size_t lo = 0, hi = n_reserved;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (reserved[mid].addr <= addr) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

struct sim_space *sim_space_add(const struct sim_space *s)
{
	static uint64_t ids = 1ULL << 40; /* apart from those of blocks */
	size_t i;

	if (!ready() || n_spaces == MAX_SPACES) {
		return NULL;
	}
	i = spaces_upto(s->addr);
	memmove(&spaces[i + 1], &spaces[i], (n_spaces - i) * sizeof(*spaces));
	n_spaces++;
	spaces[i] = *s;
	spaces[i].id = ids++;
	return &spaces[i];
}

void sim_space_del(struct sim_space *s)
{
	size_t i = (size_t)(s - spaces);

	n_spaces--;
	memmove(&spaces[i], &spaces[i + 1], (n_spaces - i) * sizeof(*spaces));
}

struct sim_space *sim_space_find(uint64_t addr)
{
	size_t i = spaces_upto(addr);

	return i > 0 && addr - spaces[i - 1].addr < spaces[i - 1].size ? &spaces[i - 1] : NULL;
}

/* The piece around an address, or the first one after it. */
struct sim_space *sim_space_from(uint64_t addr)
{
	struct sim_space *s = sim_space_find(addr);
	size_t i = spaces_upto(addr);

	if (s != NULL) {
		return s;
	}
	return i < n_spaces ? &spaces[i] : NULL;
}

struct sim_space *sim_space_next(const struct sim_space *s)
{
	size_t i = (size_t)(s - spaces) + 1;

	return i < n_spaces ? &spaces[i] : NULL;
}

struct sim_reservation *sim_reserved(uint64_t addr)
{
	size_t i = reserved_upto(addr);

	return i > 0 && addr - reserved[i - 1].addr < reserved[i - 1].size ? &reserved[i - 1]
									    : NULL;
}

bool sim_reserve(uint64_t addr, uint64_t size)
{
	size_t i;

	if (!ready() || n_reserved == MAX_RESERVED) {
		return false;
	}
	i = reserved_upto(addr);
	memmove(&reserved[i + 1], &reserved[i], (n_reserved - i) * sizeof(*reserved));
	n_reserved++;
	reserved[i] = (struct sim_reservation){addr, size};
	return true;
}

void sim_unreserve(struct sim_reservation *r)
{
	size_t i = (size_t)(r - reserved);

	n_reserved--;
	memmove(&reserved[i], &reserved[i + 1], (n_reserved - i) * sizeof(*reserved));
}

bool sim_space_copy(uint64_t addr, struct sim_space *ret)
{
	struct sim_space *s;

	if (!atomic_load_explicit(&any, memory_order_acquire)) {
		return false;
	}
	pthread_mutex_lock(&sim_space_lock);
	s = sim_space_find(addr);
	if (s != NULL) {
		*ret = *s;
	}
	pthread_mutex_unlock(&sim_space_lock);
	return s != NULL;
}

static bool accessible(const struct sim_space *s)
{
	for (int i = 0; i <= SIM_MAX_DEVICES; i++) {
		if (s->access[i] == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
			return true;
		}
	}
	return s->type != SIM_SPACE_VMM;
}

/* 1: mapped throughout, with access; 0: not; -1: neither mapped nor reserved, not ours. */
int sim_space_usable(uint64_t addr, uint64_t size)
{
	int r = 1;

	if (!atomic_load_explicit(&any, memory_order_acquire)) {
		return -1;
	}
	pthread_mutex_lock(&sim_space_lock);
	if (sim_space_find(addr) == NULL && sim_reserved(addr) == NULL) {
		r = -1;
	}
	while (r == 1 && size > 0) {
		const struct sim_space *s = sim_space_find(addr);
		uint64_t left = s != NULL ? s->size - (addr - s->addr) : 0;

		if (s == NULL || !accessible(s)) {
			r = 0;
		} else {
			left = left < size ? left : size;
			addr += left;
			size -= left;
		}
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}
