/* SPDX-License-Identifier: Apache-2.0 */
#include "where.h"

#include <stddef.h>

#include "handles.h"
#include "resolve.h"

enum {
	CAPTURE_SPACE = CW_HANDLE_USER,
	PRIMARY_SPACE,
	ALIAS_SPACE,
};

typedef CUresult (*get_current_fn)(CUcontext *);
typedef CUresult (*get_device_fn)(CUdevice *);
typedef CUresult (*stream_get_ctx_fn)(CUstream, CUcontext *);
typedef CUresult (*stream_get_ctx_v2_fn)(CUstream, CUcontext *, CUgreenCtx *);
typedef CUresult (*get_range_fn)(CUdeviceptr *, size_t *, CUdeviceptr);
typedef CUresult (*is_capturing_fn)(CUstream, CUstreamCaptureStatus *);

CW_TLS struct cw_thread cw_thread;
uint32_t cw_captures_open_;

static uint64_t key_of(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

static int device_of_context(CUcontext context)
{
	struct cw_handle entry;

	if (cw_handles_get(CW_HANDLE_CONTEXT, key_of(context), &entry)) {
		return (int)(int64_t)entry.value;
	}
	return -1;
}

/* Most programs have none, and then none is looked for. */
static bool aliases_heard;

static CUcontext owner_of(CUcontext context)
{
	struct cw_handle entry;

	if (CW_UNLIKELY(__atomic_load_n(&aliases_heard, __ATOMIC_RELAXED)) &&
	    cw_handles_get(ALIAS_SPACE, key_of(context), &entry)) {
		return (CUcontext)(uintptr_t)entry.value;
	}
	return context;
}

/* The device of the current context, by a query; remembered, since a context never moves. */
static int ask_device(CUcontext context)
{
	get_device_fn get_device = (get_device_fn)cw_real_of(CW_HOOK_cuCtxGetDevice);
	CUdevice device;

	if (get_device == NULL || get_device(&device) != CUDA_SUCCESS) {
		return -1;
	}
	cw_heard_context(context, device);
	return device;
}

CW_COLD void cw_where_ask_current(struct cw_where *ret)
{
	get_current_fn get_current = (get_current_fn)cw_real_of(CW_HOOK_cuCtxGetCurrent);
	CUcontext context = NULL;

	ret->context = cw_thread.context;
	ret->device = cw_thread.context != NULL ? cw_thread.device : -1;
	if (cw_capture_open() || get_current == NULL) {
		return;
	}
	if (get_current(&context) != CUDA_SUCCESS || context == NULL) {
		ret->context = NULL;
		ret->device = -1;
		return;
	}
	ret->context = owner_of(context);
	ret->device = device_of_context(context);
	if (ret->device < 0) {
		ret->device = ask_device(context);
	}
	/* For the time when a capture forbids the question. */
	cw_thread.context = ret->context;
	cw_thread.device = (int16_t)ret->device;
}

/* The second version tells the primary context of a green context's stream. */
static bool ask_stream(CUstream stream, CUcontext *ret)
{
	stream_get_ctx_v2_fn second = (stream_get_ctx_v2_fn)cw_real_of(CW_HOOK_cuStreamGetCtx_v2);
	stream_get_ctx_fn first = (stream_get_ctx_fn)cw_real_of(CW_HOOK_cuStreamGetCtx);
	CUgreenCtx green = NULL;

	if (second != NULL && second(stream, ret, &green) == CUDA_SUCCESS) {
		return true;
	}
	return first != NULL && first(stream, ret) == CUDA_SUCCESS;
}

void cw_where_of_stream(CUstream stream, struct cw_where *ret)
{
	struct cw_handle entry;
	CUcontext context = NULL;

	if (stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
		cw_where_current(ret);
		return;
	}
	if (CW_LIKELY(cw_handles_get(CW_HANDLE_STREAM, key_of(stream), &entry))) {
		ret->context = (CUcontext)(uintptr_t)entry.value;
		ret->device = (int)(int64_t)entry.value2;
		return;
	}
	cw_where_current(ret);
	if (cw_capture_open() || !ask_stream(stream, &context)) {
		return;
	}
	if (owner_of(context) != ret->context) {
		int device = device_of_context(context);

		ret->context = owner_of(context);
		if (device < 0) {
			/* A context nobody told of: the current device is a guess for now. */
			return;
		}
		ret->device = device;
	}
	cw_handles_set(CW_HANDLE_STREAM, key_of(stream), key_of(ret->context),
		       (uint64_t)(int64_t)ret->device);
}

bool cw_stream_is_capturing(CUstream stream, bool per_thread)
{
	is_capturing_fn is_capturing;
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	if (CW_LIKELY(!cw_capture_open())) {
		return false;
	}
	is_capturing = (is_capturing_fn)cw_real_of(
		per_thread ? CW_HOOK_cuStreamIsCapturing_ptsz : CW_HOOK_cuStreamIsCapturing);
	return is_capturing != NULL && is_capturing(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CW_COLD uint64_t cw_ask_size(CUdeviceptr pointer)
{
	get_range_fn get_range = (get_range_fn)cw_real_of(CW_HOOK_cuMemGetAddressRange_v2);
	CUdeviceptr base = 0;
	size_t size = 0;

	if (get_range == NULL || cw_capture_open() ||
	    get_range(&base, &size, pointer) != CUDA_SUCCESS) {
		return 0;
	}
	return size;
}

void cw_heard_current(CUcontext context)
{
	int device = context != NULL ? device_of_context(context) : -1;

	if (context != NULL && device < 0 && !cw_capture_open()) {
		device = ask_device(context);
	}
	cw_thread.context = owner_of(context);
	cw_thread.device = (int16_t)device;
	cw_thread.context_known = context == NULL || device >= 0;
}

void cw_heard_current_lost(void)
{
	cw_thread.context_known = false;
}

void cw_heard_context(CUcontext context, int device)
{
	cw_handles_set(CW_HANDLE_CONTEXT, key_of(context), (uint64_t)(int64_t)device, 0);
}

static bool stream_of_context(const struct cw_handle *entry, void *argument)
{
	return entry->value == key_of(argument);
}

/* Its streams go with a context, and the captures that are open in them. */
static void streams_end(CUcontext context)
{
	size_t captures = cw_handles_remove_if(CAPTURE_SPACE, stream_of_context, context);

	__atomic_fetch_sub(&cw_captures_open_, (uint32_t)captures, __ATOMIC_SEQ_CST);
	cw_handles_remove_if(CW_HANDLE_STREAM, stream_of_context, context);
}

void cw_heard_context_end(CUcontext context)
{
	cw_handles_remove(CW_HANDLE_CONTEXT, key_of(context), NULL);
	streams_end(context);
	if (cw_thread.context == context) {
		cw_thread.context = NULL;
		cw_thread.context_known = false;
	}
}

void cw_heard_stream(CUstream stream)
{
	struct cw_where where;

	cw_where_current(&where);
	if (where.context != NULL && where.device >= 0) {
		cw_handles_set(CW_HANDLE_STREAM, key_of(stream), key_of(where.context),
			       (uint64_t)(int64_t)where.device);
	}
}

/* The per-thread default stream is another stream in each thread. */
static uint64_t capture_key(CUstream stream, bool per_thread)
{
	if (stream == CU_STREAM_PER_THREAD || (stream == NULL && per_thread)) {
		return (uint64_t)cw_thread_id() << 8 | 2;
	}
	return key_of(stream);
}

bool cw_heard_capture_begin(CUstream stream, bool per_thread)
{
	struct cw_where where;

	/* Whose it is, since it goes with its context; asked before a capture forbids it. */
	cw_where_of_stream(stream, &where);
	if (cw_handles_put(CAPTURE_SPACE, capture_key(stream, per_thread), key_of(where.context),
			   0) != 0) {
		return false;
	}
	__atomic_fetch_add(&cw_captures_open_, 1, __ATOMIC_SEQ_CST);
	return true;
}

void cw_heard_capture_end(CUstream stream, bool per_thread)
{
	if (cw_handles_remove(CAPTURE_SPACE, capture_key(stream, per_thread), NULL)) {
		__atomic_fetch_sub(&cw_captures_open_, 1, __ATOMIC_SEQ_CST);
	}
}

void cw_heard_stream_end(CUstream stream)
{
	cw_handles_remove(CW_HANDLE_STREAM, key_of(stream), NULL);
	cw_heard_capture_end(stream, false);
}

static enum cw_handle_verdict one_more(struct cw_handle *entry, void *argument)
{
	entry->value = key_of(argument);
	entry->value2++;
	return CW_HANDLE_KEEP;
}

static enum cw_handle_verdict one_less(struct cw_handle *entry, void *argument)
{
	(void)argument;
	entry->value2 -= entry->value2 > 0;
	return CW_HANDLE_KEEP;
}

void cw_heard_primary_retain(CUcontext context, int device)
{
	uint64_t key = (uint64_t)(unsigned int)device;

	cw_heard_context(context, device);
	if (cw_handles_put(PRIMARY_SPACE, key, key_of(context), 1) != 0) {
		cw_handles_update(PRIMARY_SPACE, key, one_more, context, NULL);
	}
}

void cw_heard_primary_reference(int device)
{
	uint64_t key = (uint64_t)(unsigned int)device;

	if (cw_handles_put(PRIMARY_SPACE, key, 0, 1) != 0) {
		cw_handles_update(PRIMARY_SPACE, key, cw_handle_one_more, NULL, NULL);
	}
}

CUcontext cw_primary_context(int device, int *ret_references)
{
	struct cw_handle entry;

	if (!cw_handles_get(PRIMARY_SPACE, (uint64_t)(unsigned int)device, &entry)) {
		*ret_references = 0;
		return NULL;
	}
	*ret_references = (int)entry.value2;
	return (CUcontext)(uintptr_t)entry.value;
}

int cw_heard_primary_release(int device)
{
	struct cw_handle entry;

	if (!cw_handles_update(PRIMARY_SPACE, (uint64_t)(unsigned int)device, one_less, NULL,
			       &entry)) {
		return -1;
	}
	return (int)entry.value2;
}

static enum cw_handle_verdict no_context(struct cw_handle *entry, void *argument)
{
	*(uint64_t *)argument = entry->value;
	entry->value = 0;
	return CW_HANDLE_KEEP;
}

/* A retain brings it back. */
void cw_heard_primary_reset(int device)
{
	uint64_t context = 0;

	cw_handles_update(PRIMARY_SPACE, (uint64_t)(unsigned int)device, no_context, &context, NULL);
	if (context != 0) {
		streams_end((CUcontext)(uintptr_t)context);
	}
}

static enum cw_handle_verdict stand_in(struct cw_handle *entry, void *argument)
{
	entry->value = entry->value != 0 ? entry->value : key_of(argument);
	return CW_HANDLE_KEEP;
}

void cw_heard_alias(CUcontext alias, int device)
{
	uint64_t key = (uint64_t)(unsigned int)device;
	struct cw_handle primary;

	cw_heard_context(alias, device);
	if (cw_handles_update(PRIMARY_SPACE, key, stand_in, alias, &primary) &&
	    primary.value != key_of(alias)) {
		cw_handles_set(ALIAS_SPACE, key_of(alias), primary.value, 0);
		__atomic_store_n(&aliases_heard, true, __ATOMIC_RELAXED);
	}
}

void cw_heard_alias_end(CUcontext alias)
{
	struct cw_handle entry;

	/* The primary context itself, under its own handle, is another's to end. */
	if (cw_handles_remove(ALIAS_SPACE, key_of(alias), &entry)) {
		cw_handles_remove(CW_HANDLE_CONTEXT, key_of(alias), NULL);
	}
}

void cw_heard_stream_of_primary(CUstream stream, int device)
{
	int references;
	CUcontext context = cw_primary_context(device, &references);

	cw_handles_set(CW_HANDLE_STREAM, key_of(stream), key_of(context),
		       (uint64_t)(int64_t)device);
}

void cw_where_postfork_child(void)
{
	/* The handle table is empty in a child, and so are its captures and contexts. */
	cw_captures_open_ = 0;
	cw_thread.context = NULL;
	cw_thread.context_known = false;
	cw_thread.tid = 0;
	cw_thread.request = NULL;
}
