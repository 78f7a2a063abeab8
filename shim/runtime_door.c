/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime door. As a rule it only names the call for the events and lets cudart go its way:
 * the driver door, which cudart comes to, does the work, so that cudart's own state is what it
 * would be without us. A runtime whose look-ups passed no door of ours (D-19) is looked after
 * by runtime_alone.c.
 */
#include "bodies.h"
#include "config.h"
#include "lifecycle.h"
#include "resolve.h"
#include "runtime_alone.h"
#include "runtime_door.h"
#include "thread.h"
#include "where.h"

/* Whether the runtime of this function comes to the driver door by itself. */
static bool heard(enum cw_hook_id hook, void *real)
{
	static _Atomic(void *) known[CW_HOOK_COUNT];

	if (CW_LIKELY(atomic_load_explicit(&known[hook], memory_order_relaxed) == real)) {
		return true;
	}
	switch (cw_runtime_hearing(real)) {
	case CW_RUNTIME_HEARD:
		atomic_store_explicit(&known[hook], real, memory_order_relaxed);
		return true;
	case CW_RUNTIME_BROKEN:
		return true;
	case CW_RUNTIME_ALONE:
		break;
	}
	return false;
}

static struct cw_named name_call(enum cw_hook_id hook, const void *site)
{
	struct cw_named outer = { cw_thread.runtime_site, cw_thread.runtime_hook };

	/* A runtime function within another is part of it. */
	if (outer.hook == 0) {
		cw_thread.runtime_hook = (uint16_t)(hook + 1);
		cw_thread.runtime_site = site;
	}
	return outer;
}

static bool only_forwards(void)
{
	return cw_config.runtime_off || !cw_following() || cw_thread.silent;
}

bool cw_runtime_is_alone(enum cw_hook_id hook, void *real)
{
	return !only_forwards() && CW_UNLIKELY(!heard(hook, real));
}

struct cw_named cw_runtime_name(enum cw_hook_id hook, const void *site, void *real)
{
	if (CW_UNLIKELY(only_forwards() || !heard(hook, real))) {
		return (struct cw_named){ cw_thread.runtime_site, cw_thread.runtime_hook };
	}
	return name_call(hook, site);
}

void *cw_runtime_begin(enum cw_hook_id hook, const void *site, struct cw_named *ret_outer)
{
	void *real = cw_real_runtime(hook, site);

	if (real != NULL) {
		*ret_outer = cw_runtime_name(hook, site, real);
	}
	return real;
}

void cw_runtime_unname(const struct cw_named *outer)
{
	cw_thread.runtime_site = outer->site;
	cw_thread.runtime_hook = outer->hook;
}

static cudaError_t unname_call(const struct cw_named *outer, cudaError_t result)
{
	cw_runtime_unname(outer);
	return result;
}

/*
 * Finds the real function, and forwards where there is nothing else to do. `alone` is what to
 * call for a runtime that no door hears, with the same arguments.
 */
#define THROUGH_THE_DOOR(type, alone, ...)                                                         \
	type real = (type)cw_real_runtime(hook, site);                                             \
	struct cw_named outer;                                                                     \
                                                                                                   \
	if (CW_UNLIKELY(real == NULL)) {                                                           \
		return cudaErrorSymbolNotFound;                                                    \
	}                                                                                          \
	if (CW_UNLIKELY(only_forwards())) {                                                        \
		return real(__VA_ARGS__);                                                          \
	}                                                                                          \
	if (CW_UNLIKELY(!heard(hook, (void *)real))) {                                             \
		return alone;                                                                      \
	}                                                                                          \
	outer = name_call(hook, site);                                                             \
	return unname_call(&outer, real(__VA_ARGS__))

cudaError_t cw_cuda_malloc(enum cw_hook_id hook, const void *site, void **ptr, size_t size)
{
	THROUGH_THE_DOOR(cw_malloc_fn,
			 cw_alone_allocate(hook, site, (void *)real,
					   &(struct cw_alone){ .ptr = ptr, .size = size }),
			 ptr, size);
}

cudaError_t cw_cuda_malloc_async(enum cw_hook_id hook, const void *site, void **ptr, size_t size,
				 cudaStream_t stream)
{
	THROUGH_THE_DOOR(cw_malloc_async_fn,
			 cw_alone_allocate(hook, site, (void *)real,
					   &(struct cw_alone){ .ptr = ptr, .size = size,
							       .stream = stream }),
			 ptr, size, stream);
}

cudaError_t cw_cuda_malloc_managed(enum cw_hook_id hook, const void *site, void **ptr,
				   size_t size, unsigned int flags)
{
	THROUGH_THE_DOOR(cw_malloc_flags_fn,
			 cw_alone_allocate(hook, site, (void *)real,
					   &(struct cw_alone){ .ptr = ptr, .size = size,
							       .flags = flags }),
			 ptr, size, flags);
}

cudaError_t cw_cuda_malloc_pitch(enum cw_hook_id hook, const void *site, void **ptr,
				 size_t *pitch, size_t width, size_t height)
{
	THROUGH_THE_DOOR(cw_malloc_pitch_fn,
			 cw_alone_allocate(hook, site, (void *)real,
					   &(struct cw_alone){ .ptr = ptr, .pitch = pitch,
							       .extent = { width, height, 1 } }),
			 ptr, pitch, width, height);
}

cudaError_t cw_cuda_malloc_3d(enum cw_hook_id hook, const void *site,
			      struct cudaPitchedPtr *pitched, struct cudaExtent extent)
{
	THROUGH_THE_DOOR(cw_malloc_3d_fn,
			 cw_alone_allocate(hook, site, (void *)real,
					   &(struct cw_alone){ .pitched = pitched,
							       .extent = extent }),
			 pitched, extent);
}

cudaError_t cw_cuda_malloc_host(enum cw_hook_id hook, const void *site, void **ptr, size_t size)
{
	THROUGH_THE_DOOR(cw_malloc_fn,
			 cw_alone_allocate(hook, site, (void *)real,
					   &(struct cw_alone){ .ptr = ptr, .size = size }),
			 ptr, size);
}

cudaError_t cw_cuda_host_alloc(enum cw_hook_id hook, const void *site, void **ptr, size_t size,
			       unsigned int flags)
{
	THROUGH_THE_DOOR(cw_malloc_flags_fn,
			 cw_alone_allocate(hook, site, (void *)real,
					   &(struct cw_alone){ .ptr = ptr, .size = size,
							       .flags = flags }),
			 ptr, size, flags);
}

cudaError_t cw_cuda_free(enum cw_hook_id hook, const void *site, void *ptr)
{
	THROUGH_THE_DOOR(cw_free_fn, cw_alone_free(hook, site, (void *)real, ptr, NULL), ptr);
}

cudaError_t cw_cuda_free_async(enum cw_hook_id hook, const void *site, void *ptr,
			       cudaStream_t stream)
{
	THROUGH_THE_DOOR(cw_free_async_fn, cw_alone_free(hook, site, (void *)real, ptr, stream),
			 ptr, stream);
}

cudaError_t cw_cuda_free_host(enum cw_hook_id hook, const void *site, void *ptr)
{
	THROUGH_THE_DOOR(cw_free_fn, cw_alone_free(hook, site, (void *)real, ptr, NULL), ptr);
}

/* What a runtime that no door hears makes current, nobody else tells us. */
cudaError_t cw_cuda_set_device(enum cw_hook_id hook, const void *site, int device)
{
	cudaError_t (*real)(int) = (cudaError_t (*)(int))cw_real_runtime(hook, site);
	cudaError_t result;

	if (real == NULL) {
		return cudaErrorSymbolNotFound;
	}
	result = real(device);
	if (!only_forwards() && !heard(hook, (void *)real)) {
		cw_heard_current_lost();
	}
	return result;
}

cudaError_t cw_cuda_device_reset(enum cw_hook_id hook, const void *site)
{
	THROUGH_THE_DOOR(cw_void_fn, cw_alone_device_reset(hook, site, (void *)real), );
}
