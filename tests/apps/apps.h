/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of this directory share: how they die, and how they print what the
 * simulated driver knows to be true. They know nothing of cuweir.
 */
#ifndef APPS_H
#define APPS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                          \
	do {                                                                                 \
		int check_status = (int)(call);                                              \
		if (check_status != 0) {                                                     \
			fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call,        \
				check_status);                                               \
			exit(1);                                                             \
		}                                                                            \
	} while (0)

#define REQUIRE(condition)                                                                   \
	do {                                                                                 \
		if (!(condition)) {                                                          \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__,           \
				#condition);                                                 \
			exit(1);                                                             \
		}                                                                            \
	} while (0)

/*
 * One line for each device and kind that has anything: "truth DEVICE KIND BYTES LIVE", kinds
 * numbered as in tests/sim/sim.h. Nothing where the driver is not the simulated one.
 */
static inline void print_truth(void)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
	unsigned long long (*used)(int, int) = NULL;
	unsigned long long (*live)(int, int) = NULL;

	if (libcuda == NULL) {
		return;
	}
	*(void **)&used = dlsym(libcuda, "cuweir_sim_used");
	*(void **)&live = dlsym(libcuda, "cuweir_sim_live");
	for (int device = 0; used != NULL && live != NULL && device < 16; device++) {
		for (int kind = 0; kind < 8; kind++) {
			if (used(device, kind) != 0 || live(device, kind) != 0) {
				printf("truth %d %d %llu %llu\n", device, kind,
				       used(device, kind), live(device, kind));
			}
		}
	}
	fflush(stdout);
}

static inline void finish(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[argc - 1], "truth") == 0) {
		print_truth();
	}
}

#endif
