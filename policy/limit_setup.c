/* SPDX-License-Identifier: Apache-2.0 */
#include "limit.h"

#include <unistd.h>

typedef int (*init_fn)(unsigned int flags);
typedef int (*count_fn)(int *count);
typedef int (*total_mem_fn)(size_t *bytes, int device);
typedef int (*uuid_fn)(unsigned char uuid[16], int device);

static void set_all(struct limit *limit, uint64_t bytes, unsigned int percent)
{
	for (int device = 0; device < LIMIT_DEVICES; device++) {
		limit->bytes[device] = bytes;
		limit->percent[device] = percent;
		limit->is_named[device] = false;
	}
}

/* "0", or "gpu0" as nvidia's tools write it. */
static bool read_device(struct args_text text, uint64_t *ret_device)
{
	if (text.length > 3 && memcmp(text.start, "gpu", 3) == 0) {
		text.start += 3;
		text.length -= 3;
	}
	return args_number(text, ret_device) && *ret_device < LIMIT_DEVICES;
}

static const char *read_pair(struct limit *limit, const struct args_pair *pair)
{
	static const char want[] = "SIZE, PERCENT%, DEVICE=SIZE, shared=NAME or safety=SIZE, as in "
				   "8GiB or 80% or 0=8GiB,1=512MiB (whole numbers; up to 100%; "
				   "devices 0 to 63)";
	uint64_t device = 0;
	uint64_t bytes = 0;
	unsigned int percent = 0;
	if (pair->value.start == NULL) {
		if (!args_share(pair->key, &bytes, &percent)) {
			return want;
		}
		set_all(limit, bytes, percent);
		return NULL;
	}
	if (args_is(pair->key, "safety")) {
		return args_size(pair->value, &limit->safety) ? NULL : "safety=SIZE: safety=256MiB";
	}
	if (args_is(pair->key, "shared")) {
		if (!shared_name_is_good(pair->value.start, pair->value.length)) {
			return "shared=NAME of at most 64 letters, digits, '.', '_' and '-', no "
			       "'.' at its start";
		}
		memcpy(limit->shared_name, pair->value.start, pair->value.length);
		limit->shared_name[pair->value.length] = '\0';
		return NULL;
	}
	if (!read_device(pair->key, &device) || !args_share(pair->value, &bytes, &percent)) {
		return want;
	}
	limit->bytes[device] = bytes;
	limit->percent[device] = percent;
	limit->is_named[device] = true;
	return NULL;
}

int limit_read(struct limit *limit, const struct cuweir_host *host, const char *arguments)
{
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	bool any = false;
	limit->host = host;
	set_all(limit, LIMIT_NONE, 0);
	while (args_next(&rest, &pair)) {
		const char *want = read_pair(limit, &pair);
		if (want != NULL) {
			return args_refuse(host, &pair, want);
		}
	}
	for (int device = 0; device < LIMIT_DEVICES; device++) {
		any = any || limit->bytes[device] != LIMIT_NONE;
		limit->has_percent = limit->has_percent || limit->percent[device] != 0;
	}
	return any ? CUWEIR_SUCCESS :
		     host->refuse(host, "no limit: want SIZE, PERCENT% or DEVICE=SIZE");
}

/*
 * CUWEIR_ERROR_NOT_FOUND where there is no driver yet, NOT_INITIALIZED where the program has not
 * initialized it. At an allocation of a runtime that no other door hears it is about to, and doing
 * it twice is doing it once; before that it may still mean to fork (`may_init` false).
 */
static int count_devices(const struct cuweir_host *host, bool may_init, int *ret_count)
{
	void *count = NULL;
	void *init = NULL;
	if (host->driver_function(host, "cuDeviceGetCount", &count) != CUWEIR_SUCCESS) {
		return CUWEIR_ERROR_NOT_FOUND;
	}
	int status = ((count_fn)count)(ret_count);
	if (status == CUWEIR_ERROR_NOT_INITIALIZED && may_init &&
	    host->driver_function(host, "cuInit", &init) == CUWEIR_SUCCESS &&
	    ((init_fn)init)(0) == CUWEIR_SUCCESS) {
		status = ((count_fn)count)(ret_count);
	}
	return status;
}

static int ask_total(const struct cuweir_host *host, int device, uint64_t *ret_bytes)
{
	void *total_mem = NULL;
	size_t bytes = 0;
	int status = host->driver_function(host, "cuDeviceTotalMem_v2", &total_mem);
	if (status == CUWEIR_SUCCESS) {
		status = ((total_mem_fn)total_mem)(&bytes, device);
	}
	*ret_bytes = bytes;
	return status;
}

/* The highest that was named; -1: none. */
static int last_named(const struct limit *limit)
{
	int device = LIMIT_DEVICES - 1;
	while (device >= 0 && !limit->is_named[device]) {
		device--;
	}
	return device;
}

/*
 * The limits of the devices that are there hold: a typing error takes no other one away. Only
 * `open` can refuse.
 */
static int check_named(struct limit *limit, int named, int count)
{
	char line[200];
	bool any = false;
	if (named < count || atomic_exchange(&limit->is_checked, true)) {
		return CUWEIR_SUCCESS;
	}
	for (int device = 0; device < count && device < LIMIT_DEVICES; device++) {
		any = any || limit->bytes[device] != LIMIT_NONE;
	}
	if (!any && !limit->is_open) {
		snprintf(line, sizeof(line), "there is no device %d here; want one below %d", named,
			 count);
		return limit->host->refuse(limit->host, line);
	}
	snprintf(line, sizeof(line), "cuweir[%d]: limit: there is no device %d here; want one below %d%s",
		 (int)getpid(), named, count, any ? "; the other limits hold" : "");
	return limit->host->log(limit->host, line);
}

/* `count` devices; -1 where that is not known yet. False: it has to wait for that. */
static bool set_budget(struct limit *limit, int device, int count, int *ret_status)
{
	uint64_t bytes = limit->bytes[device];
	if (limit->percent[device] != 0) {
		uint64_t total = 0;
		if (device >= count) {
			return count >= 0; /* no such device: none to limit */
		}
		if (ask_total(limit->host, device, &total) != CUWEIR_SUCCESS) {
			return false;
		}
		bytes = args_percent_of(total, limit->percent[device]);
		limit->bytes[device] = bytes;
	}
	*ret_status = limit->host->set_budget(limit->host, device, 0, bytes);
	atomic_store(&limit->is_set[device], *ret_status == CUWEIR_SUCCESS);
	return true;
}

int limit_set_budgets(struct limit *limit, bool may_init)
{
	int named = last_named(limit);
	int count = -1;
	int status = CUWEIR_SUCCESS;
	bool waits = false;
	if ((named >= 0 || limit->has_percent) &&
	    count_devices(limit->host, may_init, &count) != CUWEIR_SUCCESS) {
		count = -1;
		waits = true;
	}
	for (int device = 0; device < LIMIT_DEVICES && status == CUWEIR_SUCCESS; device++) {
		if (limit->bytes[device] != LIMIT_NONE && !atomic_load(&limit->is_set[device])) {
			waits |= !set_budget(limit, device, count, &status);
		}
	}
	if (status != CUWEIR_SUCCESS) {
		return limit->host->refuse(limit->host,
					   "the budget could not be set; want a device that exists");
	}
	/* Last: another thread that allocates meanwhile finds them all, or does the same. */
	atomic_store(&limit->is_pending, waits);
	return count >= 0 ? check_named(limit, named, count) : CUWEIR_SUCCESS;
}

/* The same device has other numbers in processes with other CUDA_VISIBLE_DEVICES. */
int limit_shared_device(struct limit *limit, int device)
{
	unsigned char identity[16] = { 0 };
	bool is_known = true;
	void *uuid = NULL;
	int known = atomic_load(&limit->shared_devices[device]);
	if (known != 0) {
		return known - 1;
	}
	if ((limit->host->driver_function(limit->host, "cuDeviceGetUuid_v2", &uuid) != 0 &&
	     limit->host->driver_function(limit->host, "cuDeviceGetUuid", &uuid) != 0) ||
	    ((uuid_fn)uuid)(identity, device) != CUWEIR_SUCCESS) {
		snprintf((char *)identity, sizeof(identity), "device %d", device);
		is_known = false; /* later, perhaps */
	}
	int found = shared_device(&limit->shared, identity);
	if (found >= 0 && is_known) {
		atomic_store(&limit->shared_devices[device], found + 1);
	}
	return found;
}
