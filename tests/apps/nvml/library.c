/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnvidia-ml.so.1 of four devices, of which CUDA shows the last two, and in the other order:
 * device 3 of NVML is ordinal 0 of CUDA, device 2 is ordinal 1. Each has 8 GiB, of which the
 * system reserves 512 MiB and 1 GiB is in use.
 */
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
#define MIB (1ULL << 20)

enum { DEVICES = 4 };

/* The handles: numbers from 1, so that none is NULL. */
static int index_of(nvmlDevice_t device)
{
	unsigned long number = (unsigned long)device;

	return number >= 1 && number <= DEVICES ? (int)number - 1 : -1;
}

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
	return NVML_SUCCESS;
}

/* With CUWEIR_TEST_NVML_ONE it says that there is one. */
EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = getenv("CUWEIR_TEST_NVML_ONE") != NULL ? 1 : DEVICES;
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if (index >= DEVICES) {
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	*device = (nvmlDevice_t)(index + 1UL);
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	int index = index_of(device);
	int ordinal = 3 - index;

	if (index < 0) {
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	/* Those of the simulated driver: "cuweir-sim-gpu-" and the ordinal, see its device.c. */
	snprintf(uuid, length, "GPU-63757765-6972-2d73-696d-2d67707500%02x",
		 (unsigned int)ordinal + 1);
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	if (index_of(device) < 0 || memory == NULL) {
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	*memory = (nvmlMemory_t){ .total = 8192 * MIB, .used = 1536 * MIB, .free = 6656 * MIB };
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	if (index_of(device) < 0 || memory == NULL) {
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	if (memory->version != nvmlMemory_v2) {
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	}
	memory->total = 8192 * MIB;
	memory->reserved = 512 * MIB;
	memory->used = 1024 * MIB;
	memory->free = 6656 * MIB;
	return NVML_SUCCESS;
}
