// SPDX-License-Identifier: Apache-2.0
//
// cuweir/rmm.hpp - a memory resource for RAPIDS RMM 26 (cuda::mr::resource) on top of
// cuweir.h. Header only, C++20.
//
//	cuweir::rmm_resource resource;
//	rmm::device_buffer buffer(1 << 20, stream, resource);
//
// Throws rmm::out_of_memory where memory cannot be had, rmm::bad_alloc for an alignment above
// 256. Frees never throw. All objects are equal: what one gave, another takes back.
#ifndef CUWEIR_RMM_HPP
#define CUWEIR_RMM_HPP

#include <cuweir/cuweir.h>

#include <rmm/aligned.hpp>
#include <rmm/error.hpp>

#include <cuda/memory_resource>
#include <cuda/stream>

#include <cstddef>

namespace cuweir
{

class rmm_resource final
{
public:
	// nullptr for 0 bytes.
	[[nodiscard]] void *allocate(cuda::stream_ref stream, std::size_t bytes,
				     std::size_t alignment = rmm::CUDA_ALLOCATION_ALIGNMENT)
	{
		return check(bytes, alignment,
			     cuweir_allocate_async(bytes, alignment, 0, stream.get()));
	}

	void deallocate(cuda::stream_ref stream, void *memory, std::size_t,
			std::size_t = rmm::CUDA_ALLOCATION_ALIGNMENT) noexcept
	{
		(void)cuweir_deallocate_async(memory, stream.get());
	}

	[[nodiscard]] void *allocate_sync(std::size_t bytes,
					  std::size_t alignment = rmm::CUDA_ALLOCATION_ALIGNMENT)
	{
		return check(bytes, alignment, cuweir_allocate(bytes, alignment, 0));
	}

	void deallocate_sync(void *memory, std::size_t,
			     std::size_t = rmm::CUDA_ALLOCATION_ALIGNMENT) noexcept
	{
		(void)cuweir_deallocate(memory);
	}

	[[nodiscard]] bool operator==(rmm_resource const &) const noexcept
	{
		return true;
	}

	[[nodiscard]] bool operator!=(rmm_resource const &) const noexcept
	{
		return false;
	}

	friend constexpr void get_property(rmm_resource const &,
					   cuda::mr::device_accessible) noexcept
	{
	}

private:
	static void *check(std::size_t bytes, std::size_t alignment, void *memory)
	{
		if (memory != nullptr || bytes == 0) {
			return memory;
		}
		if (alignment > rmm::CUDA_ALLOCATION_ALIGNMENT) {
			throw rmm::bad_alloc("cuweir: alignment above 256");
		}
		throw rmm::out_of_memory("cuweir: no memory");
	}
};

static_assert(cuda::mr::resource_with<rmm_resource, cuda::mr::device_accessible>);

} // namespace cuweir

#endif
