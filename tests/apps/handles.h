/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is known by handles, or was there before: arrays, registered host memory, imports.
 * The words of handles.c, and the ways into CUDA that perform them; a status is a CUresult or a
 * cudaError_t. NULL where a way has no such call: the program then ends with 77.
 */
#ifndef HANDLES_H
#define HANDLES_H

#include <stddef.h>

/* Extents as the driver counts them, an element format by its name, CUDA_ARRAY3D_... */
struct shape {
	size_t width;
	size_t height;
	size_t depth;
	const char *format;
	unsigned int channels;
	unsigned int flags;
	unsigned int levels;
};

enum { HANDLE_BYTES = 64 };

struct way {
	int (*start)(const char *how);
	int (*array)(void **ret, const struct shape *shape, const char *form);
	int (*array_free)(void *array);
	int (*mipmap)(void **ret, const struct shape *shape);
	int (*mipmap_free)(void *mipmap);
	int (*level)(void **ret, void *mipmap, unsigned int level);
	int (*plane)(void **ret, void *array, unsigned int plane);
	int (*register_memory)(void *memory, size_t size, const char *form);
	int (*unregister_memory)(void *memory);
	int (*device_pointer)(unsigned long long *ret, void *memory);
	int (*alloc)(unsigned long long *ret, size_t size);
	int (*free)(unsigned long long pointer);
	int (*ipc_handle)(char *ret, unsigned long long pointer);
	int (*ipc_open)(unsigned long long *ret, const char *handle, const char *form);
	int (*ipc_close)(unsigned long long pointer);
	int (*import)(void **ret, int fd, size_t size, int type);
	int (*import_free)(void *memory);
	int (*map_buffer)(unsigned long long *ret, void *memory, size_t offset, size_t size);
	int (*map_mipmap)(void **ret, void *memory, const struct shape *shape);
	int (*context_create)(void);
	int (*context_destroy)(void);
	int (*last_error)(void);
};

/* Defined by the one handles_*.c that a program is built with. */
extern const struct way way;

/* The number of a format of CUarray_format; those of one to four equal channels alone have a
 * size and a kind for the runtime's descriptor. */
struct format {
	const char *name;
	unsigned int number;
	int bits;
	char kind; /* 's'igned, 'u'nsigned, 'f'loat, or 0 */
};

const struct format *find_format(const char *name);

#endif
