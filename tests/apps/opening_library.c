/* SPDX-License-Identifier: Apache-2.0 */
#include "opening.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void load(void)
{
	const char *how = getenv("OPENING");

	atomic_store(&opening_in_constructor, true);
	if (strcmp(how, "before") != 0) {
		opening_start();
	}
	if (strcmp(how, "joined") == 0) {
		opening_allocate_joined();
	} else {
		opening_allocate();
	}
}
