/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated NVML: the devices of CUWEIR_SIM_DEVICES. Their figures come from the simulated driver
 * where this process has it loaded; it is not loaded for their sake, and then all memory is free.
 * Other processes' memory is not seen.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../driver/size.h"
#include "nvml.h"

#define EXPORT __attribute__((visibility("default")))
#define MAX_DEVICES 16

static _Atomic int inits;
static char handles[MAX_DEVICES];

static unsigned int count(void)
{
	const char *s = getenv("CUWEIR_SIM_DEVICES");
	int n = s != NULL && *s != '\0' ? atoi(s) : 1;

	return n < 0 ? 0 : n > MAX_DEVICES ? MAX_DEVICES : (unsigned int)n;
}

static unsigned long long capacity(void)
{
	const char *s = getenv("CUWEIR_SIM_CAPACITY");

	return s != NULL && *s != '\0' ? sim_parse_size(s) : SIM_DEFAULT_CAPACITY;
}

static nvmlReturn_t index_of(nvmlDevice_t dev, const void *out, unsigned int *ret)
{
	size_t i = (size_t)((char *)dev - handles);

	if (atomic_load(&inits) == 0) {
		return NVML_ERROR_UNINITIALIZED;
	}
	if (out == NULL || i >= count()) {
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	*ret = (unsigned int)i;
	return NVML_SUCCESS;
}

/* Bytes in use; false where the driver is not loaded. */
static int in_use(unsigned int i, unsigned long long *ret)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	unsigned long long (*free_bytes)(int) = NULL;
	void *p = driver != NULL ? dlsym(driver, "cuweir_sim_free") : NULL;

	*ret = 0;
	if (p != NULL) {
		memcpy(&free_bytes, &p, sizeof(p));
		*ret = capacity() - free_bytes((int)i);
	}
	if (driver != NULL) {
		dlclose(driver);
	}
	return p != NULL;
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;
	atomic_fetch_add(&inits, 1);
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlInit(void)
{
	return nvmlInitWithFlags(0);
}

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
	return nvmlInitWithFlags(0);
}

EXPORT nvmlReturn_t nvmlShutdown(void)
{
	if (atomic_load(&inits) == 0) {
		return NVML_ERROR_UNINITIALIZED;
	}
	atomic_fetch_sub(&inits, 1);
	return NVML_SUCCESS;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t r)
{
	switch (r) {
	case NVML_SUCCESS:
		return "Success";
	case NVML_ERROR_UNINITIALIZED:
		return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_ERROR_NOT_FOUND:
		return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "Insufficient Size";
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
		return "Version mismatch";
	default:
		return "Unknown Error";
	}
}

static nvmlReturn_t put(char *text, unsigned int n, const char *value)
{
	if (n <= strlen(value)) {
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	memcpy(text, value, strlen(value) + 1);
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned int n)
{
	if (atomic_load(&inits) == 0) {
		return NVML_ERROR_UNINITIALIZED;
	}
	return text == NULL ? NVML_ERROR_INVALID_ARGUMENT : put(text, n, "580.00");
}

/* The version that the simulated driver tells. */
EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	const char *s = getenv("CUWEIR_SIM_DRIVER_VERSION");

	if (version == NULL) {
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	*version = s != NULL && *s != '\0' ? atoi(s) : 13000;
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *n)
{
	if (atomic_load(&inits) == 0) {
		return NVML_ERROR_UNINITIALIZED;
	}
	if (n == NULL) {
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	*n = count();
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *n)
{
	return nvmlDeviceGetCount_v2(n);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *dev)
{
	if (atomic_load(&inits) == 0) {
		return NVML_ERROR_UNINITIALIZED;
	}
	if (dev == NULL || i >= count()) {
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	*dev = (nvmlDevice_t)(void *)&handles[i];
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int i, nvmlDevice_t *dev)
{
	return nvmlDeviceGetHandleByIndex_v2(i, dev);
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t dev, unsigned int *i)
{
	return index_of(dev, i, i);
}

/* The bytes of cuDeviceGetUuid, in NVML's spelling. */
static void uuid(unsigned int i, char text[41])
{
	unsigned char b[16] = "cuweir-sim-gpu";

	b[15] = (unsigned char)(i + 1);
	snprintf(text, 41,
		 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
		 b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
		 b[14], b[15]);
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t dev, char *text, unsigned int n)
{
	char value[41];
	unsigned int i;
	nvmlReturn_t r = index_of(dev, text, &i);

	if (r == NVML_SUCCESS) {
		uuid(i, value);
		r = put(text, n, value);
	}
	return r;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *wanted, nvmlDevice_t *dev)
{
	char value[41];

	if (atomic_load(&inits) == 0) {
		return NVML_ERROR_UNINITIALIZED;
	}
	if (wanted == NULL || dev == NULL) {
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	for (unsigned int i = 0; i < count(); i++) {
		uuid(i, value);
		if (strcmp(value, wanted) == 0) {
			return nvmlDeviceGetHandleByIndex_v2(i, dev);
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

/* The domain, bus and slot of cuDeviceGetPCIBusId; the function is not looked at. */
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *wanted, nvmlDevice_t *dev)
{
	unsigned int domain, bus, slot;

	if (atomic_load(&inits) == 0) {
		return NVML_ERROR_UNINITIALIZED;
	}
	if (wanted == NULL || dev == NULL ||
	    sscanf(wanted, "%x:%x:%x", &domain, &bus, &slot) != 3) {
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	return domain == 0 && slot == 0 && bus >= 1 && bus <= count()
		       ? nvmlDeviceGetHandleByIndex_v2(bus - 1, dev)
		       : NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *wanted, nvmlDevice_t *dev)
{
	return nvmlDeviceGetHandleByPciBusId_v2(wanted, dev);
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t dev, char *text, unsigned int n)
{
	char value[64];
	unsigned int i;
	nvmlReturn_t r = index_of(dev, text, &i);

	if (r == NVML_SUCCESS) {
		snprintf(value, sizeof(value), "cuweir simulated GPU %u", i);
		r = put(text, n, value);
	}
	return r;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t dev, struct nvml_memory *m)
{
	unsigned int i;
	nvmlReturn_t r = index_of(dev, m, &i);

	if (r == NVML_SUCCESS) {
		m->total = capacity();
		in_use(i, &m->used);
		m->free = m->total - m->used;
	}
	return r;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t dev, struct nvml_memory_v2 *m)
{
	unsigned int i;
	nvmlReturn_t r = index_of(dev, m, &i);

	if (r == NVML_SUCCESS && m->version != NVML_MEMORY_V2) {
		r = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	}
	if (r == NVML_SUCCESS) {
		m->total = capacity();
		m->reserved = 0;
		in_use(i, &m->used);
		m->free = m->total - m->used;
	}
	return r;
}

/* This process, where it has the driver loaded. *n says how much room there is, then how many
 * there are; no room is a question for the number. */
static nvmlReturn_t processes(nvmlDevice_t dev, unsigned int *n, unsigned long long *ret)
{
	unsigned int i, room;
	nvmlReturn_t r = index_of(dev, n, &i);

	if (r != NVML_SUCCESS) {
		return r;
	}
	room = *n;
	*n = in_use(i, ret) ? 1 : 0;
	return *n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t dev, unsigned int *n,
							 struct nvml_process_v1 *list)
{
	unsigned long long used = 0;
	nvmlReturn_t r = processes(dev, n, &used);

	if (r == NVML_SUCCESS && *n == 1) {
		if (list == NULL) {
			return NVML_ERROR_INVALID_ARGUMENT;
		}
		*list = (struct nvml_process_v1){(unsigned int)getpid(), used};
	}
	return r;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t dev, unsigned int *n,
							    struct nvml_process_v2 *list)
{
	unsigned long long used = 0;
	nvmlReturn_t r = processes(dev, n, &used);

	if (r == NVML_SUCCESS && *n == 1) {
		if (list == NULL) {
			return NVML_ERROR_INVALID_ARGUMENT;
		}
		*list = (struct nvml_process_v2){(unsigned int)getpid(), used, ~0U, ~0U};
	}
	return r;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t dev, unsigned int *n,
							    struct nvml_process_v2 *list)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(dev, n, list);
}

/* There is no NVLink, and no fabric. */
static nvmlReturn_t unsupported(nvmlDevice_t dev, const void *out)
{
	unsigned int i;
	nvmlReturn_t r = index_of(dev, out, &i);

	return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t dev, unsigned int link,
							void *type)
{
	(void)link;
	return unsupported(dev, type);
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t dev, unsigned int link,
							void *info)
{
	(void)link;
	return unsupported(dev, info);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t dev, void *info)
{
	return unsupported(dev, info);
}
