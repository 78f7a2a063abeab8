/* SPDX-License-Identifier: Apache-2.0 */
/* CUWEIR_HOOKS, CUWEIR_ONLY, CUWEIR_SKIP: of which programs what is heard; D-16 at the start. */
#include "lines.h"

#include <stdio.h>
#include <string.h>

#define PAIR "alloc a 8192; free a"
#define HEARD(alloc, free)                                                                         \
	"cuweir[P]: allocated 8.0 KiB (8192 B) device by " alloc ", device 0, 0xA, "               \
	"total 8.0 KiB (8192 B)\n"                                                                 \
	"cuweir[P]: freed 8.0 KiB (8192 B) device by " free ", device 0, 0xA, total 0 B (0 B)\n"
#define BY_DRIVER HEARD("cuMemAlloc", "cuMemFree")
#define BY_RUNTIME HEARD("cudaMalloc", "cudaFree")

/* As run_lines, but with the names as they are. */
static void run_exact(const char *hooks, int way, const char *err)
{
	static struct result result;
	char setting[64];
	const struct run one = { .environment = { "CUWEIR_DEBUG=1", setting }, .script = PAIR };

	snprintf(setting, sizeof(setting), "CUWEIR_HOOKS=%s", hooks);
	run_once(&one, way, &result);
	normalize(result.err);
	if (result.exit_status != 0 || strcmp(result.err, err) != 0) {
		fail_msg("CUWEIR_HOOKS=%s, way %d: status %d, said\n%s\nexpected\n%s", hooks, way,
			 result.exit_status, result.err, err);
	}
}

static void hooks(void **state)
{
	static const struct {
		const char *hooks;
		const char *by_way[7]; /* LINKED, DLSYM, GPA, GPA1, SHARED, STATIC, FOREIGN */
	} rows[] = {
		/* A static runtime's functions are the program's: no door is before them. */
		{ "all", { BY_DRIVER, BY_DRIVER, BY_DRIVER, BY_DRIVER, BY_RUNTIME, BY_DRIVER,
			   BY_RUNTIME } },
		/* Look-ups find the real functions; a shared runtime has a door of its own. */
		{ "-dlsym", { BY_DRIVER, "", "", "", BY_RUNTIME, "", BY_RUNTIME } },
		{ "-getproc", { BY_DRIVER, BY_DRIVER, "", "", BY_RUNTIME, "", BY_RUNTIME } },
		{ "-dlsym,-getproc", { BY_DRIVER, "", "", "", BY_RUNTIME, "", BY_RUNTIME } },
		/* Heard all the same, by the driver's names. */
		{ "-runtime", { BY_DRIVER, BY_DRIVER, BY_DRIVER, BY_DRIVER, BY_DRIVER, BY_DRIVER,
				"" } },
		/* What comes to the runtime's door is looked after there (D-19). */
		{ "-driver", { "", "", "", "", BY_RUNTIME, "", BY_RUNTIME } },
		{ "-driver,-runtime", { "", "", "", "", "", "", "" } },
		/* The last word counts. */
		{ "-driver,,+driver,all", { BY_DRIVER, BY_DRIVER, BY_DRIVER, BY_DRIVER, BY_RUNTIME,
					    BY_DRIVER, BY_RUNTIME } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int way = 0; way < 7; way++) {
			run_exact(rows[i].hooks, 1 << way, rows[i].by_way[way]);
		}
	}
}

static void programs(void **state)
{
	static const struct {
		const char *setting;
		const char *other;
		bool linked; /* heard in scenario_linked */
		bool shared; /* heard in scenario_runtime_shared */
	} rows[] = {
		{ "CUWEIR_ONLY=scenario_linked", NULL, true, false },
		{ "CUWEIR_ONLY=python,scenario*", NULL, true, true },
		{ "CUWEIR_ONLY=scenario_*d", NULL, true, true },
		{ "CUWEIR_ONLY=*runtime*", NULL, false, true },
		{ "CUWEIR_ONLY=scenario_linke?", NULL, true, false },
		{ "CUWEIR_ONLY=scenario_linked?", NULL, false, false },
		{ "CUWEIR_ONLY=scenario", NULL, false, false },
		{ "CUWEIR_ONLY=", NULL, true, true },
		{ "CUWEIR_ONLY=,", NULL, false, false },
		{ "CUWEIR_SKIP=scenario_linked", NULL, false, true },
		{ "CUWEIR_SKIP=sh,*_shared,x", NULL, true, false },
		{ "CUWEIR_SKIP=*", NULL, false, false },
		{ "CUWEIR_SKIP=?", NULL, true, true },
		{ "CUWEIR_SKIP=****d", NULL, false, false },
		{ "CUWEIR_SKIP=*runtime", "CUWEIR_ONLY=*runtime*", false, true },
	};
	static const char both[] =
		"cuweir[P]: CUWEIR_ONLY and CUWEIR_SKIP are both set; want one of them; a program "
		"must be in the first and not in the second\n";

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int way = LINKED; way <= SHARED; way += SHARED - LINKED) {
			char err[2048];
			bool heard = way == LINKED ? rows[i].linked : rows[i].shared;
			const struct line_row row = {
				{ .row = rows[i].setting, .ways = way, .script = PAIR,
				  .environment = { "CUWEIR_DEBUG=1", rows[i].setting,
						   rows[i].other } },
				.err = heard ? err : "",
			};

			snprintf(err, sizeof(err), "%s%s", rows[i].other != NULL ? both : "",
				 way == LINKED ? BY_DRIVER : BY_RUNTIME);
			run_lines(&row);
		}
	}
}

/* D-16: eight threads make the first call at once; everything is told once. */
static void crowd(void **state)
{
	static const struct run one = {
		.program = "habits", .script = "crowd",
		.environment = { "CUWEIR_POLICY=nobody;CUWEIR;example:x", "CUWEIR_LIMT=1",
				 "CUWEIR_MAX_RETRIES=x", "CUWEIR_REPORT=1", "CUWEIR_VERBOSE=3" },
	};
	static const char *const once[] = {
		"CUWEIR_LIMT is not a setting", "CUWEIR_MAX_RETRIES=\"x\": want",
		"\"nobody\": there",
		"\"CUWEIR\": there", "\"example:x\": want up to 8 marks", "report when",
		"8 allocations, 8 frees", "0 allocations still live",
	};
	static struct result result;

	(void)state;
	for (int turn = 0; turn < 20; turn++) {
		run_once(&one, turn % 2 == 0 ? LINKED : SHARED, &result);
		assert_int_equal(result.exit_status, 0);
		for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++) {
			if (count_lines(result.err, once[i]) != 1) {
				fail_msg("\"%s\" is there %zu times:\n%s", once[i],
					 count_lines(result.err, once[i]), result.err);
			}
		}
		/* And nothing else before the report. */
		*strstr(result.err, "]: report when ") = '\0';
		assert_int_equal(count_lines(result.err, "cuweir["), 6);
	}
}

/* Policies are open before any of eight threads gets its memory: nobody's is missed. */
static void crowd_is_heard(void **state)
{
	static const struct run one = {
		.program = "habits", .script = "crowd",
		.environment = { "CUWEIR_DEBUG=1" },
	};
	static struct result result;

	(void)state;
	for (int turn = 0; turn < 20; turn++) {
		run_once(&one, turn % 2 == 0 ? LINKED : SHARED, &result);
		assert_int_equal(result.exit_status, 0);
		assert_int_equal(count_lines(result.err, "]: allocated 8.0 KiB"), 8);
		assert_int_equal(count_lines(result.err, "]: freed 8.0 KiB"), 8);
		assert_int_equal(count_lines(result.err, ""), 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hooks),
		cmocka_unit_test(programs),
		cmocka_unit_test(crowd),
		cmocka_unit_test(crowd_is_heard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
