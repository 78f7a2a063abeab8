/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and semaphores of other interfaces. A descriptor whose file can be mapped is; any other
 * one, and a handle of another kind, stands for memory that nobody else sees. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"
#include "array.h"
#include "space.h"

struct external {
	struct sim_obj obj;
	int fd; /* the driver's own since the import; -1 for handles that are no descriptors */
	uint64_t size;
	struct sim_ctx *ctx;
	struct external *prev, *next;
};

static struct external *externals; /* under sim_lock */

static CUresult import(CUexternalMemory *ret, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *d)
{
	struct external *e;
	struct sim_ctx *c;
	bool by_fd;
	CUresult r = sim_ctx_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (ret == NULL || d == NULL || d->size == 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (d->type < CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD ||
	    d->type > CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	by_fd = d->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
	if (by_fd && fcntl(d->handle.fd, F_GETFD) < 0) {
		return CUDA_ERROR_INVALID_VALUE; /* GPU?: the code */
	}
	e = sim_obj_new(SIM_EXTERNAL);
	if (e == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	e->fd = by_fd ? d->handle.fd : -1;
	e->size = d->size;
	c = sim_owner(c);
	e->ctx = c;
	pthread_mutex_lock(&sim_lock);
	e->next = externals;
	if (e->next != NULL) {
		e->next->prev = e;
	}
	externals = e;
	pthread_mutex_unlock(&sim_lock);
	sim_charge(c->dev, CUWEIR_SIM_IMPORTED, e->size);
	*ret = (CUexternalMemory)e;
	return CUDA_SUCCESS;
}

/* sim_lock is held. Mapped buffers stay until they are freed. */
static void gone(struct external *e)
{
	if (e->next != NULL) {
		e->next->prev = e->prev;
	}
	if (e->prev != NULL) {
		e->prev->next = e->next;
	} else {
		externals = e->next;
	}
	sim_uncharge(e->ctx->dev, CUWEIR_SIM_IMPORTED, e->size);
	if (e->fd >= 0) {
		close(e->fd);
	}
	sim_obj_free(&e->obj);
}

static CUresult destroy(CUexternalMemory h)
{
	struct external *e;

	pthread_mutex_lock(&sim_lock);
	e = sim_obj_get(h, SIM_EXTERNAL);
	if (e != NULL) {
		gone(e);
	}
	pthread_mutex_unlock(&sim_lock);
	return e != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The context ends, and its external memory with it. sim_lock is held. */
void sim_external_wipe(struct sim_ctx *c)
{
	struct external *next;

	for (struct external *e = externals; e != NULL; e = next) {
		next = e->next;
		if (e->ctx == c) {
			gone(e);
		}
	}
}

static char *map(const struct external *e, uint64_t offset, uint64_t size, void **ret_base,
		 uint64_t *ret_size)
{
	uint64_t skip = offset % SIM_PAGE;
	struct stat st;
	char *p = MAP_FAILED;

	if (fstat(e->fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size >= offset + size) {
		p = mmap(NULL, size + skip, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd,
			 (off_t)(offset - skip));
	}
	if (p == MAP_FAILED) {
		p = mmap(NULL, size + skip, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	*ret_base = p;
	*ret_size = size + skip;
	return p == MAP_FAILED ? NULL : p + skip;
}

static bool inside(const struct external *e, uint64_t offset, uint64_t size)
{
	return size > 0 && offset <= e->size && size <= e->size - offset;
}

static CUresult buffer(CUdeviceptr *ret, CUexternalMemory h,
		       const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *d)
{
	struct external *e = sim_obj_get(h, SIM_EXTERNAL);
	struct sim_space s = {.type = SIM_SPACE_BUFFER, .owner = e};
	bool ok;

	if (e == NULL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	if (ret == NULL || d == NULL || d->flags != 0 || !inside(e, d->offset, d->size)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	s.addr = (uintptr_t)map(e, d->offset, d->size, &s.map_base, &s.map_size);
	s.size = d->size;
	s.dev = e->ctx->dev->ordinal;
	pthread_mutex_lock(&sim_space_lock);
	ok = s.addr != 0 && sim_space_add(&s) != NULL;
	pthread_mutex_unlock(&sim_space_lock);
	if (!ok) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = s.addr;
	return CUDA_SUCCESS;
}

static CUresult mipmap(CUmipmappedArray *ret, CUexternalMemory h,
		       const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *d)
{
	struct external *e = sim_obj_get(h, SIM_EXTERNAL);
	struct sim_array *m;
	uint64_t size;
	void *base;
	char *p;
	CUresult r;

	if (e == NULL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	if (ret == NULL || d == NULL || d->offset >= e->size) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	p = map(e, d->offset, e->size - d->offset, &base, &size);
	if (p == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = sim_array_new(&m, &d->arrayDesc, d->numLevels, SIM_MIPMAP, p);
	if (r == CUDA_SUCCESS && !sim_array_fits(m, e->size - d->offset)) {
		sim_array_end(m);
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r != CUDA_SUCCESS) {
		munmap(base, size);
		return r;
	}
	m->map_base = base;
	m->map_size = size;
	*ret = (CUmipmappedArray)m;
	return CUDA_SUCCESS;
}

static CUresult import_semaphore(CUexternalSemaphore *ret,
				 const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *d)
{
	struct sim_obj *o;

	if (ret == NULL || d == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	o = sim_obj_new(SIM_RESOURCE);
	if (o == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUexternalSemaphore)o;
	return CUDA_SUCCESS;
}

static CUresult destroy_semaphore(CUexternalSemaphore h)
{
	struct sim_obj *o = sim_obj_get(h, SIM_RESOURCE);

	if (o == NULL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	sim_obj_free(o);
	return CUDA_SUCCESS;
}

/* Nobody is at the other end: a signal goes nowhere and a wait is over at once. */
static CUresult use_semaphores(const CUexternalSemaphore *list, unsigned int n, CUstream hs,
			       bool per_thread)
{
	struct sim_stream *s;
	CUresult r = sim_stream_use(hs, per_thread, &s);

	for (unsigned int i = 0; r == CUDA_SUCCESS && i < n; i++) {
		r = list != NULL && sim_obj_get(list[i], SIM_RESOURCE) != NULL
			    ? CUDA_SUCCESS
			    : CUDA_ERROR_INVALID_HANDLE;
	}
	return r;
}

SIM_API(cuImportExternalMemory,
	(CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc), (desc != NULL),
	(*memory), import(memory, desc))
SIM_API(cuDestroyExternalMemory, (CUexternalMemory memory), (memory), (0), destroy(memory))
SIM_API(cuExternalMemoryGetMappedBuffer,
	(CUdeviceptr *dptr, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc),
	(memory), (*dptr), buffer(dptr, memory, desc))
SIM_API(cuExternalMemoryGetMappedMipmappedArray,
	(CUmipmappedArray *mip, CUexternalMemory memory,
	 const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc),
	(memory), (*mip), mipmap(mip, memory, desc))
SIM_API(cuImportExternalSemaphore,
	(CUexternalSemaphore *sem, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc),
	(desc != NULL), (*sem), import_semaphore(sem, desc))
SIM_API(cuDestroyExternalSemaphore, (CUexternalSemaphore sem), (sem), (0), destroy_semaphore(sem))
SIM_API_PTSZ(cuSignalExternalSemaphoresAsync,
	     (const CUexternalSemaphore *list, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params,
	      unsigned int n, CUstream s),
	     (params != NULL, n, s), (0), use_semaphores(list, n, ST(s)))
SIM_API_PTSZ(cuWaitExternalSemaphoresAsync,
	     (const CUexternalSemaphore *list, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params,
	      unsigned int n, CUstream s),
	     (params != NULL, n, s), (0), use_semaphores(list, n, ST(s)))
