/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVML door. NVML counts the devices of the machine, CUDA those that this process sees, in
 * an order of its own: what they call the same is known by its UUID alone (P-28).
 */
#include <stdlib.h>

#include "bodies.h"
#include "driver_door.h"
#include "query.h"

typedef int (*memory_info_fn)(struct cw_nvml_device *, struct cw_nvml_memory *);
typedef int (*memory_info_v2_fn)(struct cw_nvml_device *, struct cw_nvml_memory_v2 *);
typedef int (*nvml_uuid_fn)(struct cw_nvml_device *, char *, unsigned int);
typedef int (*nvml_count_fn)(unsigned int *);
typedef int (*nvml_mig_fn)(struct cw_nvml_device *, unsigned int *, unsigned int *);
typedef CUresult (*cuda_uuid_fn)(CUuuid *, CUdevice);

enum { UUID_BYTES = 16, UNKNOWN = -1 };

static int digit_of(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	if (c >= 'a' && c <= 'f') {
		return c - 'a' + 10;
	}
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "GPU-" or "MIG-", and 32 digits with dashes between. */
static bool read_uuid(const char *text, unsigned char *ret_bytes)
{
	unsigned int digits = 0;

	while (*text != '\0' && *text != '-') {
		text++;
	}
	for (; *text != '\0'; text++) {
		int digit = digit_of(*text);

		if (*text == '-') {
			continue;
		}
		if (digit < 0 || digits == 2 * UUID_BYTES) {
			return false;
		}
		ret_bytes[digits / 2] = (unsigned char)(ret_bytes[digits / 2] << 4 | digit);
		digits++;
	}
	return digits == 2 * UUID_BYTES;
}

/*
 * Before cuInit, and before there is a driver, CUDA names no devices. But where the machine has
 * one alone and nothing is hidden, that is its number 0.
 */
static int ordinal_before_init(const void *real, struct cw_nvml_device *device)
{
	nvml_mig_fn mig = (nvml_mig_fn)cw_function_beside(real, "nvmlDeviceGetMigMode");
	unsigned int mode = 0;
	unsigned int pending;
	nvml_count_fn count = (nvml_count_fn)cw_function_beside(real, "nvmlDeviceGetCount_v2");
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	unsigned int devices = 0;

	if (count == NULL || (visible != NULL && __builtin_strcmp(visible, "0") != 0) ||
	    count(&devices) != CW_NVML_SUCCESS || devices != 1) {
		return UNKNOWN;
	}
	/* A part of a device has figures of its own, and CUDA may show a part. */
	if (mig != NULL && mig(device, &mode, &pending) == CW_NVML_SUCCESS && mode != 0) {
		return UNKNOWN;
	}
	return 0;
}

/*
 * CUDA's ordinal of an NVML device. UNKNOWN where CUDA does not show it, or cannot be asked
 * because a capture is open.
 */
static int ordinal_of(const void *real, struct cw_nvml_device *device)
{
	cuda_uuid_fn cuda_uuid = (cuda_uuid_fn)cw_real_of(CW_HOOK_cuDeviceGetUuid_v2);
	nvml_uuid_fn nvml_uuid = (nvml_uuid_fn)cw_function_beside(real, "nvmlDeviceGetUUID");
	char text[CW_NVML_UUID_SIZE] = "";
	unsigned char wanted[UUID_BYTES] = { 0 };
	CUuuid uuid;

	if (cuda_uuid == NULL) {
		cuda_uuid = (cuda_uuid_fn)cw_real_of(CW_HOOK_cuDeviceGetUuid);
	}
	if (cw_capture_open()) {
		return UNKNOWN;
	}
	if (cuda_uuid == NULL || cuda_uuid(&uuid, 0) == CUDA_ERROR_NOT_INITIALIZED) {
		return ordinal_before_init(real, device);
	}
	if (nvml_uuid == NULL ||
	    nvml_uuid(device, text, sizeof(text)) != CW_NVML_SUCCESS ||
	    !read_uuid(text, wanted)) {
		return UNKNOWN;
	}
	for (int ordinal = 0; cuda_uuid(&uuid, ordinal) == CUDA_SUCCESS; ordinal++) {
		if (__builtin_memcmp(uuid.bytes, wanted, sizeof(wanted)) == 0) {
			return ordinal;
		}
	}
	return UNKNOWN;
}

/* False: the figures stay as they are. */
static bool answer(const void *real, struct cw_nvml_device *device,
		   unsigned long long *free_bytes, unsigned long long *total_bytes)
{
	struct cw_query query = { .call = cw_hook_base(CW_HOOK_nvmlDeviceGetMemoryInfo),
				  .free_bytes = *free_bytes, .total_bytes = *total_bytes };

	query.device = ordinal_of(real, device);
	if (query.device == UNKNOWN) {
		return false;
	}
	cw_query_answer(&query);
	if (query.free_bytes == *free_bytes && query.total_bytes == *total_bytes) {
		return false;
	}
	*total_bytes = query.total_bytes;
	*free_bytes = query.free_bytes;
	return true;
}

int cw_nvml_memory_info(enum cw_hook_id hook, const void *site, struct cw_nvml_device *device,
			struct cw_nvml_memory *memory)
{
	memory_info_fn real = (memory_info_fn)cw_real_of(hook);
	struct cw_nvml_memory figures = { 0 };
	int result;

	(void)site;
	if (real == NULL) {
		return CW_NVML_ERROR_FUNCTION_NOT_FOUND;
	}
	if (memory == NULL || !cw_query_wanted()) {
		return real(device, memory);
	}
	result = real(device, &figures);
	if (result != CW_NVML_SUCCESS) {
		return result;
	}
	if (answer((const void *)real, device, &figures.free, &figures.total)) {
		figures.used = figures.total - figures.free;
	}
	*memory = figures;
	return result;
}

int cw_nvml_memory_info_v2(enum cw_hook_id hook, const void *site, struct cw_nvml_device *device,
			   struct cw_nvml_memory_v2 *memory)
{
	memory_info_v2_fn real = (memory_info_v2_fn)cw_real_of(hook);
	struct cw_nvml_memory_v2 figures;
	unsigned long long taken;
	int result;

	(void)site;
	if (real == NULL) {
		return CW_NVML_ERROR_FUNCTION_NOT_FOUND;
	}
	if (memory == NULL || memory->version != CW_NVML_MEMORY_V2 || !cw_query_wanted()) {
		return real(device, memory);
	}
	figures = *memory;
	result = real(device, &figures);
	if (result != CW_NVML_SUCCESS) {
		return result;
	}
	if (answer((const void *)real, device, &figures.free, &figures.total)) {
		taken = figures.total - figures.free;
		figures.reserved = figures.reserved < taken ? figures.reserved : taken;
		figures.used = taken - figures.reserved;
	}
	*memory = figures;
	return result;
}
