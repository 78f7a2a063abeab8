/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, mipmapped arrays, and copies of boxes, which may lie in arrays. */
#ifndef CUWEIR_SIM_ARRAY_H
#define CUWEIR_SIM_ARRAY_H

#define SIM_MAX_LEVELS 20

struct sim_handle;

/* An array, or a mipmapped one (by obj.type). part[] are its levels, or its planes: arrays that
 * are made when asked for and go with it. */
struct sim_array {
	struct sim_obj obj;
	struct sim_array *prev, *next, *owner;
	struct sim_ctx *ctx;
	struct sim_device *dev;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned int n_levels;
	uint64_t size; /* the bytes that it holds; 0 for sparse and deferred ones */
	uint32_t block;
	char *data;
	struct sim_array *part[SIM_MAX_LEVELS];
	struct sim_handle *bound; /* deferred mapping: what cuMemMapArrayAsync gave it */
	void *map_base; /* data of external memory, else NULL */
	uint64_t map_size;
};

/* Rows of a level: how many bytes in one, how many rows, how many slices. */
struct sim_layout {
	uint64_t row, rows, slices, bytes;
};

bool sim_format_layout(const CUDA_ARRAY3D_DESCRIPTOR *d, struct sim_layout *ret);
uint64_t sim_format_element(CUarray_format format, unsigned int channels);
bool sim_format_plane(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int plane,
		      CUDA_ARRAY3D_DESCRIPTOR *ret, uint64_t *ret_offset);

CUresult sim_array_new(struct sim_array **ret, const CUDA_ARRAY3D_DESCRIPTOR *d,
		       unsigned int levels, enum sim_type type, char *foreign);
CUresult sim_array_end(struct sim_array *a);
bool sim_array_fits(const struct sim_array *m, uint64_t bytes);
struct sim_array *sim_array_level(struct sim_array *m, unsigned int level);

/* box.c */
CUresult sim_box_2d(const CUDA_MEMCPY2D *c, struct sim_box *ret);
CUresult sim_box_3d(const CUDA_MEMCPY3D *c, struct sim_box *ret);
#endif
