/* SPDX-License-Identifier: Apache-2.0 */
#include "opening.h"

#include <stdlib.h>

__attribute__((constructor)) static void load(void)
{
	if (atoi(getenv("OPENING_WITHIN")) != 0) {
		opening_start();
	}
	opening_allocate();
}
