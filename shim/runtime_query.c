/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime door for questions: how much memory there is, and where a driver function is. A
 * figure is the driver door's to answer; here are answered those of a runtime that comes to no
 * door (D-19), and totals that it learned before anybody could be asked.
 */
#include "bodies.h"
#include "config.h"
#include "door_lookup.h"
#include "lifecycle.h"
#include "query.h"
#include "resolve.h"
#include "runtime_door.h"
#include "thread.h"
#include "where.h"

typedef cudaError_t (*get_info_fn)(size_t *, size_t *);
typedef cudaError_t (*get_properties_fn)(struct cudaDeviceProp *, int);
typedef cudaError_t (*get_version_fn)(int *);
typedef cudaError_t (*get_entry_fn)(const char *, void **, unsigned long long,
				    enum cudaDriverEntryPointQueryResult *);
typedef cudaError_t (*get_entry_by_version_fn)(const char *, void **, unsigned int,
					       unsigned long long,
					       enum cudaDriverEntryPointQueryResult *);

static bool door_open(void)
{
	return !cw_config.runtime_off && cw_following() && !cw_thread.silent;
}

static cudaError_t named_get_info(get_info_fn real, enum cw_hook_id hook, const void *site,
				  size_t *ret_free, size_t *ret_total)
{
	struct cw_named outer = cw_runtime_name(hook, site, (void *)real);
	cudaError_t result = real(ret_free, ret_total);

	cw_runtime_unname(&outer);
	return result;
}

cudaError_t cw_cuda_mem_get_info(enum cw_hook_id hook, const void *site, size_t *ret_free,
				 size_t *ret_total)
{
	get_info_fn real = (get_info_fn)cw_real_runtime(hook, site);
	struct cw_query query = { .call = cw_hook_base(hook) };
	size_t free_bytes = 0;
	size_t total_bytes = 0;
	struct cw_where where;
	cudaError_t result;

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	if (!door_open() || cw_runtime_hearing((void *)real) != CW_RUNTIME_ALONE ||
	    !cw_query_wanted()) {
		return named_get_info(real, hook, site, ret_free, ret_total);
	}
	cw_thread.silent++;
	result = real(ret_free != NULL ? &free_bytes : NULL,
		      ret_total != NULL ? &total_bytes : NULL);
	cw_thread.silent--;
	if (result != cudaSuccess) {
		return result;
	}
	cw_where_current(&where);
	query.device = where.device;
	query.free_bytes = free_bytes;
	query.total_bytes = total_bytes;
	cw_query_answer(&query);
	if (ret_free != NULL) {
		*ret_free = (size_t)query.free_bytes;
	}
	if (ret_total != NULL) {
		*ret_total = (size_t)query.total_bytes;
	}
	return result;
}

/* The struct grows with CUDA; the total is where it was in all since CUDA 10, and known. */
cudaError_t cw_cuda_get_device_properties(enum cw_hook_id hook, const void *site,
					  struct cudaDeviceProp *prop, int device)
{
	get_properties_fn real = (get_properties_fn)cw_real_runtime(hook, site);
	struct cw_query query = { .call = cw_hook_base(hook), .device = device };
	struct cw_named outer;
	cudaError_t result;

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	outer = cw_runtime_name(hook, site, (void *)real);
	result = real(prop, device);
	cw_runtime_unname(&outer);
	if (result != cudaSuccess || prop == NULL || !door_open() || !cw_query_wanted() ||
	    cw_query_total_told(device, prop->totalGlobalMem)) {
		return result;
	}
	query.total_bytes = prop->totalGlobalMem;
	cw_query_answer(&query);
	prop->totalGlobalMem = (size_t)query.total_bytes;
	return result;
}

/* ---- where a driver function is ---------------------------------------------------------- */

/* The version that this runtime was made with, and asks the driver for; 0 where it is silent. */
static int version_of_runtime(const void *real)
{
	get_version_fn get_version =
		(get_version_fn)cw_function_beside(real, "cudaRuntimeGetVersion");
	int version = 0;

	if (get_version != NULL && get_version(&version) != cudaSuccess) {
		version = 0;
	}
	return version;
}

/* Flags 0 mean what the program was compiled for, which the symbol's suffix says. */
static unsigned long long stream_flags(bool per_thread, unsigned long long flags)
{
	return flags == cudaEnableDefault && per_thread ? (unsigned long long)CW_PTDS : flags;
}

cudaError_t cw_cuda_get_driver_entry_point(enum cw_hook_id hook, const void *site,
					   const char *symbol, void **function,
					   unsigned long long flags,
					   enum cudaDriverEntryPointQueryResult *status)
{
	get_entry_fn real = (get_entry_fn)cw_real_runtime(hook, site);
	bool per_thread = hook == CW_HOOK_cudaGetDriverEntryPoint_ptsz;
	cudaError_t result;

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	result = real(symbol, function, flags, status);
	if (result == cudaSuccess && symbol != NULL && function != NULL && *function != NULL) {
		*function = cw_hook_for_driver_pointer(symbol, *function,
						       version_of_runtime((void *)real),
						       stream_flags(per_thread, flags));
	}
	return result;
}

cudaError_t cw_cuda_get_driver_entry_point_by_version(enum cw_hook_id hook, const void *site,
						      const char *symbol, void **function,
						      unsigned int version,
						      unsigned long long flags,
						      enum cudaDriverEntryPointQueryResult *status)
{
	get_entry_by_version_fn real = (get_entry_by_version_fn)cw_real_runtime(hook, site);
	bool per_thread = hook == CW_HOOK_cudaGetDriverEntryPointByVersion_ptsz;
	cudaError_t result;

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	result = real(symbol, function, version, flags, status);
	if (result == cudaSuccess && symbol != NULL && function != NULL && *function != NULL) {
		*function = cw_hook_for_driver_pointer(symbol, *function, (int)version,
						       stream_flags(per_thread, flags));
	}
	return result;
}
