/* SPDX-License-Identifier: Apache-2.0 */
/* The part of NVML's interface that is simulated, written from its public documentation. */
#ifndef CUWEIR_SIM_NVML_H
#define CUWEIR_SIM_NVML_H

#define NVML_SUCCESS 0
#define NVML_ERROR_UNINITIALIZED 1
#define NVML_ERROR_INVALID_ARGUMENT 2
#define NVML_ERROR_NOT_SUPPORTED 3
#define NVML_ERROR_NOT_FOUND 6
#define NVML_ERROR_INSUFFICIENT_SIZE 7
#define NVML_ERROR_ARGUMENT_VERSION_MISMATCH 25

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

struct nvml_memory {
	unsigned long long total, free, used;
};

/* Here used does not hold what the system reserves. */
struct nvml_memory_v2 {
	unsigned int version; /* the structure's size, and 2 << 24 */
	unsigned long long total, reserved, free, used;
};

struct nvml_process_v1 {
	unsigned int pid;
	unsigned long long used;
};

struct nvml_process_v2 { /* also of the function's third version */
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

#define NVML_MEMORY_V2 ((unsigned int)sizeof(struct nvml_memory_v2) | 2U << 24)

nvmlReturn_t nvmlInit(void);
nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
nvmlReturn_t nvmlShutdown(void);
const char *nvmlErrorString(nvmlReturn_t r);
nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned int n);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);
nvmlReturn_t nvmlDeviceGetCount(unsigned int *n);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *n);
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int i, nvmlDevice_t *dev);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *dev);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *dev);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *wanted, nvmlDevice_t *dev);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *wanted, nvmlDevice_t *dev);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t dev, unsigned int *i);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t dev, char *text, unsigned int n);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t dev, char *text, unsigned int n);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t dev, struct nvml_memory *m);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t dev, struct nvml_memory_v2 *m);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t dev, unsigned int *n,
						  struct nvml_process_v1 *list);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t dev, unsigned int *n,
						     struct nvml_process_v2 *list);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t dev, unsigned int *n,
						     struct nvml_process_v2 *list);
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t dev, unsigned int link, void *type);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t dev, unsigned int link, void *info);
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t dev, void *info);
#endif
