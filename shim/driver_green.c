/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver door for green contexts. A green context is a share of a device's processors, and
 * not of its memory: it retains the device's primary context, and the context that it converts
 * to is that one under another handle. So memory taken with it current is the primary
 * context's, and goes when that ends, with the last green context if need be.
 */
#include "bodies.h"
#include "context_end.h"
#include "driver_door.h"
#include "handles.h"

typedef CUresult (*create_fn)(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned int);
typedef CUresult (*destroy_fn)(CUgreenCtx);
typedef CUresult (*from_green_fn)(CUcontext *, CUgreenCtx);
typedef CUresult (*stream_create_fn)(CUstream *, CUgreenCtx, unsigned int, int);

/* Namespace in handles.h: green context -> device, converted context. */
enum { GREEN_SPACE = 100 };

static uint64_t key_of(CUgreenCtx green)
{
	return (uint64_t)(uintptr_t)green;
}

CUresult cw_green_ctx_create(enum cw_hook_id hook, const void *site, CUgreenCtx *green,
			     CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	create_fn real = (create_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	cw_ready();
	result = real(green, desc, dev, flags);
	if (result == CUDA_SUCCESS && green != NULL && cw_following()) {
		cw_handles_set(GREEN_SPACE, key_of(*green), (uint64_t)(int64_t)dev, 0);
		cw_heard_primary_reference(dev);
	}
	return result;
}

static CUresult perform_destroy(void *real, uint64_t green)
{
	return ((destroy_fn)real)((CUgreenCtx)(uintptr_t)green);
}

CUresult cw_green_ctx_destroy(enum cw_hook_id hook, const void *site, CUgreenCtx green)
{
	destroy_fn real = (destroy_fn)cw_real_of(hook);
	struct cw_handle entry;
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	/* Before the call: the handles may be those of new ones at once. */
	if (!cw_following() || !cw_handles_remove(GREEN_SPACE, key_of(green), &entry)) {
		return real(green);
	}
	if (entry.value2 != 0) {
		cw_heard_alias_end((CUcontext)(uintptr_t)entry.value2);
		cw_heard_current_lost();
	}
	result = cw_primary_give_up(hook, site, (int)(int64_t)entry.value, perform_destroy,
				    (void *)real, key_of(green));
	return result;
}

static enum cw_handle_verdict converted(struct cw_handle *entry, void *argument)
{
	entry->value2 = (uint64_t)(uintptr_t)argument;
	return CW_HANDLE_KEEP;
}

CUresult cw_ctx_from_green_ctx(enum cw_hook_id hook, const void *site, CUcontext *pctx,
			       CUgreenCtx green)
{
	from_green_fn real = (from_green_fn)cw_real_of(hook);
	struct cw_handle entry;
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(pctx, green);
	if (result == CUDA_SUCCESS && pctx != NULL && cw_following() &&
	    cw_handles_update(GREEN_SPACE, key_of(green), converted, *pctx, &entry)) {
		cw_heard_alias(*pctx, (int)(int64_t)entry.value);
	}
	return result;
}

CUresult cw_green_ctx_stream_create(enum cw_hook_id hook, const void *site, CUstream *stream,
				    CUgreenCtx green, unsigned int flags, int priority)
{
	stream_create_fn real = (stream_create_fn)cw_real_of(hook);
	struct cw_handle entry;
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(stream, green, flags, priority);
	/* The current context has no part in it. */
	if (result == CUDA_SUCCESS && stream != NULL && cw_following() &&
	    cw_handles_get(GREEN_SPACE, key_of(green), &entry)) {
		cw_heard_stream_of_primary(*stream, (int)(int64_t)entry.value);
	}
	return result;
}
