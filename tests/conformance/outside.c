/* SPDX-License-Identifier: Apache-2.0 */
/* Linked statically: nothing can be preloaded into it. */
#include <stdio.h>

int main(void)
{
	return puts("outside") < 0 ? 1 : 23;
}
