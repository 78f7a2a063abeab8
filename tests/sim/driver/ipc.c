/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and events between processes, by the handles of the old interface. */
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "space.h"

_Static_assert(sizeof(struct sim_share) <= CU_IPC_HANDLE_SIZE, "fits a handle");

/* The handle is the base allocation's, wherever in it the pointer lies. Memory of pools, managed
 * and virtual memory have none. */
static CUresult get_mem(CUipcMemHandle *ret, CUdeviceptr p)
{
	struct sim_arena *a = sim_arena_of(p);
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sim_share s;
	struct sim_ctx *c;
	uint32_t i;

	if (ret == NULL || sim_ctx_current(&c) != CUDA_SUCCESS || a == NULL) {
		return ret == NULL || a == NULL ? r : sim_ctx_current(&c);
	}
	pthread_mutex_lock(&a->lock);
	i = sim_arena_find(a, p);
	if (i != 0 && a->blocks[i].state == SIM_LIVE &&
	    (a->blocks[i].origin == SIM_LINEAR || a->blocks[i].origin == SIM_PITCHED)) {
		r = sim_share_block(a, i, &s) ? CUDA_SUCCESS : CUDA_ERROR_MAP_FAILED;
	}
	pthread_mutex_unlock(&a->lock);
	if (r == CUDA_SUCCESS) {
		memset(ret, 0, sizeof(*ret));
		memcpy(ret, &s, sizeof(s));
	}
	return r;
}

static struct sim_space *opened(const struct sim_ctx *c, uint64_t key)
{
	struct sim_space *s = sim_space_from(0);

	while (s != NULL && !(s->type == SIM_SPACE_IPC && s->owner == c && s->key == key)) {
		s = sim_space_next(s);
	}
	return s;
}

static CUresult open_new(const struct sim_share *h, struct sim_ctx *c, uint64_t key,
			 CUdeviceptr *ret)
{
	struct sim_space s = {.type = SIM_SPACE_IPC, .owner = c, .key = key, .count = 1,
			      .dev = c->dev->ordinal};

	if (!sim_share_map(h, &s) || sim_space_add(&s) == NULL) {
		return CUDA_ERROR_MAP_FAILED;
	}
	sim_charge(c->dev, CUWEIR_SIM_IMPORTED, s.size);
	*ret = s.addr;
	return CUDA_SUCCESS;
}

/* A handle of this very process is refused, as programs report (201). GPU?: the code. */
static CUresult open_mem(CUdeviceptr *ret, const CUipcMemHandle *handle, unsigned int flags)
{
	struct sim_space *s;
	struct sim_share h;
	struct sim_ctx *c;
	uint64_t key;
	CUresult r = sim_ctx_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (ret == NULL || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	memcpy(&h, handle, sizeof(h));
	if (h.pid == (int32_t)getpid()) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	r = sim_unsafe();
	if (r != CUDA_SUCCESS) {
		return r;
	}
	c = sim_owner(c);
	key = (uint64_t)h.pid << 40 ^ h.id;
	pthread_mutex_lock(&sim_space_lock);
	s = opened(c, key);
	if (s != NULL) {
		s->count++;
		*ret = s->addr;
	} else {
		r = open_new(&h, c, key, ret);
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}

static CUresult close_mem(CUdeviceptr p)
{
	struct sim_space *s;
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	if (r == CUDA_SUCCESS) {
		r = sim_unsafe();
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&sim_space_lock);
	s = sim_space_find(p);
	if (s == NULL || s->type != SIM_SPACE_IPC || s->addr != p) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else if (--s->count == 0) {
		sim_uncharge(&sim_devices[s->dev], CUWEIR_SIM_IMPORTED, s->size);
		sim_space_unmap(s);
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}

/* A context's openings go with it. */
void sim_ipc_wipe(struct sim_ctx *c)
{
	struct sim_space *s;
	uint64_t at = 0;

	pthread_mutex_lock(&sim_space_lock);
	while ((s = sim_space_from(at)) != NULL) {
		at = s->addr + s->size;
		if (s->type == SIM_SPACE_IPC && s->owner == c) {
			sim_uncharge(&sim_devices[s->dev], CUWEIR_SIM_IMPORTED, s->size);
			sim_space_unmap(s);
		}
	}
	pthread_mutex_unlock(&sim_space_lock);
}

/* What cuMemFree and cuMemFreeAsync take beside arenas' blocks: an imported pool's memory, and
 * buffers of external memory, whose bytes count with the external memory itself. */
CUresult sim_import_free(CUdeviceptr p)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sim_space *s;

	pthread_mutex_lock(&sim_space_lock);
	s = sim_space_find(p);
	if (s != NULL && s->addr == p &&
	    (s->type == SIM_SPACE_POOL_PTR || s->type == SIM_SPACE_BUFFER)) {
		if (s->type == SIM_SPACE_POOL_PTR) {
			sim_uncharge(&sim_devices[s->dev], CUWEIR_SIM_IMPORTED, s->size);
		}
		sim_space_unmap(s);
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sim_space_lock);
	return r;
}

/* Work is done at the call, so an event of another process has happened when it can be named. */
static CUresult get_event(CUipcEventHandle *ret, CUevent h)
{
	const unsigned int need = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
	struct sim_event *e = sim_obj_get(h, SIM_EVENT);
	struct sim_share s = {.magic = 0x63774556U, .pid = (int32_t)getpid()};

	if (e == NULL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	if (ret == NULL || (e->flags & need) != need) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	s.id = e->obj.id;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &s, sizeof(s));
	return CUDA_SUCCESS;
}

static CUresult open_event(CUevent *ret, const CUipcEventHandle *handle)
{
	struct sim_share s;

	memcpy(&s, handle, sizeof(s));
	if (ret == NULL || s.magic != 0x63774556U) {
		return ret == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	}
	return sim_event_new(ret, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
}

SIM_API(cuIpcGetMemHandle, (CUipcMemHandle *handle, CUdeviceptr p), (p), (0), get_mem(handle, p))
SIM_ALLOC(cuIpcOpenMemHandle, dptr, (CUdeviceptr *dptr, CUipcMemHandle handle, unsigned int flags),
	  (flags), (*dptr), open_mem(dptr, &handle, flags))
SIM_ALLOC(cuIpcOpenMemHandle_v2, dptr,
	  (CUdeviceptr *dptr, CUipcMemHandle handle, unsigned int flags), (flags), (*dptr),
	  open_mem(dptr, &handle, flags))
SIM_API(cuIpcCloseMemHandle, (CUdeviceptr p), (p), (0), close_mem(p))
SIM_API(cuIpcGetEventHandle, (CUipcEventHandle *handle, CUevent e), (e), (0), get_event(handle, e))
SIM_API(cuIpcOpenEventHandle, (CUevent *e, CUipcEventHandle handle), (0), (*e),
	open_event(e, &handle))
