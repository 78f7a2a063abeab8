/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver door for memory of another process. A handle that is opened again in the same
 * context gives the same address, and as many closes are needed (C-46): it counts once, from
 * the first open to the last close.
 */
#include <string.h>

#include "bodies.h"
#include "driver_door.h"
#include "handles.h"
#include "ledger.h"
#include "origins.h"
#include "status.h"

/* Namespaces in handles.h. */
enum {
	BY_HANDLE = CW_HANDLE_IMPORT, /* hash of handle and context -> address */
	OPENS = 83,                   /* address -> number of opens, that hash */
};

typedef CUresult (*open_fn)(CUdeviceptr *, CUipcMemHandle, unsigned int);
typedef CUresult (*close_fn)(CUdeviceptr);

/* Arguments of a request. */
enum { HANDLE, FLAGS, OPEN_ALREADY };

static uint64_t hash_of(const CUipcMemHandle *handle, const void *context)
{
	uint64_t hash = (uint64_t)(uintptr_t)context;

	for (size_t at = 0; at + sizeof(hash) <= sizeof(handle->reserved); at += sizeof(hash)) {
		uint64_t word;

		memcpy(&word, handle->reserved + at, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	return hash;
}

/* The records say whether it still is: contexts end without a close. */
static bool is_recorded(uint64_t pointer, const void *context)
{
	struct cw_record record;
	const struct cw_origin *origin;

	if (!cw_ledger_find(pointer, &record)) {
		return false;
	}
	origin = cw_origin_get(record.origin);
	return origin->kind == CUWEIR_KIND_IMPORTED &&
	       origin->context == (uint64_t)(uintptr_t)context;
}

static CUresult perform_open(struct cw_request *request)
{
	const CUipcMemHandle *handle =
		(const CUipcMemHandle *)(uintptr_t)request->arguments[HANDLE];
	CUdeviceptr pointer = 0;
	CUresult result = ((open_fn)request->real)(&pointer, *handle,
						   (unsigned int)request->arguments[FLAGS]);

	if (result == CUDA_SUCCESS) {
		request->pointer = pointer;
		request->requested = cw_ask_size(pointer);
		request->charged = request->requested;
		/* By another thread at the same time; its record will be replaced. */
		request->arguments[OPEN_ALREADY] = is_recorded(pointer, request->context);
	}
	return result;
}

static CUresult undo_open(struct cw_request *request)
{
	close_fn real = (close_fn)cw_real_of(CW_HOOK_cuIpcCloseMemHandle);

	return real != NULL ? real((CUdeviceptr)request->pointer) : CUDA_ERROR_NOT_FOUND;
}

static enum cw_handle_verdict one_more(struct cw_handle *entry, void *argument)
{
	(void)argument;
	entry->value++;
	return CW_HANDLE_KEEP;
}

static enum cw_handle_verdict one_less(struct cw_handle *entry, void *argument)
{
	(void)argument;
	return --entry->value == 0 ? CW_HANDLE_REMOVE : CW_HANDLE_KEEP;
}

static void remember(uint64_t pointer, uint64_t hash, bool open_already)
{
	if (!open_already || !cw_handles_update(OPENS, pointer, one_more, NULL, NULL)) {
		cw_handles_set(OPENS, pointer, 1, hash);
	}
	cw_handles_set(BY_HANDLE, hash, pointer, 0);
}

/* Nobody is asked: memory that is counted already. */
static CUresult open_again(struct cw_request *request, uint64_t hash, uint64_t known)
{
	CUresult result = perform_open(request);

	if (result != CUDA_SUCCESS) {
		return result;
	}
	/* Closed meanwhile by another thread, or another address after all: it is there, now. */
	if (request->pointer != known || !request->arguments[OPEN_ALREADY] ||
	    !cw_handles_update(OPENS, known, one_more, NULL, NULL)) {
		cw_adopt(request);
		remember(request->pointer, hash, false);
	}
	return CUDA_SUCCESS;
}

CUresult cw_ipc_open_mem_handle(enum cw_hook_id hook, const void *site, CUdeviceptr *dptr,
				CUipcMemHandle handle, unsigned int flags)
{
	struct cw_request request;
	open_fn real = (open_fn)cw_real_of(hook);
	struct cw_handle entry;
	CUresult result;
	uint64_t hash;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || dptr == NULL) {
		return real(dptr, handle, flags);
	}
	cw_driver_request(&request, hook, site, (void *)real, 0);
	cw_driver_here(&request);
	request.arguments[HANDLE] = (uint64_t)(uintptr_t)&handle;
	request.arguments[FLAGS] = flags;
	hash = hash_of(&handle, request.context);
	if (cw_handles_get(BY_HANDLE, hash, &entry) &&
	    is_recorded(entry.value, request.context)) {
		result = open_again(&request, hash, entry.value);
	} else {
		request.perform = perform_open;
		request.undo = undo_open;
		result = cw_allocate(&request);
		if (result == CUDA_SUCCESS) {
			remember(request.pointer, hash, request.arguments[OPEN_ALREADY] != 0);
		}
	}
	if (result == CUDA_SUCCESS) {
		*dptr = (CUdeviceptr)request.pointer;
	}
	return result;
}

static CUresult perform_close(struct cw_request *request)
{
	return ((close_fn)request->real)((CUdeviceptr)request->pointer);
}

/* Others still have it open. */
static CUresult close_one(close_fn real, CUdeviceptr dptr)
{
	CUresult result = real(dptr);

	if (result != CUDA_SUCCESS && !cw_status_ends_context((int)result)) {
		cw_handles_update(OPENS, dptr, one_more, NULL, NULL);
	}
	return result;
}

CUresult cw_ipc_close_mem_handle(enum cw_hook_id hook, const void *site, CUdeviceptr dptr)
{
	struct cw_request request;
	close_fn real = (close_fn)cw_real_of(hook);
	struct cw_handle opens = { .value2 = 0 };
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || dptr == 0) {
		return real(dptr);
	}
	if (cw_handles_update(OPENS, dptr, one_less, NULL, &opens) && opens.value > 0) {
		return close_one(real, dptr);
	}
	cw_handles_remove(BY_HANDLE, opens.value2, NULL);
	cw_driver_request(&request, hook, site, (void *)real, 0);
	request.pointer = dptr;
	request.perform = perform_close;
	result = cw_deallocate(&request);
	if (result != CUDA_SUCCESS && is_recorded(dptr, request.context)) {
		remember(dptr, opens.value2, false);
	}
	return result;
}
