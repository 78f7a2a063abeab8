/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder does what its head says: tests of the shim believe its lines. */
#include "../policies/test_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[] = "/tmp/cuweir-recorder-XXXXXX";
static int nested_status;
static unsigned int nested_live;
static unsigned int nested_calls;

/* Found by the recorder in the global scope, as the shim's are. */
CUWEIR_EXPORT int cuMemAlloc_v2(uint64_t *ret_pointer, size_t size);
CUWEIR_EXPORT int cuMemFree_v2(uint64_t pointer);

int cuMemAlloc_v2(uint64_t *ret_pointer, size_t size)
{
	nested_calls++;
	assert_int_equal(size, 1024);
	if (nested_status != 0) {
		return nested_status;
	}
	*ret_pointer = 0x7700;
	nested_live++;
	return 0;
}

int cuMemFree_v2(uint64_t pointer)
{
	assert_int_equal(pointer, 0x7700);
	nested_live--;
	return 0;
}

static void *open_recorder(struct fake_host *fake, const char *more)
{
	char arguments[200];
	fake_host_init(fake);
	snprintf(arguments, sizeof(arguments), "file=%s%s", path, more);
	return fake_open(fake, policy, arguments);
}

/* The file's line `number`, from 0, without its newline. */
static const char *line_at(int number)
{
	static char line[1024];
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	for (int i = 0; i <= number; i++) {
		if (fgets(line, sizeof(line), file) == NULL) {
			fail_msg("no line %d", number);
		}
	}
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static struct cuweir_event full_event(void)
{
	struct cuweir_event event = fake_event(100, 1, 129);
	event.charged = 128;
	event.device = 1;
	event.retry_count = 4;
	event.status = 2;
	event.flags = 5;
	event.pointer = (void *)0x7f00;
	event.stream = (void *)0x2;
	event.context = (void *)0x30;
	event.thread = 77;
	return event;
}

#define FACTS_TO_FLAGS \
	" call=cudaMalloc kind=1 device=1 requested=100 charged=128 before=1 after=129 retry=4 " \
	"status=2 flags=5 "
#define FACTS_FROM_POINTER " pointer=0x7f00 stream=0x2 context=0x30 thread=77"

static void test_lines(void **state)
{
	struct fake_host fake;
	struct cuweir_event event = full_event();
	char want[400];
	void *recorder = open_recorder(&fake, ",retry=2,veto=700,dealloc_status=719,admit=801");
	snprintf(want, sizeof(want),
		 "open arguments=file=%s,retry=2,veto=700,dealloc_status=719,admit=801", path);
	assert_string_equal(line_at(0), want);
	assert_int_equal(policy->admit(recorder, &event), 801);
	assert_int_equal(policy->on_alloc_threshold(recorder, 129, &event), 700);
	assert_int_equal(policy->on_dealloc_threshold(recorder, 1, &event), 719);
	assert_true(policy->on_alloc_failure(recorder, 100, 1, &event));
	assert_false(policy->on_alloc_failure(recorder, 100, 2, &event));
	policy->on_allocated(recorder, 100, &event);
	policy->on_deallocated(recorder, 100, &event);
	policy->before_free(recorder, &event);
	policy->on_alloc_failed(recorder, &event);
	policy->on_context_ended(recorder, (void *)0x30, 1);
	policy->close(recorder);
#define WANT(number, head, answer) \
	assert_string_equal(line_at(number), head FACTS_TO_FLAGS \
			    "nested_status=none answer=" answer FACTS_FROM_POINTER)
	WANT(1, "admit", "801");
	WANT(2, "alloc_threshold total=129", "700");
	WANT(3, "dealloc_threshold total=1", "719");
	WANT(4, "alloc_failure size=100 count=1", "1");
	WANT(5, "alloc_failure size=100 count=2", "0");
	WANT(6, "allocated size=100", "0");
	WANT(7, "deallocated size=100", "0");
	WANT(8, "before_free", "0");
	WANT(9, "alloc_failed", "0");
	assert_string_equal(line_at(10), "context_ended device=1 context=0x30 nested_status=none");
	assert_string_equal(line_at(11), "close");
}

static void test_thresholds_kinds_and_turns(void **state)
{
	struct fake_host fake;
	struct cuweir_event event = full_event();
	size_t count;
	void *recorder = open_recorder(
		&fake, ",alloc=32K+8192+0,dealloc=6144,kinds=host,veto=3@2,admit=2@1,retry=always"
		       ",debug=1");
	assert_true(fake.debug);
	const uint64_t *bytes = policy->get_alloc_thresholds(recorder, &count);
	assert_int_equal(count, 3);
	assert_int_equal(bytes[0] + bytes[1] + bytes[2], 32768 + 8192);
	assert_int_equal(policy->get_dealloc_thresholds(recorder, &count)[0], 6144);
	assert_int_equal(count, 1);
	assert_int_equal(policy->on_alloc_threshold(recorder, 1, &event), 0); /* not heard */
	event.kind = CUWEIR_KIND_HOST;
	assert_int_equal(policy->on_alloc_threshold(recorder, 1, &event), 0);
	assert_int_equal(policy->on_alloc_threshold(recorder, 2, &event), 3);
	assert_int_equal(policy->on_alloc_threshold(recorder, 3, &event), 0);
	assert_non_null(strstr(line_at(3), "alloc_threshold total=3 call=cudaMalloc kind=3"));
	assert_int_equal(policy->admit(recorder, &event), 2);
	assert_int_equal(policy->admit(recorder, &event), 0);
	assert_true(policy->on_alloc_failure(recorder, 1, 1000000, &event));
}

static void test_nested(void **state)
{
	struct fake_host fake;
	struct cuweir_event event = full_event();
	void *recorder = open_recorder(&fake, ",nested=1");
	event.flags = 0;
	policy->before_free(recorder, &event);
	nested_status = 700;
	policy->on_context_ended(recorder, NULL, 0);
	event.flags = CUWEIR_EVENT_CAPTURING;
	policy->admit(recorder, &event);
	assert_non_null(strstr(line_at(1), " nested_status=0 "));
	assert_string_equal(line_at(2), "context_ended device=0 context=0x0 nested_status=700");
	assert_non_null(strstr(line_at(3), " nested_status=none "));
	assert_int_equal(nested_calls, 2);
	assert_int_equal(nested_live, 0);
}

static void test_refusals(void **state)
{
	static const char *const wrong[] = { ",alloc=",    ",alloc=1++2",  ",veto=x",
					     ",veto=2@0",  ",retry=often", ",nested=2",
					     ",kinds=gpu", ",unknown=1",   ",admit=2147483648" };
	struct fake_host fake;
	char arguments[200];
	fake_host_init(&fake);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(arguments, sizeof(arguments), "file=%s%s", path, wrong[i]);
		assert_non_null(strstr(fake_open_refused(&fake, policy, arguments), "argument 2"));
	}
	assert_string_equal(fake_open_refused(&fake, policy, ""), "want file=NAME");
}

static int set_up(void **state)
{
	int fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	return unlink(path);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		return 2;
	}
	policy = fake_load(argv[1]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_thresholds_kinds_and_turns),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
