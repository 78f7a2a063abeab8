/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is needed of NVML, after its public documentation: the toolkit may come without its
 * header. nvmlReturn_t is an int here, nvmlDevice_t a pointer.
 */
#ifndef CW_NVML_API_H
#define CW_NVML_API_H

enum {
	CW_NVML_SUCCESS = 0,
	CW_NVML_ERROR_FUNCTION_NOT_FOUND = 13,
};

struct cw_nvml_device;

/* nvmlMemory_t: free + used = total. */
struct cw_nvml_memory {
	unsigned long long total;
	unsigned long long free;
	unsigned long long used;
};

/* nvmlMemory_v2_t: reserved + free + used = total. The caller says the version. */
struct cw_nvml_memory_v2 {
	unsigned int version;
	unsigned long long total;
	unsigned long long reserved;
	unsigned long long free;
	unsigned long long used;
};

#define CW_NVML_MEMORY_V2 ((unsigned int)sizeof(struct cw_nvml_memory_v2) | 2u << 24)

/* nvmlDeviceGetUUID fills at most this much, its end included. */
#define CW_NVML_UUID_SIZE 96

#endif
