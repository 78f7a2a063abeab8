/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_rows.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[] = "/tmp/cuweir-rows-XXXXXX";
static char file_path[64];
static char audit_path[64];

static const char *read_text(const char *path)
{
	static char text[1 << 16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

	if (fd >= 0) {
		close(fd);
	}
	text[length > 0 ? length : 0] = '\0';
	return text;
}

const char *policy_file(void)
{
	return read_text(file_path);
}

static void clean_up(void)
{
	unlink(file_path);
	unlink(audit_path);
	rmdir(directory);
}

static void set_up(void)
{
	if (file_path[0] == '\0') {
		assert_non_null(mkdtemp(directory));
		snprintf(file_path, sizeof(file_path), "%s/file", directory);
		snprintf(audit_path, sizeof(audit_path), "%s/audit", directory);
		atexit(clean_up);
	}
	unlink(file_path);
	unlink(audit_path);
}

/* Each name becomes a path in the build; FILE becomes the file's. */
static void write_chain(char *text, size_t size, const char *chain)
{
	size_t used = (size_t)snprintf(text, size, "CUWEIR_POLICY=");

	while (*chain != '\0') {
		size_t length = strcspn(chain, ";");
		size_t name = strcspn(chain, ":;");
		const char *file = strstr(chain, "FILE");

		used += (size_t)snprintf(text + used, size - used, "%s/policy/%.*s.so",
					 getenv("CUWEIR_TEST_BUILD"), (int)name, chain);
		if (file != NULL && file < chain + length) {
			used += (size_t)snprintf(text + used, size - used, "%.*s%s",
						 (int)(file - chain - (ptrdiff_t)name),
						 chain + name, file_path);
			name = (size_t)(file - chain) + strlen("FILE");
		}
		used += (size_t)snprintf(text + used, size - used, "%.*s;", (int)(length - name),
					 chain + name);
		chain += length + (chain[length] == ';');
	}
	snprintf(text + used, size - used, "%s/tests/plugins/auditor.so:%s",
		 getenv("CUWEIR_TEST_BUILD"), audit_path);
}

static void compare_books(const struct policy_row *row)
{
	const char *audit = read_text(audit_path);

	if (*audit == '\0') {
		fail_msg("%s: the books were not closed", row->run.row);
	}
	while (*audit != '\0') {
		unsigned long long totals;
		unsigned long long records;
		unsigned long long truth;

		if (sscanf(audit, "%*d %*d totals=%llu records=%llu truth=%llu", &totals, &records,
			   &truth) != 3 ||
		    totals != records || (records != truth && !row->unbalanced)) {
			fail_msg("%s: the books differ (device, kind): %.*s", row->run.row,
				 (int)strcspn(audit, "\n"), audit);
		}
		audit += strcspn(audit, "\n");
		audit += *audit == '\n';
	}
}

void run_policies(const struct policy_row *row)
{
	static char chain[4096];
	struct run one = row->run;
	int wanted = one.ways != 0 ? one.ways : ALL_WAYS;
	int last = 0;

	while (last < ENVIRONMENT_MAX && one.environment[last] != NULL) {
		last++;
	}
	assert_true(last < ENVIRONMENT_MAX);
	one.environment[last] = chain;
	for (int way = LINKED; way <= FOREIGN; way <<= 1) {
		if ((way & wanted) == 0) {
			continue;
		}
		set_up();
		write_chain(chain, sizeof(chain), row->chain);
		one.ways = way;
		run(&one);
		if (!one.unaudited) {
			compare_books(row);
		}
		if (row->file != NULL && strstr(policy_file(), row->file) == NULL) {
			fail_msg("%s: the file lacks \"%s\":\n%s", one.row, row->file,
				 policy_file());
		}
	}
}
