/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuweir/pytorch.h - the two entry points of a PyTorch pluggable allocator, exported by
 * libcuweir-client.so. PyTorch finds them by name:
 *
 *	allocator = torch.cuda.memory.CUDAPluggableAllocator(
 *		"libcuweir-client.so", "cuweir_torch_alloc", "cuweir_torch_free")
 *	torch.cuda.memory.change_current_allocator(allocator)
 *
 * Any thread. Source: PyTorch's documentation of CUDAPluggableAllocator.
 */
#ifndef CUWEIR_PYTORCH_H
#define CUWEIR_PYTORCH_H

#include <cuweir/cuweir.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * `size` bytes in the order of `stream`, by cuweir_allocate_async. PyTorch has made `device`
 * current. NULL for size 0. Where the memory cannot be had it throws std::bad_alloc, as PyTorch
 * wants of such a function (NULL would be an address to it); NULL in a process without libstdc++.
 */
CUWEIR_EXPORT void *cuweir_torch_alloc(size_t size, int device, void *stream);

/*
 * Gives `memory` back in the order of `stream`; NULL and unknown memory are ignored. The default
 * stream is that of the memory's device: PyTorch does not make it current for a free.
 */
CUWEIR_EXPORT void cuweir_torch_free(void *memory, size_t size, int device, void *stream);

#ifdef __cplusplus
}
#endif

#endif
