/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver API as a way in for handles.c: linked (with WAY_LINKED), by dlsym, or by
 * cuGetProcAddress in its second ("gpa") or first version ("gpa1").
 */
#include "apps.h"
#include "handles.h"
#include "lookup.h"

#include <cuda.h>
#include <stdbool.h>

/* cuda.h shows the first forms only to itself, and renames the functions per release. */
struct descriptor_v1 {
	unsigned int width, height;
	CUarray_format format;
	unsigned int channels;
};
struct descriptor_3d_v1 {
	unsigned int width, height, depth;
	CUarray_format format;
	unsigned int channels, flags;
};
#undef cuArrayCreate
#undef cuArray3DCreate
#undef cuMemHostRegister
#undef cuIpcOpenMemHandle

struct driver {
#define CALL(symbol, base, version, parameters) CUresult(*symbol) parameters;
#include "handles_calls.def"
#undef CALL
};

#ifdef WAY_LINKED

/* Under names of their own, since the header's prototypes are of one version alone. */
#define CALL(symbol, base, version, parameters)                                              \
	CUresult linked_##symbol parameters __asm__(#symbol);
#include "handles_calls.def"
#undef CALL

static const struct driver driver = {
#define CALL(symbol, base, version, parameters) .symbol = linked_##symbol,
#include "handles_calls.def"
#undef CALL
};

static int find_functions(const char *how)
{
	return strcmp(how, "linked") == 0 ? 0 : -1;
}

#else

static struct driver driver;

static int find_functions(const char *how)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	bool by_name = strcmp(how, "dlsym") == 0;
	bool first = strcmp(how, "gpa1") == 0;

	if (libcuda == NULL || (!by_name && !first && strcmp(how, "gpa") != 0)) {
		return -1;
	}
#define CALL(symbol, base, version, parameters)                                              \
	*(void **)&driver.symbol = by_name ? dlsym(libcuda, #symbol)                         \
					   : by_lookup(libcuda, first, #base, version, 0);
#include "handles_calls.def"
#undef CALL
	return 0;
}

#endif

static int start(const char *how)
{
	CUcontext context;

	if (find_functions(how) != 0) {
		fprintf(stderr, "handles: no way \"%s\" in this program\n", how);
		exit(2);
	}
	CHECK(driver.cuInit(0));
	CHECK(driver.cuDevicePrimaryCtxRetain(&context, 0));
	return (int)driver.cuCtxSetCurrent(context);
}

static CUDA_ARRAY3D_DESCRIPTOR descriptor_of(const struct shape *shape)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = shape->width,
		.Height = shape->height,
		.Depth = shape->depth,
		.Format = (CUarray_format)find_format(shape->format)->number,
		.NumChannels = shape->channels,
		.Flags = shape->flags,
	};
}

static int array(void **ret, const struct shape *shape, const char *form)
{
	CUDA_ARRAY3D_DESCRIPTOR all = descriptor_of(shape);
	CUDA_ARRAY_DESCRIPTOR flat = { all.Width, all.Height, all.Format, all.NumChannels };
	struct descriptor_v1 flat_v1 = { (unsigned int)all.Width, (unsigned int)all.Height,
					 all.Format, all.NumChannels };
	struct descriptor_3d_v1 all_v1 = { (unsigned int)all.Width, (unsigned int)all.Height,
					   (unsigned int)all.Depth, all.Format, all.NumChannels,
					   all.Flags };

	if (strcmp(form, "2d") == 0) {
		return (int)driver.cuArrayCreate_v2((CUarray *)ret, &flat);
	}
	if (strcmp(form, "2d1") == 0) {
		return (int)driver.cuArrayCreate((CUarray *)ret, &flat_v1);
	}
	if (strcmp(form, "3d1") == 0) {
		return (int)driver.cuArray3DCreate((CUarray *)ret, &all_v1);
	}
	return (int)driver.cuArray3DCreate_v2((CUarray *)ret, &all);
}

static int array_free(void *which)
{
	return (int)driver.cuArrayDestroy(which);
}

static int mipmap(void **ret, const struct shape *shape)
{
	CUDA_ARRAY3D_DESCRIPTOR all = descriptor_of(shape);

	return (int)driver.cuMipmappedArrayCreate((CUmipmappedArray *)ret, &all, shape->levels);
}

static int mipmap_free(void *which)
{
	return (int)driver.cuMipmappedArrayDestroy(which);
}

static int level(void **ret, void *of, unsigned int index)
{
	return (int)driver.cuMipmappedArrayGetLevel((CUarray *)ret, of, index);
}

static int plane(void **ret, void *of, unsigned int index)
{
	return (int)driver.cuArrayGetPlane((CUarray *)ret, of, index);
}

static int register_memory(void *memory, size_t size, const char *form)
{
	return (int)(form[0] == '1' ? driver.cuMemHostRegister(memory, size, 0)
				    : driver.cuMemHostRegister_v2(memory, size, 0));
}

static int unregister_memory(void *memory)
{
	return (int)driver.cuMemHostUnregister(memory);
}

static int device_pointer(unsigned long long *ret, void *memory)
{
	return (int)driver.cuMemHostGetDevicePointer_v2(ret, memory, 0);
}

static int mem_alloc(unsigned long long *ret, size_t size)
{
	return (int)driver.cuMemAlloc_v2(ret, size);
}

static int mem_free(unsigned long long pointer)
{
	return (int)driver.cuMemFree_v2(pointer);
}

static int ipc_handle(char *ret, unsigned long long pointer)
{
	CUipcMemHandle handle;
	CUresult result = driver.cuIpcGetMemHandle(&handle, pointer);

	memcpy(ret, &handle, HANDLE_BYTES);
	return (int)result;
}

static int ipc_open(unsigned long long *ret, const char *bytes, const char *form)
{
	CUipcMemHandle handle;
	unsigned int flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;

	memcpy(&handle, bytes, HANDLE_BYTES);
	return (int)(form[0] == '1' ? driver.cuIpcOpenMemHandle(ret, handle, flags)
				    : driver.cuIpcOpenMemHandle_v2(ret, handle, flags));
}

static int ipc_close(unsigned long long pointer)
{
	return (int)driver.cuIpcCloseMemHandle(pointer);
}

static int import(void **ret, int fd, size_t size, int type)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC descriptor = { .size = size };

	descriptor.type = (CUexternalMemoryHandleType)type;
	if (type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) {
		descriptor.handle.fd = fd;
	} else {
		descriptor.handle.nvSciBufObject = &driver;
	}
	return (int)driver.cuImportExternalMemory((CUexternalMemory *)ret, &descriptor);
}

static int import_free(void *memory)
{
	return (int)driver.cuDestroyExternalMemory(memory);
}

static int map_buffer(unsigned long long *ret, void *memory, size_t offset, size_t size)
{
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC descriptor = { .offset = offset, .size = size };

	return (int)driver.cuExternalMemoryGetMappedBuffer(ret, memory, &descriptor);
}

static int map_mipmap(void **ret, void *memory, const struct shape *shape)
{
	CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC descriptor = {
		.arrayDesc = descriptor_of(shape),
		.numLevels = shape->levels,
	};

	return (int)driver.cuExternalMemoryGetMappedMipmappedArray((CUmipmappedArray *)ret, memory,
								   &descriptor);
}

static int context_create(void)
{
	CUcontext context;

	return (int)driver.cuCtxCreate_v2(&context, 0, 0);
}

static int context_destroy(void)
{
	CUcontext context = NULL;

	CHECK(driver.cuCtxGetCurrent(&context));
	return (int)driver.cuCtxDestroy_v2(context);
}

const struct way way = {
	.start = start,
	.array = array,
	.array_free = array_free,
	.mipmap = mipmap,
	.mipmap_free = mipmap_free,
	.level = level,
	.plane = plane,
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
	.context_create = context_create,
	.context_destroy = context_destroy,
};
