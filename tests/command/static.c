/* SPDX-License-Identifier: Apache-2.0 */
/* A program without a dynamic linker. */
#include <stdio.h>

int main(void)
{
	puts("static");
	return 0;
}
