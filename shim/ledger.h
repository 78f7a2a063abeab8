/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of pointers: address -> requested size and origin, one record for each live
 * allocation the program made. It owns its records and nothing else: totals are moved by the
 * pipeline, origins are interned in origins.h.
 *
 * Callers: the pipeline (insert, remove, find, detach), reports and host services (walk).
 * Any thread, also within a policy's callback, before our constructor, after our destructor,
 * and in a fork child after cw_ledger_postfork_child. Needs no initialisation, is never torn
 * down, calls nothing but mmap, madvise, the futex system call and memcpy, keeps errno.
 * No memory is taken before the first insert.
 *
 * Cost: 16-byte slots, below 41 bytes for each live allocation from 30,000 on, everything
 * included; the figures, in instructions too, are in docs/performance.md. Growth is done in
 * pieces of 4 KiB, so that no insert takes long. The usual case is in ledger_inline.h.
 * Memory is kept for reuse, not returned, when allocations go.
 */
#ifndef CW_LEDGER_H
#define CW_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CW_LEDGER_SHARDS 64

struct cw_record {
	uint64_t address;
	uint64_t size;
	uint32_t origin;
};

/*
 * 0, or -EEXIST when the address is there already (left as it was), or -ENOMEM: then nothing
 * was recorded, and the caller counts an untracked allocation.
 */
int cw_ledger_insert(uint64_t address, uint64_t size, uint32_t origin);

/*
 * As insert, but a record that is there already (a free that we did not hear) is overwritten:
 * 1, and *ret_old (may be NULL) is what was there. 0: there was none. -ENOMEM: nothing changed.
 */
int cw_ledger_replace(uint64_t address, uint64_t size, uint32_t origin,
	struct cw_record *ret_old);

/*
 * Takes the record out (before the real free: the address may be handed out again at once).
 * ret is untouched when false. Of several threads removing one address, one gets true.
 */
bool cw_ledger_remove(uint64_t address, struct cw_record *ret);

/* A copy of the record; false, and ret untouched, where there is none. */
bool cw_ledger_find(uint64_t address, struct cw_record *ret);

/*
 * Every record that is there from before the call until after it is visited exactly once;
 * one that comes or goes meanwhile, at most once. No lock is held in visit, which may call
 * anything here; false from it stops the walk. Uses 4.5 KiB of stack.
 */
void cw_ledger_walk(bool (*visit)(const struct cw_record *record, void *arg), void *arg);

struct cw_record_block;

/* Records taken out by cw_ledger_detach_if. Zero-initialised is empty. */
struct cw_record_list {
	struct cw_record_block *first, *last;
	size_t count;
	int error; /* 0, or -ENOMEM: matching records may have stayed in the ledger */
};

/*
 * Takes out every record for which match is true (the end of a context, D-17) and appends
 * it to the list; returns how many. match runs under a lock: it may look at the record and
 * at cw_origin_get, and call nothing else. Same guarantee as for a walk.
 */
size_t cw_ledger_detach_if(bool (*match)(const struct cw_record *record, void *arg), void *arg,
	struct cw_record_list *ret_list);

/* Takes one record out and appends it; false where there is none, or no room in the list. */
bool cw_ledger_detach(uint64_t address, struct cw_record_list *ret_list);

/* In the order of detachment; false from visit stops. */
void cw_record_list_visit(const struct cw_record_list *list,
	bool (*visit)(const struct cw_record *record, void *arg), void *arg);

/*
 * Puts all back (the context's end failed) and releases the list. Returns how many could not
 * be put back: no memory, or the address was recorded anew meanwhile.
 */
size_t cw_record_list_reinsert(struct cw_record_list *list);

/* Gives the list's memory back and makes it empty. */
void cw_record_list_release(struct cw_record_list *list);

/* Number of records; exact when nothing is in flight. */
uint64_t cw_ledger_live(void);

/*
 * Has `changed` called, outside of any lock, whenever that number has changed: by a function of
 * this header, not by the inline operations of ledger_inline.h.
 */
void cw_ledger_watch(void (*changed)(void));

/* Memory taken so far for records, with all that belongs to them. */
size_t cw_ledger_bytes_mapped(void);

/* How often a thread found this shard's lock held. For benches. */
uint32_t cw_ledger_contended(unsigned shard);

/*
 * In a fork child: the books are empty (the parent's allocations are not its own) and the locks
 * free, whatever state they were copied in; nothing need be locked before the fork. Handles
 * (handles.h) hold the ledger's rare wide records: both are to be called.
 */
void cw_ledger_postfork_child(void);

#endif
