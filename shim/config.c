/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "message.h"
#include "stacks.h"

#define PREFIX "CUWEIR_"
#define SIM_PREFIX "CUWEIR_SIM_" /* the simulated GPU's own, and the test suites' */
#define TEST_PREFIX "CUWEIR_TEST_"

enum { PREFIX_LENGTH = sizeof(PREFIX) - 1, COMPLAINTS_KEPT = 16 };

struct cw_config cw_config = { .directory = "", .verbose = CW_ERROR, .max_retries = -1,
				.follow = true };

enum setting_id {
#define CW_SETTING(name, ...) SETTING_##name,
#include "settings.def"
#undef CW_SETTING
	SETTING_COUNT,
};

/* No pointers in what is constant: each would be a relocation. */
static const char setting_names[SETTING_COUNT][16] = {
#define CW_SETTING(name, reader, where, text) [SETTING_##name] = #name,
#include "settings.def"
#undef CW_SETTING
};

static const struct {
#define CW_SETTING(name, reader, where, text) char name[sizeof(text)];
#include "settings.def"
#undef CW_SETTING
} wants = {
#define CW_SETTING(name, reader, where, text) .name = text,
#include "settings.def"
#undef CW_SETTING
};

static const uint16_t want_offsets[SETTING_COUNT] = {
#define CW_SETTING(name, reader, where, text) [SETTING_##name] = offsetof(__typeof__(wants), name),
#include "settings.def"
#undef CW_SETTING
};

struct complaint {
	const char *name;  /* the whole variable name for an unknown one */
	const char *value;
	const char *want;  /* NULL: unknown name */
};

static struct complaint complaints[COMPLAINTS_KEPT];
static int complaint_count;
static const char *only_list;
static const char *skip_list;

/* The program may change or overwrite its environment later (setproctitle does). */
static char copies[4096];
static size_t copies_used;

static const char *copy_of(const char *string)
{
	size_t size = strlen(string) + 1;
	char *copy;

	if (size <= sizeof(copies) - copies_used) {
		copy = copies + copies_used;
		copies_used += size;
	} else {
		copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (copy == MAP_FAILED) {
			return string;
		}
	}
	return memcpy(copy, string, size);
}

static bool equals(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static bool read_flag(const char *value, void *target)
{
	bool on = equals(value, "1") || equals(value, "true") || equals(value, "on") ||
		  equals(value, "yes");

	if (!on && !equals(value, "0") && !equals(value, "") && !equals(value, "false") &&
	    !equals(value, "off") && !equals(value, "no")) {
		return false;
	}
	*(bool *)target = on;
	return true;
}

static bool read_string(const char *value, void *target)
{
	if (*value != '\0') {
		*(const char **)target = copy_of(value);
	}
	return true;
}

static bool read_count(const char *value, void *target)
{
	int64_t count = 0;

	if (*value == '\0') {
		return false;
	}
	for (; *value != '\0'; value++) {
		if (*value < '0' || *value > '9' || count > INT64_MAX / 10 - 10) {
			return false;
		}
		count = count * 10 + (*value - '0');
	}
	*(int64_t *)target = count;
	return true;
}

static bool read_level(const char *value, void *target)
{
	(void)target;
	if (value[0] < '0' || value[0] > '3' || value[1] != '\0') {
		return false;
	}
	cw_config.verbose = value[0] - '0';
	return true;
}

static bool read_stack(const char *value, void *target)
{
	int64_t frames = 0;

	if (!read_count(value, &frames) || frames > CW_STACK_MAX) {
		return false;
	}
	*(int *)target = (int)frames;
	return true;
}

static bool read_report(const char *value, void *target)
{
	bool on = false;

	(void)target;
	if (equals(value, "json")) {
		cw_config.report = "json";
		return true;
	}
	if (equals(value, "text")) {
		on = true;
	} else if (!read_flag(value, &on)) {
		return false;
	}
	cw_config.report = on ? "text" : NULL;
	return true;
}

static bool read_only(const char *value, void *target)
{
	return read_string(value, target != NULL ? target : (void *)&only_list);
}

static bool read_skip(const char *value, void *target)
{
	return read_string(value, target != NULL ? target : (void *)&skip_list);
}

/* The length of the first element of a list separated by commas. */
static size_t element_length(const char *list)
{
	return strcspn(list, ",");
}

static bool read_hooks(const char *value, void *target)
{
	static const struct {
		char name[8];
		uint16_t offset;
	} doors[] = {
		{ "dlsym", offsetof(struct cw_config, dlsym_off) },
		{ "getproc", offsetof(struct cw_config, getproc_off) },
		{ "runtime", offsetof(struct cw_config, runtime_off) },
		{ "driver", offsetof(struct cw_config, driver_off) },
	};
	bool off[sizeof(doors) / sizeof(doors[0])] = { false };

	(void)target;
	while (*value != '\0') {
		size_t length = element_length(value);
		bool known = length == 0 || (length == 3 && memcmp(value, "all", 3) == 0);

		for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
			size_t name_length = strlen(doors[i].name);

			if (length == name_length + 1 && (value[0] == '-' || value[0] == '+') &&
			    memcmp(value + 1, doors[i].name, name_length) == 0) {
				off[i] = value[0] == '-';
				known = true;
			}
		}
		if (!known) {
			return false;
		}
		value += length;
		value += *value == ',';
	}
	/* All of it or nothing: what cannot be read turns no door off. */
	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
		*(bool *)((char *)&cw_config + doors[i].offset) = off[i];
	}
	return true;
}

static bool read_setting(size_t setting, const char *value)
{
	switch (setting) {
#define CW_SETTING(name, reader, where, text) case SETTING_##name: return reader(value, where);
#include "settings.def"
#undef CW_SETTING
	default:
		return false;
	}
}

static void complain_later(const char *name, const char *value, const char *want)
{
	if (complaint_count < COMPLAINTS_KEPT) {
		complaints[complaint_count++] =
			(struct complaint){ copy_of(name), copy_of(value), want };
	}
}

/* `entry` is "CUWEIR_NAME=value". */
static void read_entry(const char *entry)
{
	const char *name = entry + PREFIX_LENGTH;
	const char *equal_sign = strchr(name, '=');
	size_t length;

	if (equal_sign == NULL || strncmp(entry, SIM_PREFIX, sizeof(SIM_PREFIX) - 1) == 0 ||
	    strncmp(entry, TEST_PREFIX, sizeof(TEST_PREFIX) - 1) == 0) {
		return;
	}
	length = (size_t)(equal_sign - name);
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		if (strlen(setting_names[i]) == length &&
		    memcmp(setting_names[i], name, length) == 0) {
			if (!read_setting(i, equal_sign + 1)) {
				complain_later(setting_names[i], equal_sign + 1,
					       (const char *)&wants + want_offsets[i]);
			}
			return;
		}
	}
	complain_later(entry, "", NULL);
}

/* Shell-like: * and ?, nothing else; the whole of `text` up to `end`. */
static bool glob_matches(const char *glob, const char *end, const char *text)
{
	while (glob < end) {
		if (*glob == '*') {
			do {
				if (glob_matches(glob + 1, end, text)) {
					return true;
				}
			} while (*text++ != '\0');
			return false;
		}
		if (*text == '\0' || (*glob != '?' && *glob != *text)) {
			return false;
		}
		glob++;
		text++;
	}
	return *text == '\0';
}

static bool listed(const char *list, const char *program)
{
	while (*list != '\0') {
		size_t length = element_length(list);

		if (glob_matches(list, list + length, program)) {
			return true;
		}
		list += length;
		list += *list == ',';
	}
	return false;
}

static void choose_program(void)
{
	const char *program = program_invocation_short_name;

	if ((only_list != NULL && !listed(only_list, program)) ||
	    (skip_list != NULL && listed(skip_list, program))) {
		cw_config.disabled = true;
	}
}

/* Not absolute: a directory that is not below the root (any more) has no name. */
static void note_directory(void)
{
	static char directory[PATH_MAX];

	if (getcwd(directory, sizeof(directory)) != NULL && directory[0] == '/') {
		/* Of the root, what a '/' can follow. */
		cw_config.directory = directory[1] != '\0' ? directory : "/.";
	}
}

void cw_config_load(void)
{
	/* 0 not yet, 1 by some thread just now, 2 done. */
	static _Atomic int progress;
	int expected = 0;

	if (!atomic_compare_exchange_strong(&progress, &expected, 1)) {
		while (atomic_load_explicit(&progress, memory_order_acquire) != 2) {
			/* A few microseconds of another thread, once in a process. */
		}
		return;
	}
	cw_message_note_stderr();
	if (getauxval(AT_SECURE) == 0 && environ != NULL) {
		for (char **entry = environ; *entry != NULL; entry++) {
			if ((*entry)[0] == 'C' && strncmp(*entry, PREFIX, PREFIX_LENGTH) == 0) {
				read_entry(*entry);
			}
		}
		if (only_list != NULL || skip_list != NULL) {
			choose_program();
		}
		if (cw_config.policy != NULL || cw_config.log != NULL) {
			note_directory();
		}
	}
	atomic_store_explicit(&progress, 2, memory_order_release);
}

/* The number of single-letter edits between the name before '=' and a setting's. */
static unsigned int edit_distance(const char *a, const char *b)
{
	enum { LIMIT = 32 };
	unsigned int row[LIMIT + 1];
	size_t length_a = strcspn(a, "=");
	size_t length_b = strlen(b);

	if (length_a > LIMIT || length_b > LIMIT) {
		return LIMIT;
	}
	for (size_t j = 0; j <= length_b; j++) {
		row[j] = (unsigned int)j;
	}
	for (size_t i = 1; i <= length_a; i++) {
		unsigned int diagonal = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= length_b; j++) {
			unsigned int best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best) {
				best = row[j] + 1;
			}
			if (row[j - 1] + 1 < best) {
				best = row[j - 1] + 1;
			}
			row[j] = best;
		}
	}
	return row[length_b];
}

/* NULL where none is near. */
static const char *nearest_setting(const char *name)
{
	const char *nearest = NULL;
	unsigned int distance = (unsigned int)strcspn(name, "=") / 3 + 1;

	for (size_t i = 0; i < SETTING_COUNT; i++) {
		unsigned int found = edit_distance(name, setting_names[i]);

		if (found <= distance) {
			nearest = setting_names[i];
			distance = found - (found > 0);
		}
	}
	return nearest;
}

static void complain_of_unknown(const char *entry)
{
	const char *nearest = nearest_setting(entry + PREFIX_LENGTH);
	char name[64];

	cw_format(name, sizeof(name), "%s", entry);
	name[strcspn(name, "=")] = '\0';
	if (nearest != NULL) {
		cw_message(CW_ERROR, "%s is not a setting; did you mean CUWEIR_%s?", name, nearest);
	} else {
		cw_message(CW_ERROR, "%s is not a setting; want one of cuweir(7)", name);
	}
}

int cw_config_complain(void)
{
	for (int i = 0; i < complaint_count; i++) {
		const struct complaint *c = &complaints[i];

		if (c->want == NULL) {
			complain_of_unknown(c->name);
		} else {
			cw_message(CW_ERROR, "CUWEIR_%s=\"%s\": want %s; it is ignored", c->name,
				   c->value, c->want);
		}
	}
	if (only_list != NULL && skip_list != NULL) {
		cw_message(CW_ERROR, "CUWEIR_ONLY and CUWEIR_SKIP are both set; want one of them; "
				     "a program must be in the first and not in the second");
	}
	return complaint_count;
}
