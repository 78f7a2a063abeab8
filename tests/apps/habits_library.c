/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose destructor runs after those of everything that was preloaded. */
#include "habits.h"

#include <stddef.h>

void (*habits_at_unload)(void) = NULL;

__attribute__((destructor)) static void unload(void)
{
	if (habits_at_unload != NULL) {
		habits_at_unload();
	}
}
