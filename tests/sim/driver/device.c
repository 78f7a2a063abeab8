/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: their figures, their memory's address space, and what is asked about them. */
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "private.h"

struct sim_device sim_devices[SIM_MAX_DEVICES];
struct sim_device sim_nowhere = {.arena = {.lock = PTHREAD_MUTEX_INITIALIZER}, .ordinal = -1};
int sim_n_devices;
struct sim_arena sim_system = {.lock = PTHREAD_MUTEX_INITIALIZER};
pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;

void sim_devices_setup(void)
{
	sim_n_devices = sim_set.devices;
	for (int i = 0; i < sim_n_devices; i++) {
		struct sim_device *d = &sim_devices[i];

		d->ordinal = i;
		d->capacity = sim_set.capacity;
		pthread_mutex_init(&d->arena.lock, NULL);
	}
}

/*
 * A device's memory gets its address space with its first context. It is larger than the capacity,
 * since capacity is charged by requests and space by granules. Pinned and managed memory share one
 * arena, twice the capacity and some more: managed memory may exceed the device's.
 */
bool sim_device_map(struct sim_device *d)
{
	bool ok = true;

	if (atomic_load_explicit(&d->mapped, memory_order_acquire)) {
		return true;
	}
	pthread_mutex_lock(&sim_system.lock);
	if (sim_system.base == NULL) {
		ok = sim_arena_init(&sim_system, d->capacity + (8ULL << 30));
	}
	pthread_mutex_unlock(&sim_system.lock);
	pthread_mutex_lock(&d->arena.lock);
	if (ok && !atomic_load(&d->mapped)) {
		ok = sim_arena_init(&d->arena, d->capacity + d->capacity / 2 + (1ULL << 30));
		atomic_store_explicit(&d->mapped, ok, memory_order_release);
	}
	pthread_mutex_unlock(&d->arena.lock);
	return ok;
}

struct sim_arena *sim_arena_of(uint64_t addr)
{
	for (int i = 0; i < sim_n_devices; i++) {
		struct sim_device *d = &sim_devices[i];

		if (atomic_load_explicit(&d->mapped, memory_order_acquire)) {
			if (sim_arena_has(&d->arena, addr)) {
				return &d->arena;
			}
			if (sim_arena_has(&sim_system, addr)) {
				return &sim_system;
			}
		}
	}
	return NULL;
}

/* The device's arena lock is held. */
uint64_t sim_device_free(const struct sim_device *d)
{
	uint64_t taken = d->linear + d->reserved + d->graph_reserved;

	return taken < d->capacity ? d->capacity - taken : 0;
}

void sim_charge(struct sim_device *d, int kind, uint64_t bytes)
{
	atomic_fetch_add_explicit(&d->used[kind], bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&d->live[kind], 1, memory_order_relaxed);
}

void sim_uncharge(struct sim_device *d, int kind, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&d->used[kind], bytes, memory_order_relaxed);
	atomic_fetch_sub_explicit(&d->live[kind], 1, memory_order_relaxed);
}

CUresult sim_device_get(CUdevice dev, struct sim_device **ret)
{
	if (dev < 0 || dev >= sim_n_devices) {
		return CUDA_ERROR_INVALID_DEVICE;
	}
	*ret = &sim_devices[dev];
	return CUDA_SUCCESS;
}

static CUresult check(CUdevice dev, const void *out)
{
	struct sim_device *d;

	return out == NULL ? CUDA_ERROR_INVALID_VALUE : sim_device_get(dev, &d);
}

static CUresult init(unsigned int flags)
{
	if (flags != 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (sim_n_devices <= 0) {
		return CUDA_ERROR_NO_DEVICE;
	}
	sim_settings_inited();
	return CUDA_SUCCESS;
}

static CUresult driver_version(int *version)
{
	if (version == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	sim_settings_ready();
	*version = sim_set.driver_version;
	return CUDA_SUCCESS;
}

static CUresult get(CUdevice *dev, int ordinal)
{
	CUresult r = check(ordinal, dev);

	if (r == CUDA_SUCCESS) {
		*dev = ordinal;
	}
	return r;
}

static CUresult count(int *n)
{
	if (n == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*n = sim_n_devices;
	return CUDA_SUCCESS;
}

static CUresult name(char *text, int len, CUdevice dev)
{
	CUresult r = check(dev, text);

	if (r == CUDA_SUCCESS) {
		if (len <= 0) {
			return CUDA_ERROR_INVALID_VALUE;
		}
		snprintf(text, (size_t)len, "cuweir simulated GPU %d", dev);
	}
	return r;
}

static CUresult total(size_t *bytes, CUdevice dev)
{
	CUresult r = check(dev, bytes);

	if (r == CUDA_SUCCESS) {
		*bytes = sim_devices[dev].capacity;
	}
	return r;
}

static CUresult total_v1(unsigned int *bytes, CUdevice dev)
{
	CUresult r = check(dev, bytes);

	if (r == CUDA_SUCCESS) {
		*bytes = (unsigned int)sim_devices[dev].capacity;
	}
	return r;
}

static CUresult uuid(CUuuid *id, CUdevice dev)
{
	CUresult r = check(dev, id);

	if (r == CUDA_SUCCESS) {
		memcpy(id->bytes, "cuweir-sim-gpu\0\0", sizeof(id->bytes));
		id->bytes[15] = (char)(dev + 1);
	}
	return r;
}

static CUresult bus_id(char *text, int len, CUdevice dev)
{
	CUresult r = check(dev, text);

	if (r == CUDA_SUCCESS) {
		if (len < 13) {
			return CUDA_ERROR_INVALID_VALUE;
		}
		snprintf(text, (size_t)len, "0000:%02x:00.0", dev + 1);
	}
	return r;
}

static CUresult by_bus_id(CUdevice *dev, const char *text)
{
	unsigned int domain, bus, slot;

	if (dev == NULL || text == NULL || sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3 ||
	    bus == 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	return get(dev, (int)bus - 1);
}

static CUresult capability(int *major, int *minor, CUdevice dev)
{
	CUresult r = check(dev, major);

	if (r == CUDA_SUCCESS && minor != NULL) {
		*major = 9;
		*minor = 0;
	}
	return r;
}

static CUresult luid(char *id, unsigned int *mask, CUdevice dev)
{
	CUresult r = check(dev, id);

	(void)mask;
	return r == CUDA_SUCCESS ? CUDA_ERROR_NOT_SUPPORTED : r; /* Windows only */
}

SIM_API(cuInit, (unsigned int Flags), (Flags), (0), init(Flags))
SIM_API(cuDriverGetVersion, (int *driverVersion), (0), (*driverVersion),
	driver_version(driverVersion))
SIM_API(cuDeviceGet, (CUdevice *device, int ordinal), (ordinal), (*device), get(device, ordinal))
SIM_API(cuDeviceGetCount, (int *n), (0), (*n), count(n))
SIM_API(cuDeviceGetName, (char *text, int len, CUdevice dev), (len, dev), (0),
	name(text, len, dev))
SIM_API(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice dev), (dev), (*bytes), total(bytes, dev))
SIM_API(cuDeviceTotalMem, (unsigned int *bytes, CUdevice dev), (dev), (*bytes),
	total_v1(bytes, dev))
SIM_API(cuDeviceGetUuid, (CUuuid *id, CUdevice dev), (dev), (0), uuid(id, dev))
SIM_API(cuDeviceGetUuid_v2, (CUuuid *id, CUdevice dev), (dev), (0), uuid(id, dev))
SIM_API(cuDeviceGetLuid, (char *id, unsigned int *mask, CUdevice dev), (dev), (0),
	luid(id, mask, dev))
SIM_API(cuDeviceGetPCIBusId, (char *text, int len, CUdevice dev), (len, dev), (0),
	bus_id(text, len, dev))
SIM_API(cuDeviceGetByPCIBusId, (CUdevice *dev, const char *text), (0), (*dev),
	by_bus_id(dev, text))
SIM_API(cuDeviceComputeCapability, (int *major, int *minor, CUdevice dev), (dev), (0),
	capability(major, minor, dev))
