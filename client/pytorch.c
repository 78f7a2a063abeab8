/* SPDX-License-Identifier: Apache-2.0 */
#include <cuweir/pytorch.h>

CUWEIR_EXPORT void *cuweir_torch_alloc(size_t size, int device, void *stream)
{
	(void)device;
	return cuweir_allocate_async(size, 0, 0, stream);
}

CUWEIR_EXPORT void cuweir_torch_free(void *memory, size_t size, int device, void *stream)
{
	(void)size, (void)device;
	(void)cuweir_deallocate_async(memory, stream);
}
