/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver door for the question how much memory there is. Either out pointer may be NULL;
 * what that means is the driver's to say (P-12, C-105), so a NULL is passed on as one.
 */
#include "bodies.h"
#include "driver_door.h"
#include "query.h"

typedef CUresult (*get_info_v1_fn)(unsigned int *, unsigned int *);
typedef CUresult (*get_info_fn)(size_t *, size_t *);
typedef CUresult (*total_mem_v1_fn)(unsigned int *, CUdevice);
typedef CUresult (*total_mem_fn)(size_t *, CUdevice);

/* False: the program's call goes to the driver as it is. */
static bool answers(void)
{
	return cw_driver_door_open() && cw_query_wanted();
}

/* What the policies make of the driver's figures for the current context's device. */
static struct cw_query answer_here(enum cw_hook_id hook, uint64_t free_bytes,
				   uint64_t total_bytes)
{
	struct cw_query query = { .call = cw_query_call(hook),
				  .free_bytes = free_bytes,
				  .total_bytes = total_bytes };
	struct cw_where where;

	cw_where_current(&where);
	query.device = where.device;
	cw_query_answer(&query);
	return query;
}

CUresult cw_mem_get_info_v1(enum cw_hook_id hook, const void *site, unsigned int *ret_free,
			    unsigned int *ret_total)
{
	get_info_v1_fn real = (get_info_v1_fn)cw_real_of(hook);
	unsigned int free_bytes = 0;
	unsigned int total_bytes = 0;
	struct cw_query query;
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!answers()) {
		return real(ret_free, ret_total);
	}
	result = real(ret_free != NULL ? &free_bytes : NULL,
		      ret_total != NULL ? &total_bytes : NULL);
	if (result != CUDA_SUCCESS) {
		return result;
	}
	query = answer_here(hook, free_bytes, total_bytes);
	if (ret_free != NULL) {
		*ret_free = (unsigned int)query.free_bytes;
	}
	if (ret_total != NULL) {
		*ret_total = (unsigned int)query.total_bytes;
	}
	return result;
}

CUresult cw_mem_get_info(enum cw_hook_id hook, const void *site, size_t *ret_free,
			 size_t *ret_total)
{
	get_info_fn real = (get_info_fn)cw_real_of(hook);
	size_t free_bytes = 0;
	size_t total_bytes = 0;
	struct cw_query query;
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!answers()) {
		return real(ret_free, ret_total);
	}
	result = real(ret_free != NULL ? &free_bytes : NULL,
		      ret_total != NULL ? &total_bytes : NULL);
	if (result != CUDA_SUCCESS) {
		return result;
	}
	query = answer_here(hook, free_bytes, total_bytes);
	if (ret_free != NULL) {
		*ret_free = (size_t)query.free_bytes;
	}
	if (ret_total != NULL) {
		*ret_total = (size_t)query.total_bytes;
	}
	return result;
}

static uint64_t answer_total(enum cw_hook_id hook, CUdevice device, uint64_t total_bytes)
{
	struct cw_query query = { .call = cw_query_call(hook), .device = device,
				  .total_bytes = total_bytes };

	cw_query_answer(&query);
	cw_query_note_total(device, query.total_bytes);
	return query.total_bytes;
}

CUresult cw_device_total_mem_v1(enum cw_hook_id hook, const void *site, unsigned int *bytes,
				CUdevice dev)
{
	total_mem_v1_fn real = (total_mem_v1_fn)cw_real_of(hook);
	unsigned int total_bytes = 0;
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!answers() || bytes == NULL) {
		return real(bytes, dev);
	}
	result = real(&total_bytes, dev);
	if (result == CUDA_SUCCESS) {
		*bytes = (unsigned int)answer_total(hook, dev, total_bytes);
	}
	return result;
}

CUresult cw_device_total_mem(enum cw_hook_id hook, const void *site, size_t *bytes, CUdevice dev)
{
	total_mem_fn real = (total_mem_fn)cw_real_of(hook);
	size_t total_bytes = 0;
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!answers() || bytes == NULL) {
		return real(bytes, dev);
	}
	result = real(&total_bytes, dev);
	if (result == CUDA_SUCCESS) {
		*bytes = (size_t)answer_total(hook, dev, total_bytes);
	}
	return result;
}
