/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_host.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <sys/syscall.h>

#define BLOCK_BASE 0x7f0000000000ull
#define BLOCK_STEP 0x10000000ull

static struct fake_host *fake_of(const struct cuweir_host *host)
{
	return host->instance;
}

static int fake_log(const struct cuweir_host *host, const char *line)
{
	struct fake_host *fake = fake_of(host);
	if (line == NULL) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&fake->lock);
	if (fake->line_count < FAKE_LINES) {
		snprintf(fake->lines[fake->line_count], sizeof(fake->lines[0]), "%s", line);
	}
	fake->line_count++;
	pthread_mutex_unlock(&fake->lock);
	return CUWEIR_SUCCESS;
}

static int fake_refuse(const struct cuweir_host *host, const char *reason)
{
	struct fake_host *fake = fake_of(host);
	snprintf(fake->reason, sizeof(fake->reason), "%s", reason);
	return CUWEIR_ERROR_INVALID_VALUE;
}

static int fake_totals(const struct cuweir_host *host, int device, int kind,
		       struct cuweir_totals *ret_totals)
{
	struct fake_host *fake = fake_of(host);
	if (device < 0 || device >= FAKE_DEVICES || kind <= 0 || kind >= CUWEIR_KIND_COUNT ||
	    ret_totals->struct_size != sizeof(*ret_totals)) {
		return CUWEIR_ERROR_INVALID_VALUE;
	}
	*ret_totals = fake->totals[device][kind];
	ret_totals->struct_size = sizeof(*ret_totals);
	return CUWEIR_SUCCESS;
}

static int fake_wait_for_free(const struct cuweir_host *host, uint64_t timeout_ns)
{
	struct fake_host *fake = fake_of(host);
	size_t turn = fake->wait_count < FAKE_WAITS ? fake->wait_count : FAKE_WAITS - 1;
	fake->wait_times[turn] = timeout_ns;
	fake->wait_count++;
	return fake->wait_answers[turn];
}

static int fake_set_debug(const struct cuweir_host *host, bool on)
{
	fake_of(host)->debug = on;
	return CUWEIR_SUCCESS;
}

static bool fake_get_debug(const struct cuweir_host *host)
{
	return fake_of(host)->debug;
}

static int fake_driver_function(const struct cuweir_host *host, const char *symbol,
				void **ret_function)
{
	struct fake_host *fake = fake_of(host);
	void *function = fake->find_driver != NULL ? fake->find_driver(symbol) : NULL;
	if (function == NULL) {
		return CUWEIR_ERROR_NOT_FOUND;
	}
	*ret_function = function;
	return CUWEIR_SUCCESS;
}

static const struct cuweir_event *fake_current_event(const struct cuweir_host *host)
{
	return fake_of(host)->event;
}

static int fake_set_budget(const struct cuweir_host *host, int device, uint32_t kinds,
			   uint64_t bytes)
{
	struct fake_host *fake = fake_of(host);
	if (fake->budget_status == CUWEIR_SUCCESS) {
		fake->budget_device = device;
		fake->budget_kinds = kinds;
		fake->budget_bytes = bytes;
		fake->budgets[device] = bytes;
	}
	return fake->budget_status;
}

static int fake_get_budget(const struct cuweir_host *host, int device, uint64_t *ret_bytes,
			   uint64_t *ret_used, uint64_t *ret_reserved)
{
	struct fake_host *fake = fake_of(host);
	if (fake->budget_status == CUWEIR_SUCCESS) {
		*ret_bytes = fake->budgets[device];
		*ret_used = fake->budget_used;
		*ret_reserved = fake->budget_reserved;
	}
	return fake->budget_status;
}

static int fake_trim(const struct cuweir_host *host, int device)
{
	struct fake_host *fake = fake_of(host);
	fake->trim_count++;
	fake->trim_device = device;
	return fake->trim_status;
}

static void *next_allocate_async(void *state, uint64_t size, uint64_t alignment, uint32_t flags,
				 void *stream)
{
	struct fake_host *fake = state;
	if (size == 0 || size > fake->next_left || fake->next_allocations == 256) {
		return NULL;
	}
	fake->next_left -= size;
	fake->next_sizes[fake->next_allocations] = size;
	return (void *)(uintptr_t)(BLOCK_BASE + BLOCK_STEP * fake->next_allocations++);
}

static bool next_deallocate_async(void *state, void *memory, void *stream)
{
	struct fake_host *fake = state;
	uint64_t block = ((uintptr_t)memory - BLOCK_BASE) / BLOCK_STEP;
	if (block >= fake->next_allocations || fake->next_sizes[block] == 0 ||
	    ((uintptr_t)memory - BLOCK_BASE) % BLOCK_STEP != 0) {
		return false;
	}
	fake->next_left += fake->next_sizes[block];
	fake->next_sizes[block] = 0;
	fake->next_frees++;
	fake->next_freed = memory;
	fake->next_freed_stream = stream;
	return true;
}

static void *next_allocate(void *state, uint64_t size, uint64_t alignment, uint32_t flags)
{
	return next_allocate_async(state, size, alignment, flags, NULL);
}

static bool next_deallocate(void *state, void *memory)
{
	return next_deallocate_async(state, memory, NULL);
}

void fake_host_init(struct fake_host *fake)
{
	memset(fake, 0, sizeof(*fake));
	memset(fake->budgets, 0xff, sizeof(fake->budgets));
	pthread_mutex_init(&fake->lock, NULL);
	fake->budget_status = CUWEIR_ERROR_NOT_SUPPORTED;
	fake->trim_status = CUWEIR_ERROR_NOT_SUPPORTED;
	fake->next_left = UINT64_MAX;
	fake->next = (struct cuweir_allocator){
		.struct_size = sizeof(struct cuweir_allocator),
		.allocate_async = next_allocate_async,
		.deallocate_async = next_deallocate_async,
		.allocate = next_allocate,
		.deallocate = next_deallocate,
	};
	fake->host = (struct cuweir_host){
		.struct_size = sizeof(struct cuweir_host),
		.version = CUWEIR_POLICY_VERSION,
		.shim_version = "0.0.0",
		.instance = fake,
		.log = fake_log,
		.refuse = fake_refuse,
		.totals = fake_totals,
		.wait_for_free = fake_wait_for_free,
		.set_debug = fake_set_debug,
		.get_debug = fake_get_debug,
		.driver_function = fake_driver_function,
		.current_event = fake_current_event,
		.set_budget = fake_set_budget,
		.get_budget = fake_get_budget,
		.trim = fake_trim,
		.next = &fake->next,
		.next_state = fake,
	};
}

const struct cuweir_policy *fake_load(const char *path)
{
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (module == NULL) {
		fail_msg("%s", dlerror());
	}
	const struct cuweir_policy *policy = dlsym(module, "cuweir_policy_entry");
	assert_non_null(policy);
	assert_int_equal(policy->struct_size, sizeof(*policy));
	assert_int_equal(policy->version, CUWEIR_POLICY_VERSION);
	assert_non_null(policy->name);
	return policy;
}

/* States live as long as the process, in the shim as here: no leaks. */
static void *open_states[256];
static size_t open_count;

void *fake_open(struct fake_host *fake, const struct cuweir_policy *policy,
		const char *arguments)
{
	void *state = NULL;
	fake->reason[0] = '\0';
	int status = policy->open(&fake->host, arguments, &state);
	if (status != CUWEIR_SUCCESS) {
		fail_msg("open(\"%s\"): %d, \"%s\"", arguments, status, fake->reason);
	}
	assert_in_range(open_count, 0, 255);
	open_states[open_count++] = state;
	return state;
}

const char *fake_open_refused(struct fake_host *fake, const struct cuweir_policy *policy,
			      const char *arguments)
{
	void *state = NULL;
	fake->reason[0] = '\0';
	int status = policy->open(&fake->host, arguments, &state);
	if (status == CUWEIR_SUCCESS) {
		fail_msg("open(\"%s\") succeeded", arguments);
	}
	return fake->reason;
}

struct cuweir_event fake_event(uint64_t size, uint64_t total_before, uint64_t total_after)
{
	return (struct cuweir_event){
		.struct_size = sizeof(struct cuweir_event),
		.call = "cudaMalloc",
		.kind = CUWEIR_KIND_DEVICE,
		.requested = size,
		.charged = size,
		.total_before = total_before,
		.total_after = total_after,
		.thread = (uint64_t)syscall(SYS_gettid),
	};
}

struct cuweir_event fake_free_event(uint64_t size, void *pointer, uint64_t total)
{
	struct cuweir_event event = fake_event(size, total, total);
	event.call = "cudaFree";
	event.pointer = pointer;
	return event;
}
