/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups of driver functions by dlsym, dlvsym and cuGetProcAddress. */
#include "lookup_test.h"

#include <dirent.h>
#include <errno.h>

#include "cuda_api.h"

typedef CUresult get_v1(const char *, void **, int, cuuint64_t);
typedef CUresult get_v2(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static void *driver;

static int count_entries(const char *path)
{
	DIR *directory = opendir(path);
	int count = 0;

	while (readdir(directory) != NULL) {
		count++;
	}
	closedir(directory);
	return count;
}

/* P-62: look-ups alone start nothing, open nothing and call nothing. First of all tests. */
static void lookups_have_no_effect(void **state)
{
	const int *calls = dlsym(driver, "fake_calls");
	get_v2 *get = (get_v2 *)dlsym(driver, "cuGetProcAddress_v2");
	int files = count_entries("/proc/self/fd");
	/* One, "." and ".."; an emulator has threads of its own. */
	int threads = getenv("CW_EMULATED") == NULL ? 3 : count_entries("/proc/self/task");
	void *pointer;

	for (int round = 0; round < 1000; round++) {
		const struct test_row *row = &test_rows[(size_t)round % TEST_ROWS];

		dlsym(driver, row->symbol);
		get(row->base, &pointer, 12050, 0, NULL);
	}
	assert_int_equal(*calls, 0);
	assert_int_equal(count_entries("/proc/self/fd"), files);
	assert_int_equal(count_entries("/proc/self/task"), threads);
}

static void handle_gives_hooks(void **state)
{
	const struct link_map *object = driver;

	for (size_t i = 0; i < TEST_ROWS; i++) {
		const struct test_row *row = &test_rows[i];
		void *found = dlsym(driver, row->symbol);

		if (row->door != CW_DOOR_DRIVER) {
			assert_null(found);
		} else if (row->exported) {
			assert_ptr_equal(found, hook_called(row->symbol));
		} else {
			assert_ptr_equal(found, cw_elf_symbol(object, row->symbol));
		}
	}
}

/* P-1, P-17: other names are none of ours, known or not. */
static void other_names_are_left_alone(void **state)
{
	void *dnn = open_from_env("CW_DNN_B", 0);
	const char *const defined[] = { "cudnnCreate", "curl_x", "custom", "cublasCreate",
					"nvmlesque",   "cu",	 "c" };
	char name[32];

	for (size_t i = 0; i < sizeof defined / sizeof *defined; i++) {
		assert_ptr_equal(dlsym(dnn, defined[i]), cw_elf_symbol(dnn, defined[i]));
		assert_non_null(dlsym(dnn, defined[i]));
	}
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "cuNoSuch%d", i);
		assert_missing(driver, name);
		snprintf(name, sizeof name, "nvmlNoSuch%d", i);
		assert_missing(driver, name);
	}
	assert_missing(driver, "cuMemAlloc_v9");
	assert_missing(driver, "");
	assert_ptr_equal(dlsym(driver, "cuMemFree_v3"), cw_elf_symbol(driver, "cuMemFree_v3"));
}

static void same_name_in_two_libraries(void **state)
{
	void *first = open_from_env("CW_DNN_A", RTLD_GLOBAL);
	int (*create)(const char *) = (int (*)(const char *))dlsym(first, "cudnnCreate");

	assert_int_equal(create(getenv("CW_DNN_B")), 7);
}

static void foreign_definitions_are_left_alone(void **state)
{
	void *foreign = open_from_env("CW_FOREIGN", 0);

	assert_int_equal(call_blindly(dlsym(foreign, "cudaMalloc")), 4711);
	assert_int_equal(call_blindly(dlsym(foreign, "cuMemAlloc_v2")), 4712);
	dlclose(foreign);
}

/* P-6 */
static void dlerror_is_the_programs(void **state)
{
	void *math = dlopen("libm.so.6", RTLD_NOW);

	dlerror();
	assert_non_null(dlsym(math, "cos"));
	assert_null(dlerror());
	assert_non_null(dlsym(driver, "cuMemAlloc_v2"));
	assert_null(dlerror());
	assert_missing(math, "cuMemAlloc_v2");
	assert_missing(math, "cos_of_nothing");
	assert_null(dlvsym(driver, "cuMemAlloc_v2", "NO_SUCH_VERSION"));
	assert_non_null(strstr(dlerror(), "cuMemAlloc_v2"));
}

static void errno_is_the_programs(void **state)
{
	void *pointer;

	errno = 4321;
	dlsym(driver, "cuMemAlloc_v2");
	assert_int_equal(errno, 4321);
	dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	assert_int_equal(errno, 4321);
	dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	assert_int_equal(errno, 4321);
	((get_v1 *)hook_called("cuGetProcAddress"))("cuMemAlloc", &pointer, 3020, 0);
	assert_int_equal(errno, 4321);
}

/* A library sees what it was loaded with; the program sees only what is global. */
static void default_scope_is_the_callers(void **state)
{
	void *user = open_from_env("CW_USER", RTLD_LOCAL);
	void *(*ask)(const char *) = (void *(*)(const char *))dlsym(user, "user_default");

	assert_ptr_equal(ask("cuMemAlloc_v2"), hook_called("cuMemAlloc_v2"));
	assert_ptr_equal(ask("cuCtxGetDevice"), cw_elf_symbol(driver, "cuCtxGetDevice"));
	assert_missing(RTLD_DEFAULT, "cuMemAlloc_v2");
	assert_missing(dlopen(NULL, RTLD_NOW), "cuMemAlloc_v2");
	open_from_env("CW_FAKE_DRIVER", RTLD_GLOBAL);
	assert_ptr_equal(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), hook_called("cuMemAlloc_v2"));
	assert_ptr_equal(dlsym(dlopen(NULL, RTLD_NOW), "cuMemAlloc_v2"),
			 hook_called("cuMemAlloc_v2"));
	/* The program stands before us, so that we are what comes next. */
	assert_ptr_equal(dlsym(RTLD_NEXT, "cuMemAlloc_v2"), hook_called("cuMemAlloc_v2"));
}

static void *get(const char *base, int version, cuuint64_t flags, int with_status)
{
	get_v2 *v2 = (get_v2 *)dlsym(driver, "cuGetProcAddress_v2");
	get_v1 *v1 = (get_v1 *)dlsym(driver, "cuGetProcAddress");
	CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)9;
	void *first = (void *)1;
	void *second = (void *)2;
	CUresult one = v1(base, &first, version, flags);
	CUresult two = v2(base, &second, version, flags, with_status ? &status : NULL);

	assert_int_equal(one, two);
	if (one != CUDA_SUCCESS) {
		assert_ptr_equal(first, (void *)1);
		assert_ptr_equal(second, (void *)2);
		return NULL;
	}
	assert_ptr_equal(first, second);
	assert_int_equal(status, with_status ? (first == NULL) : 9);
	return first;
}

static const struct test_row *expected_row(const char *base, int version, cuuint64_t flags)
{
	const struct test_row *best = NULL;

	for (size_t i = 0; i < TEST_ROWS; i++) {
		const struct test_row *row = &test_rows[i];

		if (strcmp(row->base, base) != 0 || row->version > version || !row->exported ||
		    row->door != CW_DOOR_DRIVER || (row->stream == 2 && (flags & 2) == 0)) {
			continue;
		}
		if (best == NULL || row->version > best->version ||
		    (row->version == best->version && row->stream == (flags & 2))) {
			best = row;
		}
	}
	return best;
}

/* M9, P-13, P-14: every base name, at every version, with every flag. */
static void proc_address_by_version(void **state)
{
	const int versions[] = { 0,	2000,  2020,  3020,  4000,  5050,
				 6000,	7000,  10000, 10010, 11000, 11020,
				 11030, 11040, 12000, 12030, 12050, 13000 };

	for (size_t i = 0; i < TEST_ROWS; i++) {
		const char *base = test_rows[i].base;

		if (test_rows[i].door != CW_DOOR_DRIVER || !test_rows[i].exported) {
			continue;
		}
		for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) {
			for (cuuint64_t flags = 0; flags <= 2; flags++) {
				const struct test_row *row =
					expected_row(base, versions[v], flags);
				void *found = get(base, versions[v], flags, v % 2);

				if (row == NULL) {
					assert_null(found);
					continue;
				}
				assert_ptr_equal(found, hook_called(row->symbol));
				if (strcmp(base, "cuGetProcAddress") != 0) {
					assert_int_equal(call_blindly(found), row->result);
				}
			}
		}
		assert_null(get(base, 99990, 0, 1));
	}
}

/* M2, and what is not in the table. */
static void proc_address_of_other_names(void **state)
{
	get_v2 *v2 = (get_v2 *)dlsym(driver, "cuGetProcAddress_v2");
	void *pointer = (void *)3;

	assert_null(get("", 0, 0, 1));
	assert_null(get("cuNoSuch", 12000, 0, 1));
	assert_null(get("cuMemAlloc", 0, 0, 1));
	assert_null(get("cuMemAlloc", 1999, 2, 1));
	assert_int_equal(v2(NULL, &pointer, 12000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(v2("cuMemAlloc", NULL, 12000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_ptr_equal(get("cuInit", 12000, 0, 0), cw_elf_symbol(driver, "cuInit"));
	assert_int_equal(call_blindly(get("cuCtxGetDevice", 12000, 0, 0)),
			 FAKE_RESULT(cuCtxGetDevice));
}

/* A version that the table does not know has another ABI: its own address. */
static void proc_address_of_the_future(void **state)
{
	assert_ptr_equal(get("cuMemFree", 13020, 0, 1), cw_elf_symbol(driver, "cuMemFree_v3"));
	assert_ptr_equal(get("cuMemFree", 13019, 0, 1), hook_called("cuMemFree_v2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lookups_have_no_effect),
		cmocka_unit_test(handle_gives_hooks),
		cmocka_unit_test(other_names_are_left_alone),
		cmocka_unit_test(same_name_in_two_libraries),
		cmocka_unit_test(foreign_definitions_are_left_alone),
		cmocka_unit_test(dlerror_is_the_programs),
		cmocka_unit_test(proc_address_by_version),
		cmocka_unit_test(proc_address_of_other_names),
		cmocka_unit_test(proc_address_of_the_future),
		cmocka_unit_test(errno_is_the_programs),
		cmocka_unit_test(default_scope_is_the_callers),
	};

	require_shim();
	driver = open_from_env("CW_FAKE_DRIVER", 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
