/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a shareable handle is of memory that this process knows already. A fabric handle says
 * so by its bytes, a file descriptor by its file, where that is the memory's own; a descriptor
 * of a device's file says nothing, since all memory has the same one, and the same number
 * may be a descriptor of another process's memory by now. Memory that cannot be known again
 * counts as imported, beside what it counts as already.
 */
#ifndef CW_VIRTUAL_SHARE_H
#define CW_VIRTUAL_SHARE_H

#include <stdint.h>

/* The identity of a handle, as handed to an import; 0: none. Keeps errno. */
uint64_t cw_share_identity(const void *shareable, int type);

void cw_share_remember(uint64_t identity, uint64_t number);
uint64_t cw_share_find(uint64_t identity);
void cw_share_forget(uint64_t number);

#endif
