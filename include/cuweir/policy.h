/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuweir/policy.h - the contract between libcuweir.so and a policy plugin.
 *
 * A policy is a shared object that exports one symbol, cuweir_policy_entry: a table of
 * facts and callbacks. It is named in CUWEIR_POLICY and loaded before the program's first
 * CUDA call that creates a context, takes memory or asks for memory figures. A whole one:
 *
 *	#include <cuweir/policy.h>
 *
 *	static const uint64_t limits[] = { 8ull << 30 };
 *
 *	static const uint64_t *alloc_thresholds(void *state, size_t *ret_count)
 *	{
 *		*ret_count = 1;
 *		return limits;
 *	}
 *
 *	static int over_8gib(void *state, uint64_t total, const struct cuweir_event *event)
 *	{
 *		return CUWEIR_ERROR_OUT_OF_MEMORY; // a status undoes the allocation
 *	}
 *
 *	const struct cuweir_policy cuweir_policy_entry = {
 *		.struct_size = sizeof(struct cuweir_policy),
 *		.version = CUWEIR_POLICY_VERSION,
 *		.name = "eight",
 *		.get_alloc_thresholds = alloc_thresholds,
 *		.on_alloc_threshold = over_8gib,
 *	};
 *
 * Units and ranges. Every size, total and threshold is in bytes, 0 to 2^64-1. A device is
 * CUDA's ordinal in this process, -1 for memory that belongs to none. A status is a CUresult
 * of cuda.h, 0 for success; a status that is none is told once and becomes
 * CUDA_ERROR_UNKNOWN (999).
 *
 * Threads. A callback runs on the thread whose CUDA call it is about. Callbacks run
 * concurrently, with each other and with themselves; no lock of cuweir's is held. A policy
 * that keeps state protects it.
 *
 * What a callback may do: anything an ordinary library function may, CUDA calls included. It
 * may block, but other threads' CUDA calls go on meanwhile. Memory that it takes or gives
 * back is accounted like any other; such nested calls ask and tell no thresholds and no
 * on_alloc_failure, in any policy, and their failures return directly. (admit, debug events,
 * before_free and on_alloc_failed of nested calls still reach the policies that are not in a
 * callback of this thread, so that a log stays whole.)
 * What it may not do: unload itself; throw, longjmp or end its thread out of the callback;
 * keep the event or anything that it points to after it returns; make a CUDA call that is
 * not allowed during stream capture while event->flags has CUWEIR_EVENT_CAPTURING; use the
 * program's stdout. With the CUDA runtime, a failing call of the callback's own leaves its
 * error in the program's last error: use the driver API, or clear it.
 *
 * Versions. Both sides carry struct_size and version. A policy made with an older header
 * runs under a newer shim. One made with a newer header is refused with one line when its
 * version is above the shim's, or when it fills entries that the shim does not have. Nothing
 * here is ever renumbered or reused; entries are added at the end.
 *
 * Sources of the contract: event handlers after RAPIDS RMM's RmmEventHandler, the allocator
 * after TensorRT's IGpuAsyncAllocator, reservations after Arrow's AllocationReservation.
 */
#ifndef CUWEIR_POLICY_H
#define CUWEIR_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUWEIR_POLICY_VERSION 1u

#if defined(__GNUC__)
#define CUWEIR_EXPORT __attribute__((visibility("default")))
#else
#define CUWEIR_EXPORT
#endif

/* The statuses that a policy needs most; any other CUresult may be used as well. */
enum {
	CUWEIR_SUCCESS = 0,
	CUWEIR_ERROR_INVALID_VALUE = 1,
	CUWEIR_ERROR_OUT_OF_MEMORY = 2,
	CUWEIR_ERROR_NOT_INITIALIZED = 3,
	CUWEIR_ERROR_INVALID_DEVICE = 101,
	CUWEIR_ERROR_ILLEGAL_STATE = 401,
	CUWEIR_ERROR_NOT_FOUND = 500,
	CUWEIR_ERROR_NOT_READY = 600,
	CUWEIR_ERROR_NOT_PERMITTED = 800,
	CUWEIR_ERROR_NOT_SUPPORTED = 801,
	CUWEIR_ERROR_UNKNOWN = 999,
};

/*
 * What memory counts as. Each device has a total for each kind. The gauges are figures alone: no
 * callback is made for them, and `kinds`, `serves` and a budget ignore them.
 */
enum cuweir_kind {
	CUWEIR_KIND_NONE = 0,
	CUWEIR_KIND_DEVICE = 1,        /* device memory: linear, pitched, stream-ordered, arrays */
	CUWEIR_KIND_MANAGED = 2,       /* managed memory, wherever it resides */
	CUWEIR_KIND_HOST = 3,          /* page-locked host memory that CUDA allocated */
	CUWEIR_KIND_REGISTERED = 4,    /* the program's own host memory, page-locked by CUDA */
	CUWEIR_KIND_IMPORTED = 5,      /* memory of another process or API, mapped here */
	CUWEIR_KIND_VIRTUAL = 6,       /* gauge: reserved address space, no memory */
	CUWEIR_KIND_POOL = 7,          /* gauge: what stream-ordered pools hold from the driver */
	CUWEIR_KIND_GRAPH_PLANNED = 8, /* gauge: what graphs will take when launched */
};
#define CUWEIR_KIND_COUNT 9
#define CUWEIR_KIND_BIT(kind) (1u << (kind))

/* Flags of an event. */
enum {
	CUWEIR_EVENT_NESTED = 1u << 0,         /* made inside a callback of some policy */
	CUWEIR_EVENT_CAPTURING = 1u << 1,      /* a stream capture is open in this process */
	CUWEIR_EVENT_STREAM_ORDERED = 1u << 2, /* `stream` orders the operation */
	CUWEIR_EVENT_PER_THREAD = 1u << 3,     /* a NULL stream is the per-thread default one */
	CUWEIR_EVENT_UNDO = 1u << 4,           /* the free of an allocation that was vetoed */
	CUWEIR_EVENT_CONTEXT_END = 1u << 5,    /* memory that went with its context */
	CUWEIR_EVENT_HELD = 1u << 6,           /* a policy takes or returns it through `next` */
};

/*
 * The facts of one operation, read-only, valid until the callback returns. What is not known
 * yet is 0 (the pointer in `admit`), what does not apply is 0 (a stream of cudaMalloc).
 */
struct cuweir_event {
	size_t struct_size;
	const char *call;      /* as documented, without version or stream suffix: "cudaMalloc" */
	uint32_t kind;         /* enum cuweir_kind */
	int32_t device;        /* device of the memory, which may not be the current one */
	/*
	 * CUcontext that owns it; NULL for pool and virtual memory. For an allocator: the one that
	 * the memory is asked for in, or belongs to; it is current during the call.
	 */
	void *context;
	void *stream;          /* CUstream, as the program gave it; of a free, the free's own */
	void *pointer;         /* CUdeviceptr, host pointer, or handle of arrays and the like */
	uint64_t requested;    /* bytes that the program asked for */
	uint64_t charged;      /* bytes that the totals move by: pitch x height, array sizes */
	uint64_t total_before; /* of this device and kind; the two values of one atomic */
	uint64_t total_after;  /*   operation once the total has moved, else both its value */
	uint64_t thread;       /* the kernel's thread id */
	uint32_t retry_count;  /* of this policy's on_alloc_failure, from 0 */
	int32_t status;        /* CUresult of the operation so far */
	uint32_t flags;        /* CUWEIR_EVENT_... */
	uint32_t reserved0;
	const void *call_site; /* return address of the program's call */
	uint64_t reserved[4];
};

/* Figures of one device and kind (see struct cuweir_host, totals). */
struct cuweir_totals {
	size_t struct_size;
	uint64_t current;     /* bytes the program has */
	uint64_t peak;        /* highest `current` since the start */
	uint64_t held;        /* bytes policies hold from the driver beyond that */
	uint64_t allocations; /* operations that took memory */
	uint64_t frees;       /* operations that gave memory back */
	uint64_t reserved[3];
};

/* One live allocation (see struct cuweir_host, walk). */
struct cuweir_record {
	size_t struct_size;
	const char *call;
	uint32_t kind;
	int32_t device;
	void *context;
	void *pointer;
	uint64_t charged;
	const void *call_site;
	uint64_t reserved[4];
};

/* An answer to a memory query that a policy may change (see struct cuweir_policy). */
struct cuweir_memory_info {
	size_t struct_size;
	const char *call; /* "cuMemGetInfo", "cudaMemGetInfo", "cuDeviceTotalMem", ... */
	int32_t device;
	uint32_t reserved0;
	uint64_t free_bytes;  /* in: what the driver or the next inner policy says; out */
	uint64_t total_bytes; /* the same; never raised above what came in */
	uint64_t reserved[4];
};

/* ------------------------------------------------------------------------------------------
 * The stream-ordered allocator, TensorRT's IGpuAsyncAllocator in C. A policy that has one
 * serves the program's allocations of the kinds in its `serves`; `next` in struct
 * cuweir_host is the same interface towards what stands behind the policy, the driver in the
 * end. What a policy takes through it is held by the policy: it counts against the budget, and
 * is the program's only while it is handed out.
 *
 * Served are linear device memory (synchronous and stream-ordered, of the default pool),
 * managed memory attached globally, and pinned memory without flags. Not served, but taken
 * from the driver: pitched memory, arrays, memory of explicit pools, virtual memory, and
 * everything while a stream capture is open. What an allocator hands out comes back to it, by
 * whatever call the program frees it; the driver never sees that free. Policies behind one
 * that serves do not hear of what it serves, but of what it takes and returns
 * (CUWEIR_EVENT_HELD).
 */

struct cuweir_interface_info {
	const char *kind; /* "IGpuAllocator", static storage */
	int32_t major;
	int32_t minor;
};

enum cuweir_api_language {
	CUWEIR_API_LANGUAGE_CPP = 0,
	CUWEIR_API_LANGUAGE_PYTHON = 1,
	CUWEIR_API_LANGUAGE_C = 2,
};

enum {
	CUWEIR_ALLOCATOR_RESIZABLE = 1u << 0, /* the memory may be given to reallocate */
};

struct cuweir_allocator {
	size_t struct_size;

	/*
	 * Memory of `size` bytes on the current device, usable in the order of `stream` (NULL:
	 * the default stream). `alignment` is 0 for any, or a power of two up to 256; any other
	 * is refused with NULL. `size` 0 gives NULL and is no error. `flags` are
	 * CUWEIR_ALLOCATOR_...; unknown ones are ignored. NULL means that the request cannot be
	 * met, and leaves no CUDA error pending. Called from any thread, concurrently.
	 * `state` is the policy's own. The context of the stream is current, whatever the
	 * program's is; never called while a stream capture is open.
	 * Source: IGpuAsyncAllocator::allocateAsync.
	 */
	void *(*allocate_async)(void *state, uint64_t size, uint64_t alignment, uint32_t flags,
				void *stream);

	/*
	 * Gives `memory` back; it is not used again before the current position of `stream` is
	 * reached. NULL is no error. False for memory that this allocator did not hand out. The
	 * context that the memory was allocated in is current. A stream of another context
	 * has been synchronized, and the synchronous form is called. While a capture is open
	 * (CUWEIR_EVENT_CAPTURING in host->current_event), no CUDA call that it forbids is made:
	 * the block is kept, and not used again before its context was synchronized.
	 * Source: IGpuAsyncAllocator::deallocateAsync.
	 */
	bool (*deallocate_async)(void *state, void *memory, void *stream);

	/*
	 * Grows or shrinks `memory` to `new_size` bytes, in place or by moving min(old, new)
	 * bytes; the old address is then the allocator's. NULL: not done, the old memory is as
	 * it was. There is neither an old size nor a stream. Called by cuweir_reallocate, for
	 * memory of this allocator; where it gives NULL, or the entry is NULL, the shim
	 * allocates, copies and frees. Source: IGpuAllocator::reallocate.
	 */
	void *(*reallocate)(void *state, void *memory, uint64_t alignment, uint64_t new_size);

	/*
	 * The synchronous forms: valid in every stream at once; nobody uses it any more when
	 * deallocate is called. NULL entries: the stream-ordered forms are used and
	 * synchronized. Source: IGpuAllocator::allocate, deallocate.
	 */
	void *(*allocate)(void *state, uint64_t size, uint64_t alignment, uint32_t flags);
	bool (*deallocate)(void *state, void *memory);

	/* Which interface and version this is; NULL entry: {"IGpuAllocator", 1, 0}. */
	struct cuweir_interface_info (*get_interface_info)(void *state);

	/* enum cuweir_api_language; NULL entry: C. */
	int (*get_api_language)(void *state);

	void (*reserved[8])(void);
};

/* ------------------------------------------------------------------------------------------
 * What the shim offers a policy. Handed over at `open`, one for each policy in the chain,
 * valid until the process ends. Every function may be called from any thread, in a callback
 * or outside, unless it says otherwise, and takes the host itself as its first argument.
 */

/* Flags of the host. */
enum {
	/*
	 * `open` is only tried, by `cuweir run` before the program starts, in a process that ends
	 * right after it: refuse what is wrong with the arguments, as ever, but make, empty or
	 * change no file, start no process, and take no device memory.
	 */
	CUWEIR_HOST_TRIAL = 1u << 0,
};

struct cuweir_reservation; /* one future buffer, see reservation_open */
struct cuweir_policy;

struct cuweir_host {
	size_t struct_size;
	uint32_t version;         /* CUWEIR_POLICY_VERSION of the shim */
	uint32_t flags;           /* CUWEIR_HOST_... */
	const char *shim_version; /* "0.1.0" */
	void *instance;           /* the shim's own */

	/*
	 * Writes `line` (a newline is added, nothing else) to the file of CUWEIR_LOG, or to
	 * stderr, in one write. CUWEIR_ERROR_INVALID_VALUE for NULL. Lines above 4 KiB are cut.
	 */
	int (*log)(const struct cuweir_host *host, const char *line);

	/*
	 * Only in `open`: says why the policy does not open, to be shown in the shim's one line
	 * about it. Returns CUWEIR_ERROR_INVALID_VALUE, so that open can `return` it.
	 */
	int (*refuse)(const struct cuweir_host *host, const char *reason);

	/*
	 * Fills *ret_totals for `device` and `kind`; the caller sets ret_totals->struct_size.
	 * CUWEIR_ERROR_INVALID_VALUE for a device or kind out of range. The figures are read one
	 * after the other: exact when nothing allocates meanwhile. That of POOL is the driver's,
	 * which is asked for it, unless a capture is open: then it is the last one.
	 */
	int (*totals)(const struct cuweir_host *host, int device, int kind,
		      struct cuweir_totals *ret_totals);

	/*
	 * Visits the live allocations, in no order, until `visit` returns false. `visit` may use
	 * CUDA and the host; what comes or goes meanwhile may or may not be seen.
	 */
	int (*walk)(const struct cuweir_host *host,
		    bool (*visit)(const struct cuweir_record *record, void *argument),
		    void *argument);

	/*
	 * Waits until another thread has given memory back, at most timeout_ns. In
	 * on_alloc_failure frees count from right after the failure, also those before this call.
	 * CUWEIR_SUCCESS when one came, CUWEIR_ERROR_NOT_READY after the time.
	 */
	int (*wait_for_free)(const struct cuweir_host *host, uint64_t timeout_ns);

	/* Switches debug events (on_allocated, on_deallocated), for all policies. */
	int (*set_debug)(const struct cuweir_host *host, bool on);
	bool (*get_debug)(const struct cuweir_host *host);

	/*
	 * The program's real driver function, by exported symbol ("cuMemAlloc_v2"): a call
	 * through it is seen by nobody and accounted by nobody. CUWEIR_ERROR_NOT_FOUND where the
	 * driver has none, or none is loaded.
	 */
	int (*driver_function)(const struct cuweir_host *host, const char *symbol,
			       void **ret_function);

	/*
	 * The facts of the operation this thread is in, as a callback gets them, for an
	 * allocator (whose interface carries none); NULL outside of any.
	 */
	const struct cuweir_event *(*current_event)(const struct cuweir_host *host);

	/*
	 * The budget: at most `bytes` of the kinds in the mask (0: DEVICE) on `device` together,
	 * counted in what is taken from the driver and what is reserved; UINT64_MAX for none.
	 * Set in `open` it is exact; set later, it counts what is in the books at that moment.
	 * Each policy of the chain, and the program by cuweir.h, sets a limit of its own, and the
	 * lowest holds. A kind belongs to one mask, the one that was named last; where it would be
	 * taken away from a mask on which another one has a limit, CUWEIR_ERROR_NOT_PERMITTED.
	 * What a policy has set goes where its open fails.
	 * get_budget tells the budget that DEVICE memory belongs to, any out pointer may be
	 * NULL; CUWEIR_ERROR_NOT_FOUND where none is set.
	 */
	int (*set_budget)(const struct cuweir_host *host, int device, uint32_t kinds,
			  uint64_t bytes);
	int (*get_budget)(const struct cuweir_host *host, int device, uint64_t *ret_bytes,
			  uint64_t *ret_used, uint64_t *ret_reserved);

	/*
	 * Reservations, after Arrow's AllocationReservation: bytes claimed from the budget of
	 * DEVICE memory ahead of one allocation (without a budget they always succeed). `add`
	 * and `reserve` are the same: cumulative, exact, all or nothing - over the budget
	 * CUWEIR_ERROR_OUT_OF_MEMORY, an overflow CUWEIR_ERROR_INVALID_VALUE, and nothing has
	 * changed. allocate_buffer works once: device memory of get_size bytes in the order of
	 * `stream`, through the whole pipeline; *ret_memory is NULL for an empty reservation and
	 * on failure, which uses the reservation up and gives its bytes back. What comes after
	 * use or close gives CUDA_ERROR_ILLEGAL_STATE (401). close gives back what was not used,
	 * and may be called again; destroy closes and frees the object (NULL is fine). One
	 * reservation is used by one thread at a time.
	 * Source: org.apache.arrow.memory.AllocationReservation.
	 */
	int (*reservation_open)(const struct cuweir_host *host, int device,
				struct cuweir_reservation **ret_reservation);
	int (*reservation_add)(struct cuweir_reservation *reservation, uint64_t bytes);
	int (*reservation_reserve)(struct cuweir_reservation *reservation, uint64_t bytes);
	uint64_t (*reservation_get_size)(const struct cuweir_reservation *reservation);
	bool (*reservation_is_used)(const struct cuweir_reservation *reservation);
	bool (*reservation_is_closed)(const struct cuweir_reservation *reservation);
	int (*reservation_allocate_buffer)(struct cuweir_reservation *reservation, void *stream,
					   void **ret_memory);
	int (*reservation_close)(struct cuweir_reservation *reservation);
	void (*reservation_destroy)(struct cuweir_reservation *reservation);

	/*
	 * Gives the driver's unused memory of the pools of `device` that were heard of, and of
	 * graphs, back to the device; what streams have not reached yet stays, so synchronize
	 * first. CUWEIR_ERROR_NOT_PERMITTED while a stream capture is open, NOT_SUPPORTED where
	 * the driver has no pools.
	 */
	int (*trim)(const struct cuweir_host *host, int device);

	/*
	 * What stands behind this policy, as an allocator: inner policies, which admit, are asked
	 * after failures and are told, but do not serve; then the driver. (Of two policies that
	 * serve the same kinds the inner one is never asked, which is told at the opening.) A
	 * NULL stream is what it is for the current event (CUWEIR_EVENT_PER_THREAD), and the
	 * legacy stream outside of any; CU_STREAM_LEGACY and CU_STREAM_PER_THREAD may be given.
	 */
	const struct cuweir_allocator *next;
	void *next_state;

	/*
	 * Only in `open`: `table`, which is copied, stands for the exported one from here on.
	 * For a policy whose arguments decide what it has to be told: a callback that is NULL
	 * costs the program nothing. CUWEIR_ERROR_NOT_PERMITTED outside of open,
	 * CUWEIR_ERROR_INVALID_VALUE for NULL or a table that no policy could have: then the
	 * exported one stays. NULL in a shim that is older than this entry.
	 */
	int (*set_callbacks)(const struct cuweir_host *host, const struct cuweir_policy *table);

	/*
	 * The directory in which the program was started, without a '/' at its end: file names in
	 * arguments mean it, wherever the program has gone by the time of `open`. "" where it is
	 * not known; NULL in a shim that is older than this entry.
	 */
	const char *directory;

	void (*reserved[14])(void);
};

/* ------------------------------------------------------------------------------------------
 * The policy.
 */

/* Flags of a policy. */
enum {
	/*
	 * on_alloc_failure may be asked while a stream capture is open: it makes no CUDA call
	 * then that the capture would not survive.
	 */
	CUWEIR_POLICY_CAPTURE_SAFE = 1u << 0,
	/* Gets debug events whether or not debug is on: a log, which is nothing without. */
	CUWEIR_POLICY_DEBUG = 1u << 1,
	/*
	 * Keeps its own books by debug events and shows nobody: with CUWEIR_DEBUG=1 the shim's
	 * built-in lines are written beside this policy, as where no policy has on_allocated or
	 * on_deallocated.
	 */
	CUWEIR_POLICY_SILENT = 1u << 2,
};

struct cuweir_policy {
	size_t struct_size; /* sizeof(struct cuweir_policy) */
	uint32_t version;   /* CUWEIR_POLICY_VERSION */
	uint32_t flags;     /* CUWEIR_POLICY_... */
	uint32_t kinds;     /* CUWEIR_KIND_BITs that thresholds apply to; 0: DEVICE */
	uint32_t serves;    /* CUWEIR_KIND_BITs that `allocator` serves; 0: DEVICE */
	const char *name;   /* short, without blanks; required */
	const char *summary;   /* one line; may be NULL */
	const char *arguments; /* the arguments it takes, for a person; may be NULL */

	/*
	 * Called once for each place in the chain that names the policy, before any other
	 * callback; `arguments` is what followed the first ':' in CUWEIR_POLICY, verbatim, ""
	 * where nothing did, valid until the process ends. *ret_state (NULL before) is handed to
	 * every callback. Any status but 0 leaves the policy out; see host->refuse. It runs
	 * inside the program's first relevant CUDA call: it may make CUDA calls, which are
	 * accounted and told to nobody, and must not wait for another thread that makes one.
	 * NULL: nothing to do.
	 */
	int (*open)(const struct cuweir_host *host, const char *arguments, void **ret_state);

	/*
	 * The process exits: flush what is buffered. No callback is started after it, while one
	 * in another thread may still be running. No CUDA calls. Not called where the process
	 * ends otherwise (_exit, a signal, exec), nor in children of fork. NULL: nothing to do.
	 */
	void (*close)(void *state);

	/*
	 * The thresholds, asked once after open and copied: any order, duplicates, 0 (which is
	 * never crossed) and values beyond the device are all fine. NULL entry, NULL result or
	 * count 0: none. They apply to the total of each device and kind separately.
	 * Source: RmmEventHandler.getAllocThresholds, getDeallocThresholds.
	 */
	const uint64_t *(*get_alloc_thresholds)(void *state, size_t *ret_count);
	const uint64_t *(*get_dealloc_thresholds)(void *state, size_t *ret_count);

	/*
	 * An allocation crossed one or more alloc thresholds (before < T <= after); called once
	 * for it, with the total after it, when the memory exists. A status other than 0 undoes
	 * the allocation - below the policies: no dealloc threshold and no debug event for this
	 * policy - and is what the program's call returns. Where nothing can be undone it is
	 * told and ignored. Source: RmmEventHandler.onAllocThreshold, an exception in it.
	 */
	int (*on_alloc_threshold)(void *state, uint64_t total, const struct cuweir_event *event);

	/*
	 * A free crossed one or more dealloc thresholds (before >= T > after); called once for
	 * it, with the total after it, when the memory is gone. A status other than 0 is what
	 * the program's call returns. Source: RmmEventHandler.onDeallocThreshold.
	 */
	int (*on_dealloc_threshold)(void *state, uint64_t total,
				    const struct cuweir_event *event);

	/*
	 * An allocation of `size` bytes (as requested) has failed for want of memory, and only
	 * for that: the driver's, or that of a policy behind this one, by its admit or a veto.
	 * True: try again all that stands behind this policy. False: the failure goes outward,
	 * to the policies before this one and at last, unchanged, to the program.
	 * retry_count is 0 for the first question of one allocation, and one more each time.
	 * There is no limit but CUWEIR_MAX_RETRIES. While a capture is open only policies with
	 * CUWEIR_POLICY_CAPTURE_SAFE are asked. NULL: false.
	 * Source: RmmEventHandler.onAllocFailure(long, int).
	 */
	bool (*on_alloc_failure)(void *state, uint64_t size, int retry_count,
				 const struct cuweir_event *event);

	/* Deprecated form, used where on_alloc_failure is NULL. Source: onAllocFailure(long). */
	bool (*on_alloc_failure_size)(void *state, uint64_t size);

	/*
	 * Debug events, only while debug is on (CUWEIR_DEBUG=1, host->set_debug) or for a policy
	 * with CUWEIR_POLICY_DEBUG: after an allocation has succeeded and its thresholds have
	 * been told; after a free, also one whose dealloc threshold gave a status. `size` is as
	 * requested at the allocation.
	 * Source: RmmEventHandler.onAllocated, onDeallocated.
	 */
	void (*on_allocated)(void *state, uint64_t size, const struct cuweir_event *event);
	void (*on_deallocated)(void *state, uint64_t size, const struct cuweir_event *event);

	/*
	 * An allocation of any kind, the gauges aside, is about to be made. A status other than 0
	 * refuses it: the driver is not asked, and that status goes outward as a failure would (so
	 * that CUDA_ERROR_OUT_OF_MEMORY is offered to the on_alloc_failure of policies before this
	 * one). Asked again when one of those retries. The launch of a graph is asked about as a
	 * whole, once for each kind and device of which it takes more than it gives back; refused,
	 * it is not tried again. NULL: admitted.
	 */
	int (*admit)(void *state, const struct cuweir_event *event);

	/*
	 * An allocation has finally failed; event->status is what the program gets. After all
	 * retries and refusals, once for each policy, innermost first. NULL: nothing.
	 */
	void (*on_alloc_failed)(void *state, const struct cuweir_event *event);

	/*
	 * Memory that is known is about to be given back: always, not only in debug mode, and
	 * before the address can be handed out again. event->charged is what the total will move
	 * by. Should the driver then refuse, the memory stays, and no on_deallocated follows.
	 * Memory that goes with its context is told one by one, with CUWEIR_EVENT_CONTEXT_END;
	 * a vetoed allocation, with CUWEIR_EVENT_UNDO, to the policies that were told of it.
	 */
	void (*before_free)(void *state, const struct cuweir_event *event);

	/*
	 * A context has ended (destroyed, reset, last reference released), and its linear,
	 * managed, pinned and array memory with it; pool and virtual memory stays. A policy that
	 * holds such memory or handles of this context forgets them. One dealloc-threshold check
	 * with the final total is made before.
	 */
	void (*on_context_ended)(void *state, void *context, int device);

	/*
	 * A stream is about to be destroyed: its handle is still valid, and may come back as
	 * another stream's. A policy that keeps memory in its order gives that back now, or
	 * synchronizes; not while a capture is open, as host->current_event tells by its flags.
	 */
	void (*on_stream_ended)(void *state, void *context, void *stream);

	/*
	 * The program asks how much memory there is, once for each such call of it; `info` holds
	 * the answer so far and may be lowered, total_bytes also for a program that wants to know
	 * the size of the device. A figure that was not asked for is 0 (free_bytes in questions
	 * for the total). Asked from the innermost policy outward; what is raised is ignored. A
	 * question that a policy asks within a callback gets the driver's figures. Asked of
	 * cuMemGetInfo, cuDeviceTotalMem, cudaMemGetInfo, cudaGetDeviceProperties and
	 * nvmlDeviceGetMemoryInfo; the device is CUDA's ordinal in each case, which for NVML
	 * is known by UUID, once CUDA has been initialized, and before where the machine has one
	 * device and CUDA_VISIBLE_DEVICES hides nothing; else NVML's figure stands. Asked also
	 * for the message about an allocation that has failed for good, with that call. NULL: as
	 * it is.
	 */
	void (*memory_info)(void *state, struct cuweir_memory_info *info);

	const struct cuweir_allocator *allocator; /* NULL: does not serve */

	void (*reserved[16])(void);
};

/* The one symbol that a plugin defines. */
extern CUWEIR_EXPORT const struct cuweir_policy cuweir_policy_entry;

#ifdef __cplusplus
}
#endif

#endif
