/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aliases: memory by a second name, and names of no memory, whose frees are known and mean
 * nothing to the books. A buffer mapped from imported memory is one, an array that owns no
 * memory another. Any thread, in a callback or not.
 */
#ifndef CW_ALIASES_H
#define CW_ALIASES_H

#include <stddef.h>

#include "handles.h"

/* Namespace in handles.h; keys are those of cw_key, a value is how often the name was given. */
enum { CW_ALIAS_SPACE = 82 };

static inline enum cw_handle_verdict cw_alias_more(struct cw_handle *entry, void *argument)
{
	(void)argument;
	entry->value++;
	return CW_HANDLE_KEEP;
}

static inline enum cw_handle_verdict cw_alias_less(struct cw_handle *entry, void *argument)
{
	(void)argument;
	return --entry->value == 0 ? CW_HANDLE_REMOVE : CW_HANDLE_KEEP;
}

static inline void cw_alias_note(uint64_t key)
{
	if (cw_handles_put(CW_ALIAS_SPACE, key, 1, 0) < 0) {
		cw_handles_update(CW_ALIAS_SPACE, key, cw_alias_more, NULL, NULL);
	}
}

/* Before the real free; noted again where that fails. False: no alias. */
static inline bool cw_alias_forget(uint64_t key)
{
	return cw_handles_update(CW_ALIAS_SPACE, key, cw_alias_less, NULL, NULL);
}

#endif
