/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the policy `log`: a directory of its files, and what is in them. */
#ifndef TESTS_LOG_DIRECTORY_H
#define TESTS_LOG_DIRECTORY_H

#include "test_main.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[] = "/tmp/cuweir-logs-XXXXXX";

static inline char *path_of(const char *name)
{
	static char paths[4][1000];
	static unsigned int next;
	char *path = paths[next++ % 4];
	snprintf(path, 1000, "%s/%s", directory, name);
	return path;
}

/* What is in a file, without NULs; "" where it is not there. */
static inline char *text_of(const char *name)
{
	static char texts[2][1 << 21];
	static unsigned int next;
	char *text = texts[next++ % 2];
	FILE *file = fopen(path_of(name), "r");
	size_t used = 0;
	int c;
	while (file != NULL && (c = fgetc(file)) != EOF && used + 1 < sizeof(texts[0])) {
		text[used] = (char)c;
		used += c != '\0';
	}
	if (file != NULL) {
		fclose(file);
	}
	text[used] = '\0';
	return text;
}

static inline size_t rows_in(const char *name)
{
	size_t rows = 0;
	for (const char *at = text_of(name); *at != '\0'; at++) {
		rows += *at == '\n';
	}
	return rows;
}

static inline void *open_in(struct fake_host *fake, const char *name, const char *more)
{
	static char all[64][400]; /* valid until the process ends, as the contract says */
	static unsigned int next;
	char *arguments = all[next++ % 64];
	fake_host_init(fake);
	snprintf(arguments, 400, "file=%s%s", path_of(name), more);
	return fake_open(fake, policy, arguments);
}

static inline void put_rows(void *log, int count)
{
	for (int i = 0; i < count; i++) {
		struct cuweir_event event = fake_free_event((uint64_t)i, (void *)0x7f1000, 0);
		policy->before_free(log, &event);
	}
}

static inline void check_there(const char *name)
{
	assert_int_equal(access(path_of(name), F_OK), 0);
}

static inline int set_up(void **state)
{
	return mkdtemp(directory) != NULL ? 0 : -1;
}

static inline int tear_down(void **state)
{
	DIR *files = opendir(directory);
	const struct dirent *entry;
	while (files != NULL && (entry = readdir(files)) != NULL) {
		unlink(path_of(entry->d_name));
	}
	closedir(files);
	return rmdir(directory);
}

#endif
