/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver door for arrays. They are device memory of their context, known by handles;
 * levels and planes of an array have handles too, but no memory and no end of their own.
 */
#include "aliases.h"
#include "array_size.h"
#include "bodies.h"
#include "driver_door.h"
#include "virtual_tiles.h"

/* Both descriptors in both versions, and handles of both sorts: they are only passed on. */
typedef CUresult (*create_fn)(CUarray *, const void *);
typedef CUresult (*create_mipmapped_fn)(CUmipmappedArray *, const void *, unsigned int);
typedef CUresult (*destroy_fn)(void *);

/* Arguments of a request. */
enum { DESCRIPTOR, LEVELS };

static CUresult undo(struct cw_request *request)
{
	destroy_fn real = (destroy_fn)cw_real_of(request->space == CW_KEY_MIPMAPPED_ARRAY
							 ? CW_HOOK_cuMipmappedArrayDestroy
							 : CW_HOOK_cuArrayDestroy);

	return real != NULL ? real((void *)(uintptr_t)request->pointer) : CUDA_ERROR_NOT_FOUND;
}

static CUresult perform_array(struct cw_request *request)
{
	CUarray array = NULL;
	CUresult result = ((create_fn)request->real)(
		&array, (const void *)(uintptr_t)request->arguments[DESCRIPTOR]);

	request->pointer = (uint64_t)(uintptr_t)array;
	return result;
}

static CUresult perform_mipmapped(struct cw_request *request)
{
	CUmipmappedArray array = NULL;
	CUresult result = ((create_mipmapped_fn)request->real)(
		&array, (const void *)(uintptr_t)request->arguments[DESCRIPTOR],
		(unsigned int)request->arguments[LEVELS]);

	request->pointer = (uint64_t)(uintptr_t)array;
	return result;
}

/*
 * Sparse and deferred arrays own nothing yet: what is mapped into them was counted where it was
 * made. A format that we do not know is one more allocation without a record.
 */
static CUresult create_uncounted(struct cw_request *request, const struct cw_array_shape *shape)
{
	CUresult result = request->perform(request);

	if (result == CUDA_SUCCESS) {
		cw_alias_note(cw_request_key(request));
		if (cw_array_owns_memory(shape)) {
			cw_count_untracked_allocation();
		}
	}
	return result;
}

/* On success request->pointer is the array. */
static CUresult create(struct cw_request *request, enum cw_hook_id hook, const void *site,
		       void *real, const void *descriptor, const struct cw_array_shape *shape)
{
	bool mipmapped = hook == CW_HOOK_cuMipmappedArrayCreate;
	uint64_t bytes = cw_array_bytes(shape);

	cw_driver_request(request, hook, site, real, bytes);
	cw_driver_here(request);
	request->space = mipmapped ? CW_KEY_MIPMAPPED_ARRAY : CW_KEY_ARRAY;
	request->arguments[DESCRIPTOR] = (uint64_t)(uintptr_t)descriptor;
	request->arguments[LEVELS] = shape->levels;
	request->perform = mipmapped ? perform_mipmapped : perform_array;
	request->undo = undo;
	return bytes != 0 ? cw_allocate(request) : create_uncounted(request, shape);
}

/* `shape` is looked at only where there is a descriptor. */
static CUresult create_array(enum cw_hook_id hook, const void *site, CUarray *array,
			     const void *descriptor, struct cw_array_shape shape)
{
	create_fn real = (create_fn)cw_real_of(hook);
	struct cw_request request;
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || array == NULL || descriptor == NULL) {
		return real(array, descriptor);
	}
	result = create(&request, hook, site, (void *)real, descriptor, &shape);
	if (result == CUDA_SUCCESS) {
		*array = (CUarray)(uintptr_t)request.pointer;
	}
	return result;
}

/* The versions of a descriptor differ only in the types of its members. */
#define SHAPE(descriptor, ...)                                                               \
	((descriptor) == NULL ? (struct cw_array_shape){ 0 }                                 \
			      : (struct cw_array_shape){                                     \
					.width = (descriptor)->Width,                        \
					.height = (descriptor)->Height,                      \
					.format = (unsigned int)(descriptor)->Format,        \
					.channels = (descriptor)->NumChannels,               \
					.levels = 1,                                         \
					__VA_ARGS__ })
#define SHAPE_3D(descriptor)                                                                 \
	SHAPE(descriptor, .depth = (descriptor)->Depth, .flags = (descriptor)->Flags)

CUresult cw_array_create(enum cw_hook_id hook, const void *site, CUarray *array,
			 const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
	return create_array(hook, site, array, descriptor, SHAPE(descriptor, .depth = 0));
}

CUresult cw_array_create_v1(enum cw_hook_id hook, const void *site, CUarray *array,
			    const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor)
{
	return create_array(hook, site, array, descriptor, SHAPE(descriptor, .depth = 0));
}

CUresult cw_array_3d_create(enum cw_hook_id hook, const void *site, CUarray *array,
			    const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	return create_array(hook, site, array, descriptor, SHAPE_3D(descriptor));
}

CUresult cw_array_3d_create_v1(enum cw_hook_id hook, const void *site, CUarray *array,
			       const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor)
{
	return create_array(hook, site, array, descriptor, SHAPE_3D(descriptor));
}

CUresult cw_mipmapped_array_create(enum cw_hook_id hook, const void *site,
				   CUmipmappedArray *array,
				   const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int levels)
{
	create_mipmapped_fn real = (create_mipmapped_fn)cw_real_of(hook);
	struct cw_array_shape shape;
	struct cw_request request;
	CUresult result;

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || array == NULL || descriptor == NULL || levels == 0) {
		return real(array, descriptor, levels);
	}
	shape = SHAPE_3D(descriptor);
	shape.levels = levels;
	result = create(&request, hook, site, (void *)real, descriptor, &shape);
	if (result == CUDA_SUCCESS) {
		*array = (CUmipmappedArray)(uintptr_t)request.pointer;
	}
	return result;
}

static CUresult perform_destroy(struct cw_request *request)
{
	CUresult result = ((destroy_fn)request->real)((void *)(uintptr_t)request->pointer);

	if (result == CUDA_SUCCESS) {
		cw_tiles_array_ended(request->hook, request->site, request->pointer);
	}
	return result;
}

static CUresult destroy(enum cw_hook_id hook, const void *site, void *array,
			uint8_t space)
{
	struct cw_request request;
	destroy_fn real = (destroy_fn)cw_real_of(hook);

	if (real == NULL) {
		return CUDA_ERROR_NOT_FOUND;
	}
	if (!cw_driver_door_open() || array == NULL) {
		return real(array);
	}
	cw_driver_request(&request, hook, site, (void *)real, 0);
	request.space = space;
	request.pointer = (uint64_t)(uintptr_t)array;
	request.perform = perform_destroy;
	return cw_deallocate(&request);
}

CUresult cw_array_destroy(enum cw_hook_id hook, const void *site, CUarray array)
{
	return destroy(hook, site, array, CW_KEY_ARRAY);
}

CUresult cw_mipmapped_array_destroy(enum cw_hook_id hook, const void *site,
				    CUmipmappedArray array)
{
	return destroy(hook, site, array, CW_KEY_MIPMAPPED_ARRAY);
}
