/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *names[32];
static size_t name_count;

static void set(const char *name, const char *value)
{
	if (setenv(name, value, 1) != 0) {
		refuse("no memory");
	}
	names[name_count++] = name;
}

static void set_if(const char *name, const char *value)
{
	if (value != NULL) {
		set(name, value);
	}
}

/* Behind what is there: a sanitizer's library has to come first. Never twice. */
static void set_preload(const char *shim)
{
	const char *there = getenv("LD_PRELOAD");
	char value[2 * PATH_SIZE];

	if (there == NULL || *there == '\0') {
		set("LD_PRELOAD", shim);
	} else if (strstr(there, shim) != NULL) {
		set("LD_PRELOAD", there);
	} else {
		snprintf(value, sizeof(value), "%s:%s", there, shim);
		set("LD_PRELOAD", value);
	}
}

static void set_simulation(const char *sim, const char *directory)
{
	const char *there = getenv("LD_LIBRARY_PATH");
	char value[3 * PATH_SIZE];
	char nvml[PATH_SIZE + 16];
	char size[64];
	size_t length = strcspn(sim, ":");

	/* In a build tree it lies beside; installed, all are in one directory. */
	snprintf(nvml, sizeof(nvml), ":%s/../nvml", directory);
	snprintf(value, sizeof(value), "%s%s%s%s", directory, access(nvml + 1, X_OK) == 0 ? nvml : "",
		 there != NULL ? ":" : "", there != NULL ? there : "");
	set("LD_LIBRARY_PATH", value);
	snprintf(size, sizeof(size), "%.*s", (int)length, sim);
	set("CUWEIR_SIM_CAPACITY", size);
	set("CUWEIR_SIM_DEVICES", sim[length] == ':' ? sim + length + 1 : "1");
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0';
}

/* One of two; an option goes before either variable. */
static void set_chosen(const struct options *options)
{
	if (options->only != NULL || options->skip != NULL) {
		unsetenv("CUWEIR_ONLY");
		unsetenv("CUWEIR_SKIP");
	} else if (is_set("CUWEIR_ONLY") && is_set("CUWEIR_SKIP")) {
		refuse("CUWEIR_ONLY and CUWEIR_SKIP are both set; want one of them");
	}
	set_if("CUWEIR_ONLY", options->only);
	set_if("CUWEIR_SKIP", options->skip);
}

void set_variables(const struct options *options, const struct places *places)
{
	char verbose[] = { (char)('0' + options->verbose), '\0' };

	set_preload(places->shim);
	set("CUWEIR_RUN", "1");
	set_if("CUWEIR_POLICY", options->chain[0] != '\0' ? options->chain : NULL);
	set_if("CUWEIR_DEBUG", options->debug ? "1" : NULL);
	set_if("CUWEIR_LOG", options->log[0] != '\0' ? options->log : NULL);
	set_if("CUWEIR_REPORT", options->report);
	set_if("CUWEIR_STACK", options->stack);
	set_chosen(options);
	set_if("CUWEIR_FOLLOW", options->no_follow ? "0" : NULL);
	set_if("CUWEIR_STRICT", options->strict ? "1" : NULL);
	set_if("CUWEIR_MAX_RETRIES", options->max_retries);
	set_if("CUWEIR_VERBOSE", options->verbose != 1 ? verbose : NULL);
	if (options->sim != NULL) {
		set_simulation(options->sim, places->simulation);
	}
}

void print_variables(void)
{
	for (size_t i = 0; i < name_count; i++) {
		printf("export %s='", names[i]);
		for (const char *at = getenv(names[i]); at != NULL && *at != '\0'; at++) {
			if (*at == '\'') {
				fputs("'\\''", stdout);
			} else {
				putchar(*at);
			}
		}
		puts("'");
	}
}
