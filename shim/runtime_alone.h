/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline at the runtime door, for a runtime that no other door hears (D-19). Admission,
 * failures and retries happen up front; the last error that a mended failure left is cleared
 * (one that was pending before cannot be put back then).
 */
#ifndef CW_RUNTIME_ALONE_H
#define CW_RUNTIME_ALONE_H

#include "cuda_api.h"
#include "hooks.h"

typedef cudaError_t (*cw_malloc_fn)(void **, size_t);
typedef cudaError_t (*cw_malloc_async_fn)(void **, size_t, cudaStream_t);
typedef cudaError_t (*cw_malloc_flags_fn)(void **, size_t, unsigned int);
typedef cudaError_t (*cw_malloc_pitch_fn)(void **, size_t *, size_t, size_t);
typedef cudaError_t (*cw_malloc_3d_fn)(struct cudaPitchedPtr *, struct cudaExtent);
typedef cudaError_t (*cw_free_fn)(void *);
typedef cudaError_t (*cw_free_async_fn)(void *, cudaStream_t);
typedef cudaError_t (*cw_void_fn)(void);

/* The arguments of an allocation; each function uses its own of them. */
struct cw_alone {
	void **ptr;
	size_t size;
	cudaStream_t stream;
	unsigned int flags;
	size_t *pitch;
	struct cudaPitchedPtr *pitched;
	struct cudaExtent extent;
};

cudaError_t cw_alone_allocate(enum cw_hook_id hook, const void *site, void *real,
			      const struct cw_alone *arguments);
cudaError_t cw_alone_free(enum cw_hook_id hook, const void *site, void *real, void *ptr,
			  cudaStream_t stream);
cudaError_t cw_alone_device_reset(enum cw_hook_id hook, const void *site, void *real);

/* For runtime_handles.c: the same, of other kinds of memory. */
struct cw_request;
void cw_alone_guess_device(struct cw_request *request);
void cw_alone_locate(struct cw_request *request);
void cw_alone_clear_last_error(const struct cw_request *request);

#endif
