/* SPDX-License-Identifier: Apache-2.0 */
#include "log_name.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* This process's number among those that were started together; "0" where it is alone. */
static const char *rank(void)
{
	static const char *const variables[] = {
		"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK",
		"MPI_RANKID",           "SLURM_PROCID",
	};
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i]);
		if (value != NULL && value[0] != '\0') {
			return value;
		}
	}
	return "0";
}

/* "{NAME}" of a variable; moves *at to its '}'. NULL where it cannot be read or is not set. */
static const char *variable(struct args_text pattern, size_t *at)
{
	char name[128];
	size_t length = 0;
	size_t i = *at + 1;
	if (i >= pattern.length || pattern.start[i] != '{') {
		return NULL;
	}
	for (i++; i < pattern.length && pattern.start[i] != '}'; i++) {
		if (length + 1 == sizeof(name)) {
			return NULL;
		}
		name[length++] = pattern.start[i];
	}
	name[length] = '\0';
	*at = i;
	return i < pattern.length && length > 0 ? getenv(name) : NULL;
}

/* What stands for the letter at *at; NULL for none. */
static const char *value_of(struct args_text pattern, size_t *at, int device, char text[256])
{
	switch (pattern.start[*at]) {
	case '%':
		return "%";
	case 'p':
		snprintf(text, 256, "%d", (int)getpid());
		return text;
	case 'h':
		return gethostname(text, 256) == 0 ? text : NULL;
	case 'n':
		return program_invocation_short_name;
	case 'd':
		snprintf(text, 256, device >= 0 ? "%d" : "none", device);
		return text;
	case 'r':
		return rank();
	case 'q':
		return variable(pattern, at);
	default:
		return NULL;
	}
}

bool log_name_has(struct args_text pattern, char letter)
{
	for (size_t i = 0; i + 1 < pattern.length; i++) {
		if (pattern.start[i] == '%') {
			i++;
			if (pattern.start[i] == letter) {
				return true;
			}
		}
	}
	return false;
}

bool log_name_expand(struct args_text pattern, int device, char *ret_path, size_t size)
{
	char text[256];
	size_t used = 0;
	for (size_t i = 0; i < pattern.length; i++) {
		const char *piece = pattern.start + i;
		size_t length = 1;
		if (*piece == '%') {
			i++;
			piece = i < pattern.length ? value_of(pattern, &i, device, text) : NULL;
			if (piece == NULL) {
				return false;
			}
			length = strlen(piece);
		}
		if (length > size - 16 || used > size - 16 - length) {
			return false; /* room for what is put after it, too */
		}
		memcpy(ret_path + used, piece, length);
		used += length;
	}
	ret_path[used] = '\0';
	return used > 0;
}
