/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the ledger, and lists of records taken out of it. Calls as ledger.c. */
#include "ledger_private.h"

#include <sys/mman.h>

#define BLOCK_BYTES 65536u

struct cw_record_block {
	struct cw_record_block *next;
	size_t used;
	struct cw_record records[];
};

#define BLOCK_RECORDS ((BLOCK_BYTES - sizeof(struct cw_record_block)) / sizeof(struct cw_record))
#define SEGMENT_RECORDS ((1u << cw_ledger_shape.group_bits) * CW_GROUP_SLOTS)

static bool visit_copy(struct cw_segment *copy,
	bool (*visit)(const struct cw_record *record, void *arg), void *arg)
{
	for (uint32_t g = 0; g <= cw_shape_last(&cw_ledger_shape); g++) {
		struct cw_group *group = cw_group_at(copy, &cw_ledger_shape, g);

		for (uint32_t used = cw_group_used(group); used != 0; used &= used - 1) {
			uint32_t i = (uint32_t)__builtin_ctz(used);
			struct cw_record record;

			cw_slot_unpack(&group->slots[i * cw_ledger_shape.words], &record);
			if (!visit(&record, arg)) {
				return false;
			}
		}
	}
	return true;
}

struct visitor {
	bool (*visit)(const struct cw_record *record, void *arg);
	void *arg;
};

static bool visit_wide(const struct cw_handle *entry, void *arg)
{
	const struct visitor *visitor = arg;
	struct cw_record record;

	cw_wide_unpack(entry, &record);
	return visitor->visit(&record, visitor->arg);
}

void cw_ledger_walk(bool (*visit)(const struct cw_record *record, void *arg), void *arg)
{
	struct visitor visitor = {.visit = visit, .arg = arg};
	struct cw_segment copy;

	for (unsigned i = 0; i < CW_LEDGER_SHARDS; i++) {
		for (uint32_t cursor = 0; cursor != CW_CURSOR_END;) {
			if (cw_shard_copy(&cw_ledger_shards_[i], &cw_ledger_shape, &cursor, &copy) &&
					!visit_copy(&copy, visit, arg)) {
				return;
			}
		}
	}
	cw_handles_walk(CW_HANDLE_WIDE, visit_wide, &visitor);
}

/* Makes sure that this many more fit, so that nothing is mapped under a shard's lock. */
static bool list_reserve(struct cw_record_list *list, size_t count)
{
	struct cw_record_block *block;

	if (list->last != NULL && BLOCK_RECORDS - list->last->used >= count) {
		return true;
	}
	block = cw_table_map(BLOCK_BYTES);
	if (block == NULL) {
		list->error = -ENOMEM;
		return false;
	}
	if (list->last != NULL) {
		list->last->next = block;
	} else {
		list->first = block;
	}
	list->last = block;
	return true;
}

static void list_append(struct cw_record_list *list, const struct cw_record *record)
{
	list->last->records[list->last->used++] = *record;
	list->count++;
}

/* Lock held. */
static void detach_from(struct cw_shard *shard, struct cw_segment *segment,
	bool (*match)(const struct cw_record *record, void *arg), void *arg,
	struct cw_record_list *list)
{
	for (uint32_t g = 0; g <= cw_shape_last(&cw_ledger_shape); g++) {
		struct cw_group *group = cw_group_at(segment, &cw_ledger_shape, g);

		for (uint32_t used = cw_group_used(group); used != 0; used &= used - 1) {
			uint32_t i = (uint32_t)__builtin_ctz(used);
			uint64_t *slot = &group->slots[i * cw_ledger_shape.words];
			struct cw_record record;

			cw_slot_unpack(slot, &record);
			if (!match(&record, arg)) {
				continue;
			}
			cw_segment_erase_at(segment, &cw_ledger_shape, cw_slot_hash(slot), g, i);
			cw_shard_count(shard, -1);
			list_append(list, &record);
		}
	}
}

struct detacher {
	struct visitor match;
	struct cw_record_list *list;
};

static bool detach_wide(const struct cw_handle *entry, void *arg)
{
	const struct detacher *detacher = arg;
	struct cw_record record;

	cw_wide_unpack(entry, &record);
	if (!detacher->match.visit(&record, detacher->match.arg)) {
		return true;
	}
	if (!list_reserve(detacher->list, 1)) {
		return false;
	}
	if (cw_wide_remove(record.address, &record)) {
		list_append(detacher->list, &record);
	}
	return true;
}

size_t cw_ledger_detach_if(bool (*match)(const struct cw_record *record, void *arg), void *arg,
	struct cw_record_list *ret_list)
{
	struct detacher detacher = {.match = {.visit = match, .arg = arg}, .list = ret_list};
	size_t before = ret_list->count;

	for (unsigned i = 0; i < CW_LEDGER_SHARDS; i++) {
		struct cw_shard *shard = &cw_ledger_shards_[i];

		if (__atomic_load_n(&shard->live, __ATOMIC_RELAXED) == 0) {
			continue;
		}
		for (uint32_t cursor = 0; cursor != CW_CURSOR_END;) {
			struct cw_segment *segment;

			if (!list_reserve(ret_list, SEGMENT_RECORDS)) {
				cw_ledger_changed();
				return ret_list->count - before;
			}
			cw_lock_acquire(&shard->lock);
			segment = cw_shard_at(shard, &cw_ledger_shape, cursor, &cursor);
			if (segment != NULL) {
				detach_from(shard, segment, match, arg, ret_list);
			}
			cw_lock_release(&shard->lock);
		}
	}
	cw_handles_walk(CW_HANDLE_WIDE, detach_wide, &detacher);
	cw_ledger_changed();
	if (ret_list->count == 0) {
		cw_record_list_release(ret_list);
	}
	return ret_list->count - before;
}

bool cw_ledger_detach(uint64_t address, struct cw_record_list *ret_list)
{
	struct cw_record record;

	if (!list_reserve(ret_list, 1) || !cw_ledger_remove(address, &record)) {
		return false;
	}
	list_append(ret_list, &record);
	return true;
}

void cw_record_list_visit(const struct cw_record_list *list,
	bool (*visit)(const struct cw_record *record, void *arg), void *arg)
{
	for (struct cw_record_block *block = list->first; block != NULL; block = block->next) {
		for (size_t i = 0; i < block->used; i++) {
			if (!visit(&block->records[i], arg)) {
				return;
			}
		}
	}
}

size_t cw_record_list_reinsert(struct cw_record_list *list)
{
	size_t lost = 0;

	for (struct cw_record_block *block = list->first; block != NULL; block = block->next) {
		for (size_t i = 0; i < block->used; i++) {
			const struct cw_record *record = &block->records[i];

			if (cw_ledger_insert(record->address, record->size, record->origin) < 0) {
				lost++;
			}
		}
	}
	cw_record_list_release(list);
	return lost;
}

void cw_record_list_release(struct cw_record_list *list)
{
	struct cw_record_block *block = list->first;

	while (block != NULL) {
		struct cw_record_block *next = block->next;

		(void)munmap(block, BLOCK_BYTES);
		block = next;
	}
	*list = (struct cw_record_list){.error = list->error};
}
