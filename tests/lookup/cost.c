/* SPDX-License-Identifier: Apache-2.0 */
/* For check_cost: looks a foreign name up through a handle as often as it is told. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	void *math = dlopen("libm.so.6", RTLD_NOW);
	long count = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	/* Where argv lies depends on the environment, and what strcmp() costs on where it lies. */
	static _Alignas(64) char name[64] = "cos";

	if (argc > 2) {
		strncpy(name, argv[2], sizeof name - 1);
	}

	for (long i = 0; i < count; i++) {
		if (dlsym(math, name) == NULL) {
			return 1;
		}
	}
	return 0;
}
