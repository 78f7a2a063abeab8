/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime as a way in for handles.c; which one the program is linked to decides. */
#include "apps.h"
#include "handles.h"

#include <cuda_runtime_api.h>

static int start(const char *how)
{
	if (strcmp(how, "runtime") != 0) {
		fprintf(stderr, "handles: no way \"%s\" in this program\n", how);
		exit(2);
	}
	return (int)cudaSetDevice(0);
}

static struct cudaChannelFormatDesc channels_of(const struct shape *shape)
{
	const struct format *format = find_format(shape->format);
	struct cudaChannelFormatDesc desc = { .x = format->bits };

	switch (format->kind) {
	case 's':
		desc.f = cudaChannelFormatKindSigned;
		break;
	case 'u':
		desc.f = cudaChannelFormatKindUnsigned;
		break;
	case 'f':
		desc.f = cudaChannelFormatKindFloat;
		break;
	default:
		fprintf(stderr, "handles: no such format of the runtime\n");
		exit(77);
	}
	desc.y = shape->channels > 1 ? format->bits : 0;
	desc.z = shape->channels > 2 ? format->bits : 0;
	desc.w = shape->channels > 3 ? format->bits : 0;
	return desc;
}

static struct cudaExtent extent_of(const struct shape *shape)
{
	return (struct cudaExtent){ shape->width, shape->height, shape->depth };
}

static int array(void **ret, const struct shape *shape, const char *form)
{
	struct cudaChannelFormatDesc desc = channels_of(shape);

	if (form[0] == '2') {
		return (int)cudaMallocArray((cudaArray_t *)ret, &desc, shape->width, shape->height,
					    shape->flags);
	}
	return (int)cudaMalloc3DArray((cudaArray_t *)ret, &desc, extent_of(shape), shape->flags);
}

static int array_free(void *which)
{
	return (int)cudaFreeArray(which);
}

static int mipmap(void **ret, const struct shape *shape)
{
	struct cudaChannelFormatDesc desc = channels_of(shape);

	return (int)cudaMallocMipmappedArray((cudaMipmappedArray_t *)ret, &desc, extent_of(shape),
					     shape->levels, shape->flags);
}

static int mipmap_free(void *which)
{
	return (int)cudaFreeMipmappedArray(which);
}

static int level(void **ret, void *of, unsigned int index)
{
	return (int)cudaGetMipmappedArrayLevel((cudaArray_t *)ret, of, index);
}

static int register_memory(void *memory, size_t size, const char *form)
{
	(void)form;
	return (int)cudaHostRegister(memory, size, 0);
}

static int unregister_memory(void *memory)
{
	return (int)cudaHostUnregister(memory);
}

static int device_pointer(unsigned long long *ret, void *memory)
{
	return (int)cudaHostGetDevicePointer((void **)ret, memory, 0);
}

static int mem_alloc(unsigned long long *ret, size_t size)
{
	return (int)cudaMalloc((void **)ret, size);
}

static int mem_free(unsigned long long pointer)
{
	return (int)cudaFree((void *)pointer);
}

static int ipc_handle(char *ret, unsigned long long pointer)
{
	cudaIpcMemHandle_t handle;
	cudaError_t result = cudaIpcGetMemHandle(&handle, (void *)pointer);

	memcpy(ret, &handle, HANDLE_BYTES);
	return (int)result;
}

static int ipc_open(unsigned long long *ret, const char *bytes, const char *form)
{
	cudaIpcMemHandle_t handle;

	(void)form;
	memcpy(&handle, bytes, HANDLE_BYTES);
	return (int)cudaIpcOpenMemHandle((void **)ret, handle, cudaIpcMemLazyEnablePeerAccess);
}

static int ipc_close(unsigned long long pointer)
{
	return (int)cudaIpcCloseMemHandle((void *)pointer);
}

static int import(void **ret, int fd, size_t size, int type)
{
	struct cudaExternalMemoryHandleDesc desc = { .size = size };

	desc.type = (enum cudaExternalMemoryHandleType)type;
	desc.handle.fd = fd;
	return (int)cudaImportExternalMemory((cudaExternalMemory_t *)ret, &desc);
}

static int import_free(void *memory)
{
	return (int)cudaDestroyExternalMemory(memory);
}

static int map_buffer(unsigned long long *ret, void *memory, size_t offset, size_t size)
{
	struct cudaExternalMemoryBufferDesc desc = { .offset = offset, .size = size };

	return (int)cudaExternalMemoryGetMappedBuffer((void **)ret, memory, &desc);
}

static int map_mipmap(void **ret, void *memory, const struct shape *shape)
{
	struct cudaExternalMemoryMipmappedArrayDesc desc = {
		.formatDesc = channels_of(shape),
		.extent = extent_of(shape),
		.numLevels = shape->levels,
	};

	return (int)cudaExternalMemoryGetMappedMipmappedArray((cudaMipmappedArray_t *)ret, memory,
							      &desc);
}

static int last_error(void)
{
	return (int)cudaGetLastError();
}

const struct way way = {
	.start = start,
	.array = array,
	.array_free = array_free,
	.mipmap = mipmap,
	.mipmap_free = mipmap_free,
	.level = level,
	.register_memory = register_memory,
	.unregister_memory = unregister_memory,
	.device_pointer = device_pointer,
	.alloc = mem_alloc,
	.free = mem_free,
	.ipc_handle = ipc_handle,
	.ipc_open = ipc_open,
	.ipc_close = ipc_close,
	.import = import,
	.import_free = import_free,
	.map_buffer = map_buffer,
	.map_mipmap = map_mipmap,
	.last_error = last_error,
};
