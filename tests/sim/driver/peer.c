/* SPDX-License-Identifier: Apache-2.0 */
/* Peer access. Every device can reach every other; nothing here depends on it being enabled. */
#include "internal.h"

static CUresult can_access(int *ret, CUdevice dev, CUdevice peer)
{
	struct sim_device *d;
	CUresult r = sim_device_get(dev, &d);

	if (r == CUDA_SUCCESS) {
		r = sim_device_get(peer, &d);
	}
	if (r == CUDA_SUCCESS && ret == NULL) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*ret = dev != peer;
	}
	return r;
}

static CUresult p2p_attribute(int *ret, CUdevice_P2PAttribute attr, CUdevice src, CUdevice dst)
{
	int can = 0;
	CUresult r = can_access(ret != NULL ? &can : NULL, src, dst);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (src == dst) {
		return CUDA_ERROR_INVALID_DEVICE;
	}
	switch (attr) {
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
		*ret = 0;
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
		*ret = 1;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult peers_of(CUcontext peer, struct sim_ctx **ret, uint32_t *ret_bit)
{
	struct sim_ctx *p;
	CUresult r = sim_ctx_current(ret);

	if (r == CUDA_SUCCESS) {
		r = peer == NULL ? CUDA_ERROR_INVALID_CONTEXT : sim_ctx_arg(peer, &p);
	}
	if (r == CUDA_SUCCESS) {
		*ret_bit = 1U << p->dev->ordinal;
		if (p->dev == (*ret)->dev) {
			r = CUDA_ERROR_INVALID_DEVICE;
		}
	}
	return r;
}

static CUresult enable(CUcontext peer, unsigned int flags)
{
	struct sim_ctx *c;
	uint32_t bit;
	CUresult r = peers_of(peer, &c, &bit);

	if (r == CUDA_SUCCESS && flags != 0) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS && (atomic_fetch_or(&c->peers, bit) & bit) != 0) {
		r = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	}
	return r;
}

static CUresult disable(CUcontext peer)
{
	struct sim_ctx *c;
	uint32_t bit;
	CUresult r = peers_of(peer, &c, &bit);

	if (r == CUDA_SUCCESS && (atomic_fetch_and(&c->peers, ~bit) & bit) == 0) {
		r = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	}
	return r;
}

SIM_API(cuDeviceCanAccessPeer, (int *can, CUdevice dev, CUdevice peer), (dev, peer), (*can),
	can_access(can, dev, peer))
SIM_API(cuDeviceGetP2PAttribute,
	(int *value, CUdevice_P2PAttribute attr, CUdevice src, CUdevice dst), (attr, src, dst),
	(*value), p2p_attribute(value, attr, src, dst))
SIM_API(cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags), (peer, flags), (0),
	enable(peer, flags))
SIM_API(cuCtxDisablePeerAccess, (CUcontext peer), (peer), (0), disable(peer))
