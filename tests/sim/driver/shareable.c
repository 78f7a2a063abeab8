/* SPDX-License-Identifier: Apache-2.0 */
/* Physical memory between processes: a handle is the descriptor of the memory's file. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"
#include "space.h"

static CUresult export_fd(void *ret, CUmemGenericAllocationHandle value,
			  CUmemAllocationHandleType type, unsigned long long flags)
{
	struct sim_handle *h;
	int fd = -1;

	if (ret == NULL || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_space_lock);
	h = sim_handle_get(value);
	if (h != NULL && (h->mem->prop.requestedHandleTypes & type) != 0) {
		fd = fcntl(h->mem->fd, F_DUPFD_CLOEXEC, 0);
	}
	pthread_mutex_unlock(&sim_space_lock);
	if (fd < 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*(int *)ret = fd;
	return CUDA_SUCCESS;
}

/* The file may be known here already: the exporter itself, or a second import. Then the bytes are
 * counted as they were. */
static struct sim_memory *memory_of(int fd)
{
	struct sim_trailer t;
	struct stat st;
	struct sim_memory *m;

	if (fstat(fd, &st) != 0 || st.st_size < (off_t)SIM_PAGE ||
	    pread(fd, &t, sizeof(t), st.st_size - (off_t)SIM_PAGE) != (ssize_t)sizeof(t) ||
	    t.magic != SIM_TRAILER_MAGIC || t.size + SIM_PAGE != (uint64_t)st.st_size) {
		return NULL;
	}
	m = sim_memory_by_file(st.st_ino);
	if (m != NULL) {
		return m;
	}
	m = sim_memory_of_kind(t.size, &t.prop, t.multicast ? -1 : CUWEIR_SIM_IMPORTED);
	if (m == NULL) {
		return NULL;
	}
	m->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	m->own_fd = m->imported = true;
	m->multicast = t.multicast;
	m->ino = st.st_ino;
	if (m->fd < 0) {
		sim_obj_free(&m->obj);
		return NULL;
	}
	if (m->kind >= 0) {
		sim_charge(m->dev, m->kind, m->size);
	}
	sim_memory_link(m);
	return m;
}

static CUresult import_fd(CUmemGenericAllocationHandle *ret, void *os, CUmemAllocationHandleType t)
{
	struct sim_memory *m;
	struct sim_handle *h;

	if (ret == NULL || t != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_space_lock);
	m = memory_of((int)(intptr_t)os);
	h = m != NULL ? sim_handle_new(m) : NULL;
	pthread_mutex_unlock(&sim_space_lock);
	if (h == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ret = (uintptr_t)h;
	return CUDA_SUCCESS;
}

SIM_API(cuMemExportToShareableHandle,
	(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
	 unsigned long long flags),
	(handle, type, flags), (0), export_fd(out, handle, type, flags))
SIM_API(cuMemImportFromShareableHandle,
	(CUmemGenericAllocationHandle *handle, void *os, CUmemAllocationHandleType type), (type),
	(*handle), import_fd(handle, os, type))
