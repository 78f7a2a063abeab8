/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses outside the arenas: reservations, and what is mapped: virtual memory, memory of other
 * processes, external memory. sim_space_lock guards all of it; it comes after sim_lock and before
 * an arena's lock.
 */
#ifndef CUWEIR_SIM_SPACE_H
#define CUWEIR_SIM_SPACE_H

#define SIM_PAGE 4096U
#define SIM_MIN_MAP (2ULL << 20) /* what cuMemGetAllocationGranularity says */

enum sim_space_type { SIM_SPACE_VMM = 1, SIM_SPACE_IPC, SIM_SPACE_POOL_PTR, SIM_SPACE_BUFFER };

struct sim_memory;

/* A handle of cuMemCreate, an import or cuMulticastCreate. It outlives its last release while
 * mappings made with it exist, since cuMemRetainAllocationHandle gives the same value again. */
struct sim_handle {
	struct sim_obj obj;
	struct sim_memory *mem;
	unsigned int refs, maps;
};

struct sim_memory {
	struct sim_obj obj;
	struct sim_memory *prev, *next;
	struct sim_device *dev;
	CUmemAllocationProp prop;
	uint64_t size;
	int kind; /* of the truth; -1: counted nowhere */
	bool imported, multicast;
	int fd;
	bool own_fd; /* else a piece of the one file for memory that is not shared, from off */
	uint64_t off;
	uint32_t block;
	uint64_t ino;
	unsigned int handles;
	uint32_t team; /* multicast: devices added, a bit each */
	unsigned int team_size, binds;
};

struct sim_space {
	uint64_t addr, size;
	enum sim_space_type type;
	int dev;
	bool host; /* the memory lies in host memory */
	unsigned int count; /* opens of an IPC handle */
	uint64_t id, key;
	void *map_base;
	uint64_t map_size;
	void *owner; /* sim_handle, sim_ctx, sim_pool or sim_external, by type */
	uint8_t access[SIM_MAX_DEVICES + 1]; /* CUmemAccess_flags by device; the last: host */
};

struct sim_reservation {
	uint64_t addr, size;
};

extern pthread_mutex_t sim_space_lock;

/* space.c: the caller holds sim_space_lock, but for the last two. A pointer into the table is
 * good until the next add or del. */
struct sim_space *sim_space_add(const struct sim_space *s);
void sim_space_del(struct sim_space *s);
struct sim_space *sim_space_find(uint64_t addr);
struct sim_space *sim_space_next(const struct sim_space *s);
struct sim_space *sim_space_from(uint64_t addr);
struct sim_reservation *sim_reserved(uint64_t addr);
bool sim_reserve(uint64_t addr, uint64_t size);
void sim_unreserve(struct sim_reservation *r);
bool sim_space_copy(uint64_t addr, struct sim_space *ret);
int sim_space_usable(uint64_t addr, uint64_t size);

/* physical.c: the caller holds sim_space_lock */
struct sim_handle *sim_handle_get(CUmemGenericAllocationHandle h);
struct sim_handle *sim_handle_new(struct sim_memory *m);
void sim_handle_unmapped(struct sim_handle *h);
struct sim_memory *sim_memory_of_kind(uint64_t size, const CUmemAllocationProp *prop, int kind);
struct sim_memory *sim_memory_shared(uint64_t size, const CUmemAllocationProp *prop,
				     bool multicast);
void sim_memory_link(struct sim_memory *m);
struct sim_memory *sim_memory_by_file(uint64_t ino);

#define SIM_TRAILER_MAGIC 0x63775048U

/* Behind the pages of a shareable file, for whoever imports it. */
struct sim_trailer {
	uint32_t magic;
	uint32_t multicast;
	uint64_t size;
	CUmemAllocationProp prop;
};

/* share.c: what names a block to another process. It fits the 64 bytes of CUDA's own handles. */
struct sim_share {
	uint32_t magic;
	int32_t pid, fd, dev;
	uint64_t id, pool; /* of the block; of its pool, 0 for none */
	uint64_t delta, size; /* where it lies in the file */
};

bool sim_share_block(struct sim_arena *a, uint32_t i, struct sim_share *ret);
bool sim_share_map(const struct sim_share *s, struct sim_space *ret);
void sim_space_unmap(struct sim_space *s);

/* ipc.c, extmem.c */
CUresult sim_import_free(CUdeviceptr p);
void sim_ipc_wipe(struct sim_ctx *c);
void sim_external_wipe(struct sim_ctx *c);
#endif
