/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare BARE HOOKED LEAST: two logs of observer.c, of the same program without and with
 * libcuweir.so. Line by line the same was asked; where the driver answered with a function of
 * hooks.def, the answer with us must be our definition of that very symbol, everywhere else
 * the driver's own. At least LEAST answers must have been ours, lest nothing was compared.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const hooks[] = {
#define CW_DRIVER(symbol, ...) #symbol,
#define CW_RUNTIME(symbol, ...)
#define CW_RUNTIME0(symbol, ...)
#define CW_REAL_ONLY(symbol)
#define CW_NVML(symbol, ...)
#include "hooks.def"
};
#define HOOK_COUNT (sizeof(hooks) / sizeof(hooks[0]))

struct answer {
	char asked[160]; /* how, name, version and flags */
	char object[64];
	char symbol[96];
};

static bool is_hook(const char *symbol, bool *ret_seen)
{
	for (size_t i = 0; i < HOOK_COUNT; i++) {
		if (strcmp(hooks[i], symbol) == 0) {
			ret_seen[i] = true;
			return true;
		}
	}
	return false;
}

static bool read_answer(FILE *file, struct answer *ret)
{
	char how[8], name[96], version[12], flags[12];

	if (fscanf(file, "%7s %95s %11s %11s %63s %95s", how, name, version, flags, ret->object,
		   ret->symbol) != 6) {
		return false;
	}
	snprintf(ret->asked, sizeof(ret->asked), "%s %s %s %s", how, name, version, flags);
	return true;
}

static bool agree(const struct answer *bare, const struct answer *hooked, bool ours)
{
	return strcmp(bare->asked, hooked->asked) == 0 &&
	       strcmp(bare->symbol, hooked->symbol) == 0 &&
	       strcmp(hooked->object, ours ? "libcuweir.so" : bare->object) == 0;
}

int main(int argc, char **argv)
{
	static bool seen[HOOK_COUNT];
	struct answer bare, hooked;
	FILE *files[2];
	int lines = 0, ours = 0, wrong = 0;

	if (argc != 4 || (files[0] = fopen(argv[1], "r")) == NULL ||
	    (files[1] = fopen(argv[2], "r")) == NULL) {
		fprintf(stderr, "usage: compare BARE HOOKED LEAST\n");
		return 2;
	}
	while (read_answer(files[0], &bare)) {
		bool is_ours = is_hook(bare.symbol, seen);

		lines++;
		ours += is_ours;
		memset(&hooked, 0, sizeof(hooked));
		if (!read_answer(files[1], &hooked) || !agree(&bare, &hooked, is_ours)) {
			wrong++;
			printf("asked %s: without us %s of %s; with us (%s) %s of %s\n", bare.asked,
			       bare.symbol, bare.object, hooked.asked, hooked.symbol,
			       hooked.object);
		}
	}
	if (read_answer(files[1], &hooked)) {
		wrong++;
		printf("only with us: %s\n", hooked.asked);
	}
	for (size_t i = 0; i < HOOK_COUNT; i++) {
		if (!seen[i]) {
			printf("never asked for: %s\n", hooks[i]);
		}
	}
	printf("%d answers, %d of them hooks, %d wrong\n", lines, ours, wrong);
	return wrong == 0 && ours >= atoi(argv[3]) ? 0 : 1;
}
