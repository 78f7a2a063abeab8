/* SPDX-License-Identifier: Apache-2.0 */
#include "where.h"

#include <stddef.h>

#include "handles.h"
#include "resolve.h"

enum {
	CAPTURE_SPACE = CW_HANDLE_USER,
	PRIMARY_SPACE,
};

typedef CUresult (*get_current_fn)(CUcontext *);
typedef CUresult (*get_device_fn)(CUdevice *);
typedef CUresult (*stream_get_ctx_fn)(CUstream, CUcontext *);
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
	ret->context = context;
	ret->device = device_of_context(context);
	if (ret->device < 0) {
		ret->device = ask_device(context);
	}
	/* For the time when a capture forbids the question. */
	cw_thread.context = context;
	cw_thread.device = (int16_t)ret->device;
}

void cw_where_of_stream(CUstream stream, struct cw_where *ret)
{
	stream_get_ctx_fn stream_get_ctx;
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
	stream_get_ctx = (stream_get_ctx_fn)cw_real_of(CW_HOOK_cuStreamGetCtx);
	if (cw_capture_open() || stream_get_ctx == NULL ||
	    stream_get_ctx(stream, &context) != CUDA_SUCCESS) {
		return;
	}
	if (context != ret->context) {
		int device = device_of_context(context);

		/* A context nobody told of: the current device is the best guess. */
		ret->context = context;
		ret->device = device >= 0 ? device : ret->device;
	}
	cw_handles_set(CW_HANDLE_STREAM, key_of(stream), key_of(context),
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

void cw_heard_current(CUcontext context)
{
	int device = context != NULL ? device_of_context(context) : -1;

	if (context != NULL && device < 0 && !cw_capture_open()) {
		device = ask_device(context);
	}
	cw_thread.context = context;
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

void cw_heard_context_end(CUcontext context)
{
	cw_handles_remove(CW_HANDLE_CONTEXT, key_of(context), NULL);
	cw_handles_remove_if(CW_HANDLE_STREAM, stream_of_context, context);
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
	if (cw_handles_put(CAPTURE_SPACE, capture_key(stream, per_thread), 0, 0) != 0) {
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

void cw_heard_primary_release(int device)
{
	cw_handles_update(PRIMARY_SPACE, (uint64_t)(unsigned int)device, one_less, NULL, NULL);
}

static enum cw_handle_verdict no_context(struct cw_handle *entry, void *argument)
{
	(void)argument;
	entry->value = 0;
	return CW_HANDLE_KEEP;
}

/* A retain brings it back. */
void cw_heard_primary_reset(int device)
{
	cw_handles_update(PRIMARY_SPACE, (uint64_t)(unsigned int)device, no_context, NULL, NULL);
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
