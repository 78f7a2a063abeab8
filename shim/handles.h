/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of opaque handles: (namespace, 64-bit key) -> two 64-bit values. Streams and
 * contexts lead to devices here; virtual memory, arrays and imports keep their counts. An
 * opaque handle may equal an address or a handle of another sort, hence the namespace and
 * keys of full width.
 *
 * Callers: any module of the shim, any thread, any time (see ledger.h: same foundation, same
 * freedom). get takes no lock and writes nothing shared, since it is on the path of every
 * stream-ordered allocation; the others take one of 32 locks.
 */
#ifndef CW_HANDLES_H
#define CW_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cw_handle_space {
	CW_HANDLE_STREAM = 1,
	CW_HANDLE_CONTEXT,
	CW_HANDLE_EVENT,
	CW_HANDLE_VIRTUAL,    /* CUmemGenericAllocationHandle */
	CW_HANDLE_MAPPING,    /* mapped virtual range, by start */
	CW_HANDLE_RANGE,      /* reserved virtual range, by start */
	CW_HANDLE_ARRAY,
	CW_HANDLE_POOL,
	CW_HANDLE_GRAPH,
	CW_HANDLE_GRAPH_EXEC,
	CW_HANDLE_IMPORT,
	CW_HANDLE_USER = 64,  /* from here on: free for whoever needs one */
	CW_HANDLE_WIDE = 254, /* ledger.c: records of more than 48 bits */
	CW_HANDLE_ORIGIN,     /* origins.c: hash of a tuple -> index */
};

struct cw_handle {
	uint64_t key;
	uint64_t value;
	uint64_t value2;
	uint8_t space; /* enum cw_handle_space, or any other number below 256 */
};

/* What an update decided. */
enum cw_handle_verdict {
	CW_HANDLE_KEEP,   /* write the values back */
	CW_HANDLE_REMOVE, /* take the entry out (a count fell to zero) */
};

/* 0; or -EEXIST, the entry is left as it was; or -ENOMEM. */
int cw_handles_put(uint8_t space, uint64_t key, uint64_t value, uint64_t value2);

/* 1 when an entry was overwritten, 0 when it is new, or -ENOMEM. */
int cw_handles_set(uint8_t space, uint64_t key, uint64_t value, uint64_t value2);

/* ret may be NULL, and is untouched when false. */
bool cw_handles_get(uint8_t space, uint64_t key, struct cw_handle *ret);
bool cw_handles_remove(uint8_t space, uint64_t key, struct cw_handle *ret);

/*
 * Runs change on the entry under its lock (so it calls nothing of this module) and obeys its
 * verdict; only value and value2 are written back. NULL for change removes. false where there
 * is no such entry.
 * *ret, unless NULL, is the entry as change left it.
 */
bool cw_handles_update(uint8_t space, uint64_t key,
	enum cw_handle_verdict (*change)(struct cw_handle *entry, void *arg), void *arg,
	struct cw_handle *ret);

/* A change for it: value2 counts references, and there is one more. */
enum cw_handle_verdict cw_handle_one_more(struct cw_handle *entry, void *arg);

/* As cw_ledger_walk, within one space, or all when space is 0. Uses 4.5 KiB of stack. */
void cw_handles_walk(uint8_t space, bool (*visit)(const struct cw_handle *entry, void *arg),
	void *arg);

/* Takes out every entry of the space (0: all) that matches; match decides under a lock. */
size_t cw_handles_remove_if(uint8_t space,
	bool (*match)(const struct cw_handle *entry, void *arg), void *arg);

size_t cw_handles_bytes_mapped(void);

/* In a fork child, as in ledger.h: the table is empty. */
void cw_handles_postfork_child(void);

#endif
