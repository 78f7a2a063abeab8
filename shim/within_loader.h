/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the calling thread is in the dynamic linker, and so has its lock. */
#ifndef CW_WITHIN_LOADER_H
#define CW_WITHIN_LOADER_H

#include <stdbool.h>

/*
 * True in a constructor, a destructor, and what they call: the linker is among the callers. By a
 * look through the words of the stack, so that it may be true where there is only a trace of the
 * linker; false where nothing can be seen. Any thread; no lock, no memory taken.
 */
bool cw_within_loader(void);

#endif
