/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules, libraries and kernels: any image loads, and has a kernel of any name. A global is found
 * where the image is PTX text that declares it; code and globals take no bytes in the books.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

#define GLOBALS (1UL << 20)

struct entry {
	struct sim_obj obj;
	struct entry *next;
	struct module *module;
	char *addr; /* of a global; a kernel has none */
	size_t size;
	char *name; /* short, or mapped: C++ has names of thousands of characters */
	char short_name[256];
};

struct module {
	struct sim_obj obj;
	struct module *library, *inner; /* a library's module, and back */
	struct entry *entries;
	char *text; /* PTX, else NULL */
	size_t text_size;
	char *globals;
	size_t globals_used;
};

static void *map(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Binary images begin with a magic number, PTX with a comment, a blank or a directive. */
static bool is_text(const char *image)
{
	return image[0] == '/' || image[0] == '.' || image[0] == '\n' || image[0] == ' ' ||
	       image[0] == '\t' || image[0] == '\r';
}

static CUresult load(void *ret, const void *image, enum sim_type type)
{
	struct sim_ctx *c;
	struct module *m;
	CUresult r = type == SIM_MODULE ? sim_ctx_current(&c) : CUDA_SUCCESS;

	if (r == CUDA_SUCCESS && (ret == NULL || image == NULL)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		r = sim_unsafe();
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	m = sim_obj_new(type);
	if (m == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (is_text(image)) {
		m->text_size = strlen(image) + 1;
		m->text = map(m->text_size);
		if (m->text != NULL) {
			memcpy(m->text, image, m->text_size);
		}
	}
	*(void **)ret = m;
	return CUDA_SUCCESS;
}

static CUresult load_file(void *ret, const char *path, enum sim_type type)
{
	return path == NULL ? CUDA_ERROR_INVALID_VALUE : load(ret, "\177file", type);
}

static void drop(struct module *m)
{
	while (m->entries != NULL) {
		struct entry *e = m->entries;

		m->entries = e->next;
		if (e->name != e->short_name) {
			munmap(e->name, strlen(e->name) + 1);
		}
		sim_obj_free(&e->obj);
	}
	if (m->text != NULL) {
		munmap(m->text, m->text_size);
	}
	if (m->globals != NULL) {
		munmap(m->globals, GLOBALS);
	}
	if (m->inner != NULL) {
		sim_obj_free(&m->inner->obj);
	}
	sim_obj_free(&m->obj);
}

static CUresult unload(const void *h, enum sim_type type)
{
	struct module *m = sim_obj_get(h, type);

	if (m == NULL || m->library != NULL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	pthread_mutex_lock(&sim_lock);
	drop(m);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

/* The module or library; what a library's module has is the library's. */
static struct module *owner(const void *h)
{
	struct module *m = sim_obj_get(h, SIM_MODULE);

	if (m == NULL) {
		m = sim_obj_get(h, SIM_LIBRARY);
	}
	return m != NULL && m->library != NULL ? m->library : m;
}

static bool set_name(struct entry *e, const char *name)
{
	size_t n = strlen(name) + 1;

	e->name = n <= sizeof(e->short_name) ? e->short_name : map(n);
	if (e->name != NULL) {
		memcpy(e->name, name, n);
	}
	return e->name != NULL;
}

static struct entry *entry(struct module *m, const char *name, bool global)
{
	struct entry *e = m->entries;

	while (e != NULL && ((e->addr != NULL) != global || strcmp(e->name, name) != 0)) {
		e = e->next;
	}
	if (e == NULL) {
		e = sim_obj_new(global ? SIM_RESOURCE : SIM_FUNCTION);
		if (e != NULL && !set_name(e, name)) {
			sim_obj_free(&e->obj);
			e = NULL;
		}
		if (e != NULL) {
			e->module = m;
			e->next = m->entries;
			m->entries = e;
		}
	}
	return e;
}

static CUresult kernel(void *ret, const void *h, const char *name)
{
	struct module *m = owner(h);
	struct entry *e;

	if (m == NULL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	if (ret == NULL || name == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_lock);
	e = entry(m, name, false);
	pthread_mutex_unlock(&sim_lock);
	if (e == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*(void **)ret = e;
	return CUDA_SUCCESS;
}

/* The bytes that a PTX declaration gives a name: "[.global|.const] ... .u32 name[16];" */
static size_t declared(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = text; p != NULL && (p = strstr(p, name)) != NULL; p += n) {
		const char *line = p;
		size_t bytes = 4, count = 1;
		const char *type;

		if (strchr(" \t", p[-(p > text)]) == NULL || strchr("[; =\t", p[n]) == NULL) {
			continue;
		}
		while (line > text && line[-1] != '\n' && line[-1] != ';') {
			line--;
		}
		if ((strstr(line, ".global") == NULL || strstr(line, ".global") > p) &&
		    (strstr(line, ".const") == NULL || strstr(line, ".const") > p)) {
			continue;
		}
		for (type = line; type < p; type++) {
			if (type[0] == '.' && strchr("usbf", type[1]) != NULL && type[2] >= '0' &&
			    type[2] <= '9') {
				bytes = strtoul(type + 2, NULL, 10) / 8;
			}
		}
		if (p[n] == '[') {
			count = strtoul(p + n + 1, NULL, 10);
		}
		return bytes * count;
	}
	return 0;
}

static CUresult global(CUdeviceptr *ret, size_t *ret_size, const void *h, const char *name)
{
	struct module *m = owner(h);
	struct entry *e = NULL;
	size_t size;

	if (m == NULL || name == NULL) {
		return m == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
	}
	size = m->text != NULL ? declared(m->text, name) : 0;
	if (size == 0) {
		return CUDA_ERROR_NOT_FOUND;
	}
	pthread_mutex_lock(&sim_lock);
	if (m->globals == NULL) {
		m->globals = map(GLOBALS);
	}
	if (m->globals != NULL) {
		e = entry(m, name, true);
	}
	if (e != NULL && e->addr == NULL && size <= GLOBALS - m->globals_used) {
		e->addr = m->globals + m->globals_used;
		e->size = size;
		m->globals_used += (size + 255) / 256 * 256;
	}
	pthread_mutex_unlock(&sim_lock);
	if (e == NULL || e->addr == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (ret != NULL) {
		*ret = (uintptr_t)e->addr;
	}
	if (ret_size != NULL) {
		*ret_size = e->size;
	}
	return CUDA_SUCCESS;
}

static CUresult global_v1(CUdeviceptr_v1 *ret, unsigned int *ret_size, CUmodule h,
			  const char *name)
{
	CUdeviceptr p = 0;
	size_t n = 0;
	CUresult r = global(&p, &n, h, name);

	if (r == CUDA_SUCCESS && ret != NULL) {
		*ret = sim_v1(p);
	}
	if (r == CUDA_SUCCESS && ret_size != NULL) {
		*ret_size = (unsigned int)n;
	}
	return r;
}

static CUresult library_module(CUmodule *ret, CUlibrary h)
{
	struct module *m = sim_obj_get(h, SIM_LIBRARY);

	if (m == NULL || ret == NULL) {
		return m == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_lock);
	if (m->inner == NULL) {
		m->inner = sim_obj_new(SIM_MODULE);
		if (m->inner != NULL) {
			m->inner->library = m;
		}
	}
	*ret = (CUmodule)m->inner;
	pthread_mutex_unlock(&sim_lock);
	return *ret != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A kernel and its function are one handle: the API lets either be cast to the other. */
static CUresult same(void *ret, const void *h)
{
	struct entry *e = sim_obj_get(h, SIM_FUNCTION);

	if (e == NULL || ret == NULL) {
		return e == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
	}
	*(void **)ret = e;
	return CUDA_SUCCESS;
}

static CUresult entry_name(const char **ret, const void *h)
{
	struct entry *e = NULL;
	CUresult r = same(ret != NULL ? &e : NULL, h);

	if (r == CUDA_SUCCESS) {
		*ret = e->name;
	}
	return r;
}

static CUresult entry_owner(void *ret, const void *h)
{
	struct entry *e = NULL;
	CUresult r = same(ret != NULL ? &e : NULL, h);

	if (r == CUDA_SUCCESS) {
		*(void **)ret = e->module;
	}
	return r;
}

static CUresult loading_mode(CUmoduleLoadingMode *mode)
{
	if (mode == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

SIM_API(cuModuleLoad, (CUmodule *m, const char *path), (0), (*m), load_file(m, path, SIM_MODULE))
SIM_API(cuModuleLoadData, (CUmodule *m, const void *image), (image), (*m),
	load(m, image, SIM_MODULE))
SIM_API(cuModuleLoadDataEx,
	(CUmodule *m, const void *image, unsigned int n, CUjit_option *options, void **values),
	(image, n, options != NULL, values != NULL), (*m), load(m, image, SIM_MODULE))
SIM_API(cuModuleLoadFatBinary, (CUmodule *m, const void *image), (image), (*m),
	load(m, image, SIM_MODULE))
SIM_API(cuModuleUnload, (CUmodule m), (m), (0), unload(m, SIM_MODULE))
SIM_API(cuModuleGetFunction, (CUfunction *f, CUmodule m, const char *name), (m), (*f),
	kernel(f, m, name))
SIM_API(cuModuleGetGlobal_v2, (CUdeviceptr *p, size_t *size, CUmodule m, const char *name), (m),
	(SIM_OUT(p), SIM_OUT(size)), global(p, size, m, name))
SIM_API(cuModuleGetGlobal, (CUdeviceptr_v1 *p, unsigned int *size, CUmodule m, const char *name),
	(m), (SIM_OUT(p), SIM_OUT(size)), global_v1(p, size, m, name))
SIM_API(cuModuleGetLoadingMode, (CUmoduleLoadingMode *mode), (0), (*mode), loading_mode(mode))
SIM_API(cuLibraryLoadData,
	(CUlibrary *lib, const void *image, CUjit_option *options, void **values, unsigned int n,
	 CUlibraryOption *lib_options, void **lib_values, unsigned int lib_n),
	(image, options != NULL, values != NULL, n, lib_options != NULL, lib_values != NULL, lib_n),
	(*lib), load(lib, image, SIM_LIBRARY))
SIM_API(cuLibraryLoadFromFile,
	(CUlibrary *lib, const char *path, CUjit_option *options, void **values, unsigned int n,
	 CUlibraryOption *lib_options, void **lib_values, unsigned int lib_n),
	(options != NULL, values != NULL, n, lib_options != NULL, lib_values != NULL, lib_n),
	(*lib), load_file(lib, path, SIM_LIBRARY))
SIM_API(cuLibraryUnload, (CUlibrary lib), (lib), (0), unload(lib, SIM_LIBRARY))
SIM_API(cuLibraryGetKernel, (CUkernel *k, CUlibrary lib, const char *name), (lib), (*k),
	kernel(k, lib, name))
SIM_API(cuLibraryGetModule, (CUmodule *m, CUlibrary lib), (lib), (*m), library_module(m, lib))
SIM_API(cuLibraryGetGlobal, (CUdeviceptr *p, size_t *size, CUlibrary lib, const char *name), (lib),
	(SIM_OUT(p), SIM_OUT(size)), global(p, size, lib, name))
SIM_API(cuKernelGetFunction, (CUfunction *f, CUkernel k), (k), (*f), same(f, k))
SIM_API(cuKernelGetName, (const char **name, CUkernel k), (k), (0), entry_name(name, k))
SIM_API(cuFuncGetName, (const char **name, CUfunction f), (f), (0), entry_name(name, f))
SIM_API(cuKernelGetLibrary, (CUlibrary *lib, CUkernel k), (k), (*lib), entry_owner(lib, k))
SIM_API(cuFuncGetModule, (CUmodule *m, CUfunction f), (f), (*m), entry_owner(m, f))
