/* SPDX-License-Identifier: Apache-2.0 */
#include "log_name.h"

#include "start_environment.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* What a name is made of. */
struct source {
	int device;
	bool has_read;
	struct start_environment at_start;
	const char *want;
	char text[256];
};

/* Of a variable, as it is now, else as it was; NULL where it is not set. */
static const char *value_in(struct source *source, const char *name)
{
	const char *value = getenv(name);
	if (value != NULL) {
		return value;
	}
	if (!source->has_read) {
		source->has_read = true;
		source->at_start = start_environment_read();
	}
	return start_environment_get(&source->at_start, name);
}

/*
 * This process's number among those that were started together; "0" where it is alone, which an
 * environment alone can say: it is one if it has what the policies are named by.
 */
static const char *rank(struct source *source)
{
	static const char *const variables[] = {
		"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK",
		"MPI_RANKID",           "SLURM_PROCID",
	};
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = value_in(source, variables[i]);
		if (value != NULL && value[0] != '\0') {
			return value;
		}
	}
	if (value_in(source, "CUWEIR_POLICY") != NULL) {
		return "0";
	}
	source->want = "an environment for %r: the program has emptied its own, and "
		       "/proc/self/environ cannot be read";
	return NULL;
}

/* "{NAME}" of a variable; moves *at to its '}'. NULL where it cannot be read or is not set. */
static const char *variable(struct source *source, struct args_text pattern, size_t *at)
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
	return i < pattern.length && length > 0 ? value_in(source, name) : NULL;
}

/* What stands for the letter at *at; NULL for none. */
static const char *value_of(struct source *source, struct args_text pattern, size_t *at)
{
	char *text = source->text;
	switch (pattern.start[*at]) {
	case '%':
		return "%";
	case 'p':
		snprintf(text, sizeof(source->text), "%d", (int)getpid());
		return text;
	case 'h':
		return gethostname(text, sizeof(source->text)) == 0 ? text : NULL;
	case 'n':
		return program_invocation_short_name;
	case 'd':
		snprintf(text, sizeof(source->text), source->device >= 0 ? "%d" : "none",
			 source->device);
		return text;
	case 'r':
		return rank(source);
	case 'q':
		return variable(source, pattern, at);
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

static bool expand(struct source *source, struct args_text pattern, char *ret_path, size_t size)
{
	size_t used = 0;
	for (size_t i = 0; i < pattern.length; i++) {
		const char *piece = pattern.start + i;
		size_t length = 1;
		if (*piece == '%') {
			i++;
			piece = i < pattern.length ? value_of(source, pattern, &i) : NULL;
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

const char *log_name_expand(struct args_text pattern, int device, char *ret_path, size_t size)
{
	struct source source = { .device = device, .want = LOG_NAME_WANT };
	bool good = expand(&source, pattern, ret_path, size);
	free(source.at_start.text);
	return good ? NULL : source.want;
}
