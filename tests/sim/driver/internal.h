/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated driver's own declarations, for all of its files.
 *
 * Locks, outermost first: sim_lock (contexts, streams, events, captures, graphs), an arena's lock
 * (its blocks, its pools, its device's figures), the object table's lock. Truth figures are atomic
 * and written under the arena lock of the memory they speak of.
 */
#ifndef CUWEIR_SIM_INTERNAL_H
#define CUWEIR_SIM_INTERNAL_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../sim.h"
#include "call.h"

#define SIM_MAX_DEVICES 16
#define SIM_GRANULE 512U
#define SIM_MAX_DEPS 16

enum sim_type {
	SIM_CTX = 1,
	SIM_STREAM,
	SIM_EVENT,
	SIM_POOL,
	SIM_CAPTURE,
	SIM_GRAPH,
	SIM_NODE,
	SIM_EXEC,
	SIM_ARRAY,
	SIM_MIPMAP,
	SIM_PHYSICAL,
	SIM_EXTERNAL,
	SIM_GREEN,
	SIM_CHILD,
	SIM_MODULE,
	SIM_MEMORY,
	SIM_FUNCTION,
	SIM_LIBRARY,
	SIM_RESOURCE,
	SIM_DESCRIPTOR
};

/* The head of every handle's object. A freed object keeps its page, so a stale handle is read
 * safely and refused. */
struct sim_obj {
	_Atomic uint32_t type;
	uint32_t slot;
	uint64_t id;
	struct sim_obj *next_free;
};

enum sim_state { SIM_FREE, SIM_LIVE, SIM_CACHED, SIM_PLANNED };

enum sim_origin { SIM_LINEAR, SIM_PITCHED, SIM_MANAGED, SIM_PINNED, SIM_ASYNC, SIM_GRAPHED,
		  SIM_ARRAYED };

/* One piece of an arena. prev and next are its neighbours by address; link_* the list it is in:
 * a free list, its context's list, or its pool's bin. */
struct sim_block {
	uint64_t off;
	uint64_t span;
	uint64_t size;
	void *owner;
	uint64_t stream_id;
	uint64_t id;
	uint64_t pitch;
	uint32_t prev, next;
	uint32_t link_prev, link_next;
	uint8_t state;
	uint8_t origin;
	uint8_t dev;
	uint8_t kind;
	uint32_t flags;
};

#define SIM_FL 40
#define SIM_SL 16
#define SIM_LEVELS 5

struct sim_arena {
	pthread_mutex_t lock;
	char *base;
	uint64_t size;
	struct sim_block *blocks;
	uint32_t n_blocks, max_blocks, spare;
	uint32_t *start; /* by granule: the block that begins there, 0 for none */
	uint64_t *level[SIM_LEVELS]; /* bit trees over start, to find the block around an address */
	unsigned int levels;
	uint64_t fl_map;
	uint16_t sl_map[SIM_FL];
	uint32_t head[SIM_FL][SIM_SL];
	uint32_t held; /* CUWEIR_SIM_REISSUE: the piece freed last, given again first */
};

struct sim_device {
	struct sim_arena arena;
	_Atomic bool mapped;
	int ordinal;
	uint64_t capacity;
	uint64_t linear; /* charged to the device outside pools */
	uint64_t reserved; /* held by its pools */
	uint64_t graph_used, graph_reserved, graph_used_high, graph_reserved_high;
	_Atomic uint64_t used[CUWEIR_SIM_KINDS];
	_Atomic uint64_t live[CUWEIR_SIM_KINDS];
	struct sim_ctx *primary;
	_Atomic(struct sim_pool *) default_pool;
	_Atomic(struct sim_pool *) pool;
};

struct sim_ctx {
	struct sim_obj obj;
	struct sim_device *dev;
	_Atomic bool alive;
	bool primary;
	unsigned int flags, version;
	int retained;
	struct sim_stream *streams;
	_Atomic(struct sim_stream *) legacy;
	uint32_t device_blocks, system_blocks;
	struct sim_event *events;
	struct sim_array *arrays;
	size_t limit[CU_LIMIT_MAX];
	CUfunc_cache cache;
	CUsharedconfig shared;
	_Atomic uint32_t peers; /* devices whose memory it may use, a bit each */
	struct sim_ctx *home; /* of a green context: the primary one, whose its memory is */
};

static inline struct sim_ctx *sim_owner(struct sim_ctx *c)
{
	return c->home != NULL ? c->home : c;
}

struct sim_stream {
	struct sim_obj obj;
	struct sim_ctx *ctx;
	struct sim_stream *prev, *next;
	unsigned int flags;
	int priority;
	unsigned int thread; /* owner of a per-thread default stream, else 0 */
	bool is_default;
	_Atomic(struct sim_capture *) capture;
	struct sim_stream *next_member;
	uint64_t capture_seq, joined_seq;
	size_t n_deps;
	CUgraphNode deps[SIM_MAX_DEPS];
};

struct sim_event {
	struct sim_obj obj;
	struct sim_ctx *ctx;
	struct sim_event *prev, *next;
	unsigned int flags;
	bool recorded;
	uint64_t time;
	uint64_t capture_id; /* of the capture it was recorded in, else 0 */
	uint64_t capture_seq;
	struct sim_stream *capture_stream;
	size_t n_deps;
	CUgraphNode deps[SIM_MAX_DEPS];
};

struct sim_capture {
	struct sim_obj obj;
	struct sim_capture *prev, *next;
	CUstreamCaptureMode mode;
	unsigned int thread;
	_Atomic bool invalid;
	struct sim_stream *origin, *members;
	struct sim_graph *graph;
	bool own_graph;
};

#define SIM_BINS 72

struct sim_pool {
	struct sim_obj obj;
	struct sim_pool *prev, *next;
	struct sim_arena *arena;
	struct sim_device *dev;
	CUmemLocationType location;
	CUmemAllocationType alloc_type;
	CUmemAllocationHandleType handle_types;
	uint8_t kind;
	bool is_default, destroyed, imported;
	uint64_t remote; /* imported: the exporter's id */
	uint64_t max_size, threshold;
	uint64_t used, used_high, reserved, reserved_high, live;
	int reuse[3];
	uint32_t peers; /* devices with read-write access, a bit each */
	uint32_t bin[SIM_BINS];
};

/* A copy of d slices of h rows of w bytes. */
struct sim_box_side {
	uint64_t addr, pitch, slice;
};

struct sim_box {
	struct sim_box_side dst, src;
	uint64_t w, h, d;
};

struct sim_node {
	struct sim_obj obj;
	struct sim_graph *graph;
	struct sim_node *prev, *next;
	CUgraphNodeType type;
	struct sim_arena *arena; /* of a memory node's block */
	CUdeviceptr dptr;
	CUdeviceptr src;
	uint64_t size;
	uint32_t value, width;
	struct sim_box box;
	struct sim_graph *child;
	struct sim_node *original, *clone;
	CUhostFn fn;
	void *data;
	size_t n_deps;
	CUgraphNode deps[SIM_MAX_DEPS];
};

struct sim_graph {
	struct sim_obj obj;
	struct sim_node *first, *last;
	size_t n_nodes;
	bool has_memory, destroyed;
	int instances;
	struct sim_node *owner; /* the parent's node, for a child graph */
};

struct sim_exec {
	struct sim_obj obj;
	struct sim_graph *graph;
	unsigned long long flags;
	bool copy; /* the graph is the executable's own */
};

struct sim_thread {
	struct sim_ctx *stack[64];
	int depth;
	unsigned int id;
	CUstreamCaptureMode mode;
	bool mode_set;
	struct sim_ctx *ptds_ctx;
	struct sim_stream *ptds;
	uint64_t ptds_id;
};

extern pthread_mutex_t sim_lock;
extern struct sim_device sim_devices[SIM_MAX_DEVICES];
extern struct sim_device sim_nowhere; /* figures of what is no device's */
extern int sim_n_devices;
extern struct sim_arena sim_system; /* pinned host and managed memory */
extern _Atomic unsigned int sim_open_captures;

/* object.c */
void *sim_obj_new(enum sim_type type);
void *sim_obj_get(const void *handle, enum sim_type type);
void sim_obj_free(struct sim_obj *obj);
uint64_t sim_obj_offset(uint64_t value);

/* arena.c: the caller holds the arena's lock */
bool sim_arena_init(struct sim_arena *a, uint64_t size);
uint32_t sim_arena_take(struct sim_arena *a, uint64_t size);
void sim_arena_give(struct sim_arena *a, uint32_t i);
bool sim_arena_split(struct sim_arena *a, uint32_t i, uint64_t span, uint32_t *ret_rest);
uint32_t sim_arena_at(const struct sim_arena *a, uint64_t addr);
uint32_t sim_arena_find(const struct sim_arena *a, uint64_t addr);
void sim_list_add(struct sim_arena *a, uint32_t *head, uint32_t i);
void sim_list_del(struct sim_arena *a, uint32_t *head, uint32_t i);

static inline bool sim_arena_has(const struct sim_arena *a, uint64_t addr)
{
	return addr - (uint64_t)(uintptr_t)a->base < a->size;
}

static inline uint64_t sim_block_addr(const struct sim_arena *a, uint32_t i)
{
	return (uint64_t)(uintptr_t)a->base + a->blocks[i].off;
}

/* device.c */
CUresult sim_device_get(CUdevice dev, struct sim_device **ret);
bool sim_device_map(struct sim_device *d);
uint64_t sim_device_free(const struct sim_device *d);
struct sim_arena *sim_arena_of(uint64_t addr);
void sim_charge(struct sim_device *d, int kind, uint64_t bytes);
void sim_uncharge(struct sim_device *d, int kind, uint64_t bytes);

/* context.c */
struct sim_thread *sim_thread_self(void);
CUresult sim_ctx_current(struct sim_ctx **ret);
CUresult sim_ctx_arg(CUcontext handle, struct sim_ctx **ret);
void sim_ctx_wipe(struct sim_ctx *c);
CUresult sim_primary_retain(CUcontext *ret, CUdevice dev);
CUresult sim_primary_end(CUdevice dev, bool release);
struct sim_ctx *sim_ctx_new(struct sim_device *d, unsigned int flags, unsigned int version);

/* stream.c */
CUresult sim_stream_get(CUstream h, bool per_thread, struct sim_stream **ret);
CUresult sim_stream_new(struct sim_ctx *c, CUstream *ret, unsigned int flags, int priority);
CUresult sim_stream_use(CUstream h, bool per_thread, struct sim_stream **ret);
void sim_stream_gone(struct sim_stream *s);
void sim_event_gone(struct sim_event *e);
CUresult sim_event_new(CUevent *ret, unsigned int flags);
void sim_synced(void);

/* capture.c */
CUresult sim_unsafe_slow(void);
CUresult sim_capture_strict(void);
void sim_capture_break(struct sim_capture *c);
struct sim_capture *sim_capture_of(struct sim_stream *s, CUresult *ret_error);
CUresult sim_capture_legacy(struct sim_ctx *ctx);
struct sim_node *sim_capture_node(struct sim_stream *s, CUgraphNodeType type);
CUresult sim_capture_sync(struct sim_ctx *ctx);
CUresult sim_capture_wait(struct sim_stream *s, struct sim_event *e);
void sim_capture_leave(struct sim_stream *s);
void sim_capture_lost(struct sim_stream *s);
CUresult sim_capture_begin(CUstream hs, bool per_thread, CUstreamCaptureMode mode,
			   struct sim_graph *into);
CUresult sim_capture_end(CUstream hs, bool per_thread, CUgraph *ret);
void sim_capture_record(struct sim_stream *s, struct sim_event *e);

/* A call that a capture forbids (C-82); the answer breaks the captures it offends. */
static inline CUresult sim_unsafe(void)
{
	return atomic_load_explicit(&sim_open_captures, memory_order_relaxed) == 0
		       ? CUDA_SUCCESS
		       : sim_unsafe_slow();
}

/* graph.c */
struct sim_graph *sim_graph_new(void);
void sim_graph_drop(struct sim_graph *g);
struct sim_node *sim_node_new(struct sim_graph *g, CUgraphNodeType type);
CUresult sim_node_alloc(struct sim_node *n, struct sim_device *d, uint64_t size);
CUresult sim_graph_free_block(struct sim_arena *a, uint32_t i);

/* host.c */
void sim_host_wipe(struct sim_ctx *c);
bool sim_registered(CUdeviceptr p, CUdeviceptr *ret_base, uint64_t *ret_size, struct sim_ctx **ret);

/* array.c */
void sim_arrays_wipe(struct sim_ctx *c);

/* copy.c */
bool sim_range_ok(CUdeviceptr p, uint64_t n);
void sim_fill(CUdeviceptr dst, size_t width, uint32_t value, size_t n);

/* box.c */
CUresult sim_box_now(const struct sim_box *b);

/* memory.c */
CUresult sim_free_block(CUdeviceptr p, bool async, struct sim_stream *s);
void sim_block_live(struct sim_arena *a, uint32_t i, uint64_t size, struct sim_device *d);
void sim_block_begin(struct sim_arena *a, uint32_t i, uint64_t size, struct sim_device *d);
void sim_free_owned(struct sim_ctx *c);

/* pool.c */
CUresult sim_pool_alloc(CUdeviceptr *dptr, size_t size, struct sim_pool *pool,
			struct sim_stream *s);
void sim_pool_free(struct sim_arena *a, uint32_t i, struct sim_stream *s);
void sim_pool_sync(void);
struct sim_pool *sim_pool_default(struct sim_device *d);

/* lookup.c */
void *sim_lookup(const char *base, int version, uint64_t flags, int *ret_status);

static inline CUdeviceptr_v1 sim_v1(CUdeviceptr p)
{
	return (CUdeviceptr_v1)p;
}
#endif
