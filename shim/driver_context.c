/* SPDX-License-Identifier: Apache-2.0 */
/* The driver door for contexts: which one is current, and the memory that goes with one. */
#include "bodies.h"
#include "context_end.h"
#include "driver_door.h"
#include "handles.h"
#include "wants.h"

typedef CUresult (*create_fn)(CUcontext *, unsigned int, CUdevice);
typedef CUresult (*create_v3_fn)(CUcontext *, CUexecAffinityParam *, int, unsigned int, CUdevice);
typedef CUresult (*create_v4_fn)(CUcontext *, CUctxCreateParams *, unsigned int, CUdevice);
typedef CUresult (*context_fn)(CUcontext);
typedef CUresult (*out_context_fn)(CUcontext *);
typedef CUresult (*attach_fn)(CUcontext *, unsigned int);
typedef CUresult (*retain_fn)(CUcontext *, CUdevice);
typedef CUresult (*device_fn)(CUdevice);
typedef CUresult (*get_state_fn)(CUdevice, unsigned int *, int *);

/* A new context is the current one, unless it was made without being so (v4, CIG). */
static CUresult heard_created(CUresult result, const CUcontext *pctx, CUdevice device)
{
	if (result == CUDA_SUCCESS && pctx != NULL && *pctx != NULL && cw_following()) {
		cw_context_end_wait(*pctx);
		cw_heard_context(*pctx, device);
		cw_heard_current(*pctx);
	}
	return result;
}

CUresult cw_ctx_create(enum cw_hook_id hook, const void *site, CUcontext *pctx,
		       unsigned int flags, CUdevice dev)
{
	create_fn real = (create_fn)cw_real_of(hook);

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	cw_ready();
	return heard_created(cw_want_note(hook, real(pctx, flags, dev)), pctx, dev);
}

CUresult cw_ctx_create_v3(enum cw_hook_id hook, const void *site, CUcontext *pctx,
			  CUexecAffinityParam *params, int count, unsigned int flags,
			  CUdevice dev)
{
	create_v3_fn real = (create_v3_fn)cw_real_of(hook);

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	cw_ready();
	return heard_created(cw_want_note(hook, real(pctx, params, count, flags, dev)), pctx, dev);
}

CUresult cw_ctx_create_v4(enum cw_hook_id hook, const void *site, CUcontext *pctx,
			  CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	create_v4_fn real = (create_v4_fn)cw_real_of(hook);

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	cw_ready();
	return heard_created(cw_want_note(hook, real(pctx, params, flags, dev)), pctx, dev);
}

static int device_of(CUcontext context, int otherwise)
{
	struct cw_handle entry;

	return cw_handles_get(CW_HANDLE_CONTEXT, (uint64_t)(uintptr_t)context, &entry)
		       ? (int)(int64_t)entry.value
		       : otherwise;
}

/* The call's own error comes first, then that of a dealloc-threshold callback. */
static CUresult result_of(CUresult result, int told)
{
	if (result == CUDA_SUCCESS) {
		return (CUresult)told;
	}
	if (cw_batch_gone(result)) {
		cw_note_fatal((int)result);
	}
	return result;
}

CUresult cw_ctx_destroy(enum cw_hook_id hook, const void *site, CUcontext ctx)
{
	context_fn real = (context_fn)cw_real_of(hook);
	struct cw_context_end end;
	CUresult result;
	int device;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || ctx == NULL) {
		return real(ctx);
	}
	device = device_of(ctx, -1);
	cw_context_end_begin(&end, ctx, device, hook, site);
	/* Before the call: the handle may be that of a new context at once. */
	cw_heard_context_end(ctx);
	result = real(ctx);
	if (result != CUDA_SUCCESS && device >= 0) {
		cw_heard_context(ctx, device);
	}
	return result_of(result, cw_context_end_finish(&end, cw_batch_gone(result)));
}

static enum cw_handle_verdict one_reference_less(struct cw_handle *entry, void *argument)
{
	(void)argument;
	entry->value2 -= entry->value2 > 0;
	return CW_HANDLE_KEEP;
}

CUresult cw_ctx_attach(enum cw_hook_id hook, const void *site, CUcontext *pctx,
		       unsigned int flags)
{
	attach_fn real = (attach_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(pctx, flags);
	if (result == CUDA_SUCCESS && pctx != NULL && cw_following()) {
		cw_handles_update(CW_HANDLE_CONTEXT, (uint64_t)(uintptr_t)*pctx,
				  cw_handle_one_more, NULL, NULL);
	}
	return result;
}

/* Ends the context when nobody is attached to it any more. */
CUresult cw_ctx_detach(enum cw_hook_id hook, const void *site, CUcontext ctx)
{
	context_fn real = (context_fn)cw_real_of(hook);
	struct cw_handle entry;
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_handles_get(CW_HANDLE_CONTEXT, (uint64_t)(uintptr_t)ctx, &entry) ||
	    entry.value2 == 0) {
		return cw_ctx_destroy(hook, site, ctx);
	}
	result = real(ctx);
	if (result == CUDA_SUCCESS) {
		cw_handles_update(CW_HANDLE_CONTEXT, (uint64_t)(uintptr_t)ctx, one_reference_less,
				  NULL, NULL);
	}
	return result;
}

static CUresult make_current(enum cw_hook_id hook, CUcontext ctx)
{
	context_fn real = (context_fn)cw_real_of(hook);
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(ctx);
	if (result == CUDA_SUCCESS && cw_following()) {
		cw_heard_current(ctx);
	}
	return result;
}

CUresult cw_ctx_push_current(enum cw_hook_id hook, const void *site, CUcontext ctx)
{
	(void)site;
	return make_current(hook, ctx);
}

CUresult cw_ctx_set_current(enum cw_hook_id hook, const void *site, CUcontext ctx)
{
	(void)site;
	/* NULL pops one context; the one below becomes current. */
	if (ctx == NULL) {
		CUresult result = make_current(hook, ctx);

		cw_heard_current_lost();
		return result;
	}
	return make_current(hook, ctx);
}

CUresult cw_ctx_pop_current(enum cw_hook_id hook, const void *site, CUcontext *pctx)
{
	out_context_fn real = (out_context_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	result = real(pctx);
	if (result == CUDA_SUCCESS) {
		cw_heard_current_lost();
	}
	return result;
}

CUresult cw_ctx_get_current(enum cw_hook_id hook, const void *site, CUcontext *pctx)
{
	out_context_fn real = (out_context_fn)cw_real_of(hook);

	(void)site;
	return real != NULL ? real(pctx) : CUDA_ERROR_NOT_FOUND;
}

CUresult cw_primary_ctx_retain(enum cw_hook_id hook, const void *site, CUcontext *pctx,
			       CUdevice dev)
{
	retain_fn real = (retain_fn)cw_real_of(hook);
	CUresult result;

	(void)site;
	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	cw_ready();
	result = cw_want_note(hook, real(pctx, dev));
	if (result == CUDA_SUCCESS && pctx != NULL && cw_following()) {
		cw_context_end_wait(*pctx);
		cw_heard_primary_retain(*pctx, dev);
	}
	return result;
}

/* References that no door heard of keep a context alive after the last one we know. */
bool cw_primary_is_active(CUdevice dev)
{
	get_state_fn get_state = (get_state_fn)cw_real_of(CW_HOOK_cuDevicePrimaryCtxGetState);
	unsigned int flags;
	int active = 0;

	return !cw_capture_open() && get_state != NULL &&
	       get_state(dev, &flags, &active) == CUDA_SUCCESS && active != 0;
}

CUresult cw_primary_give_up(enum cw_hook_id hook, const void *site, CUdevice dev,
			    CUresult (*perform)(void *real, uint64_t argument), void *real,
			    uint64_t argument)
{
	struct cw_context_end end;
	int references;
	CUcontext context = cw_primary_context(dev, &references);
	/* Before the call, so that of several threads one is the last. */
	int left = references > 0 ? cw_heard_primary_release(dev) : -1;
	CUresult result;
	bool ended;

	if (!cw_driver_door_open() || context == NULL || left != 0) {
		result = perform(real, argument);
		if (result != CUDA_SUCCESS && left >= 0) {
			cw_heard_primary_reference(dev);
		}
		return result;
	}
	cw_context_end_begin(&end, context, dev, hook, site);
	result = perform(real, argument);
	if (result != CUDA_SUCCESS) {
		cw_heard_primary_reference(dev);
	}
	ended = cw_batch_gone(result) && (result != CUDA_SUCCESS || !cw_primary_is_active(dev));
	if (ended) {
		cw_heard_primary_reset(dev);
	}
	return result_of(result, cw_context_end_finish(&end, ended));
}

static CUresult perform_release(void *real, uint64_t device)
{
	return ((device_fn)real)((CUdevice)device);
}

CUresult cw_primary_ctx_release(enum cw_hook_id hook, const void *site, CUdevice dev)
{
	device_fn real = (device_fn)cw_real_of(hook);

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	return cw_primary_give_up(hook, site, dev, perform_release, (void *)real,
				  (uint64_t)(unsigned int)dev);
}

/* Cleans up all of the context, whoever holds it; the references stay (C-99). */
CUresult cw_primary_ctx_reset(enum cw_hook_id hook, const void *site, CUdevice dev)
{
	device_fn real = (device_fn)cw_real_of(hook);
	struct cw_context_end end;
	int references;
	CUcontext context = cw_primary_context(dev, &references);
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || context == NULL) {
		return real(dev);
	}
	cw_context_end_begin(&end, context, dev, hook, site);
	result = real(dev);
	if (result == CUDA_SUCCESS) {
		cw_heard_primary_reset(dev);
	}
	return result_of(result, cw_context_end_finish(&end, cw_batch_gone(result)));
}
