/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an array is charged (D-03): the bytes of its elements, as its description has them. The
 * driver's tiling is its own affair and is not counted. Pure arithmetic; any thread.
 */
#ifndef CW_ARRAY_SIZE_H
#define CW_ARRAY_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* As in CUDA_ARRAY3D_DESCRIPTOR; an extent of 0 is a dimension that the array does not have. */
struct cw_array_shape {
	uint64_t width;        /* in elements */
	uint64_t height;
	uint64_t depth;        /* layers of layered arrays, faces of cubemaps */
	unsigned int format;   /* CUarray_format, known or not */
	unsigned int channels; /* counts only where the format does not say it */
	unsigned int flags;    /* CUDA_ARRAY3D_... */
	unsigned int levels;   /* of a mipmapped array, else 1; more than fit are cut off */
};

/*
 * Bytes, UINT64_MAX where they do not fit. 0 for arrays that own no memory until some is mapped
 * into them (sparse, deferred), and for formats that are not known.
 */
uint64_t cw_array_bytes(const struct cw_array_shape *shape);

bool cw_array_owns_memory(const struct cw_array_shape *shape);

#endif
