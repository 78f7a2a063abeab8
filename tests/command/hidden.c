/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses CUDA past every door: it reads the driver's symbol table itself. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include "elf_read.h"

int main(void)
{
	struct link_map *map = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned int);
	void *symbol = map != NULL ? cw_elf_symbol(map, "cuInit") : NULL;

	if (symbol == NULL) {
		return 2;
	}
	*(void **)&init = symbol;
	printf("cuInit: %d\n", init(0));
	return 0;
}
