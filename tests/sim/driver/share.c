/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of an arena seen by other processes. An arena is private memory; the pages of a block that
 * is exported are moved, in place, to a file as large as the arena, once for good. Another process
 * opens the file under /proc, as long as the exporter lives; its mapping outlives it.
 *
 * A write to the same pages by another thread during the move, which takes microseconds, may be
 * lost: a program that exports memory while it fills its neighbour has no such guarantee here.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "space.h"

#define MAGIC 0x63775349U

struct shared_arena {
	int fd;
	uint64_t *moved; /* a bit per page */
};

static struct shared_arena shares[SIM_MAX_DEVICES + 1];

static struct shared_arena *share_of(const struct sim_arena *a)
{
	size_t k = SIM_MAX_DEVICES;
	struct shared_arena *s;
	void *bits;

	for (int i = 0; i < sim_n_devices; i++) {
		k = a == &sim_devices[i].arena ? (size_t)i : k;
	}
	s = &shares[k];
	if (s->moved == NULL) {
		bits = mmap(NULL, a->size / SIM_PAGE / 8 + 8, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		s->fd = memfd_create("cuweir-sim-arena", MFD_CLOEXEC);
		if (bits == MAP_FAILED || s->fd < 0 || ftruncate(s->fd, (off_t)a->size) != 0) {
			return NULL;
		}
		s->moved = bits;
	}
	return s;
}

/* Runs of pages, so that a large block is moved by few calls. */
static bool move(const struct sim_arena *a, struct shared_arena *s, uint64_t lo, uint64_t hi)
{
	while (lo < hi) {
		uint64_t end = lo;
		char *p = a->base + lo * SIM_PAGE;

		while (end < hi && (s->moved[end / 64] >> (end % 64) & 1) == 0) {
			end++;
		}
		if (end > lo &&
		    (pwrite(s->fd, p, (end - lo) * SIM_PAGE, (off_t)(lo * SIM_PAGE)) !=
			     (ssize_t)((end - lo) * SIM_PAGE) ||
		     mmap(p, (end - lo) * SIM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			  s->fd, (off_t)(lo * SIM_PAGE)) == MAP_FAILED)) {
			return false;
		}
		for (; lo < end; lo++) {
			s->moved[lo / 64] |= 1ULL << (lo % 64);
		}
		lo++;
	}
	return true;
}

/* The arena's lock is held. */
bool sim_share_block(struct sim_arena *a, uint32_t i, struct sim_share *ret)
{
	const struct sim_block *b = &a->blocks[i];
	struct shared_arena *s = share_of(a);

	if (s == NULL || !move(a, s, b->off / SIM_PAGE,
			       (b->off + b->size + SIM_PAGE - 1) / SIM_PAGE)) {
		return false;
	}
	*ret = (struct sim_share){.magic = MAGIC, .pid = (int32_t)getpid(), .fd = s->fd,
				  .dev = b->dev, .id = b->id, .delta = b->off, .size = b->size};
	return true;
}

/* Map what another process shares; ret's addresses are filled in. */
bool sim_share_map(const struct sim_share *s, struct sim_space *ret)
{
	uint64_t skip = s->delta % SIM_PAGE;
	char path[64];
	void *p;
	int fd;

	if (s->magic != MAGIC || s->size == 0) {
		return false;
	}
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)s->pid, (int)s->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	p = mmap(NULL, s->size + skip, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 (off_t)(s->delta - skip));
	close(fd);
	if (p == MAP_FAILED) {
		return false;
	}
	ret->map_base = p;
	ret->map_size = s->size + skip;
	ret->addr = (uintptr_t)p + skip;
	ret->size = s->size;
	return true;
}

/* sim_space_lock is held. */
void sim_space_unmap(struct sim_space *s)
{
	munmap(s->map_base, s->map_size);
	sim_space_del(s);
}
