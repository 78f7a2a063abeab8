/* SPDX-License-Identifier: Apache-2.0 */
/* Between pool.c and poolapi.c. */
#ifndef CUWEIR_SIM_POOL_H
#define CUWEIR_SIM_POOL_H

struct sim_pool *sim_pool_new(struct sim_device *d, const CUmemPoolProps *props);
CUresult sim_pool_destroy(struct sim_pool *p);
CUresult sim_pool_of_device(CUmemoryPool *ret, CUdevice dev, bool dflt);
CUresult sim_pool_set_device(CUdevice dev, CUmemoryPool h);
void sim_pool_forget(const struct sim_pool *p);
void sim_pool_trim(struct sim_pool *p, uint64_t keep);
#endif
