// SPDX-License-Identifier: Apache-2.0
//
// cuweir/tensorrt.hpp - TensorRT's IGpuAsyncAllocator on top of cuweir.h, and the other way
// round: a policy that is served by an IGpuAsyncAllocator. Header only, C++17; TensorRT 10 and 11,
// whose headers come before this one, or are found as <NvInferRuntime.h>. (TensorRT 8 and 9
// have another class layout and no asynchronous form.)
//
//	cuweir::tensorrt::allocator allocator; // outlives what it is given to
//	runtime->setGpuAllocator(&allocator);
//
// No exception leaves these functions. Memory goes back to an allocator object of the same
// class. With CUDA_API_PER_THREAD_DEFAULT_STREAM a NULL stream is the per-thread one.
#ifndef CUWEIR_TENSORRT_HPP
#define CUWEIR_TENSORRT_HPP

#ifndef NV_INFER_RUNTIME_BASE_H
#include <NvInferRuntime.h>
#endif

#include <cuweir/cuweir.h>

#include <cstdint>

namespace cuweir
{
namespace tensorrt
{

inline void *stream_of(cudaStream_t stream) noexcept
{
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
	return stream != nullptr ? static_cast<void *>(stream) : reinterpret_cast<void *>(2);
#else
	return static_cast<void *>(stream);
#endif
}

// What TensorRT asks for goes through cuweir's policies, budget, retries and thresholds.
class allocator : public nvinfer1::IGpuAsyncAllocator
{
public:
	// nullptr for size 0, for an alignment above 256, and where it cannot be had.
	void *allocateAsync(std::uint64_t const size, std::uint64_t const alignment,
			    nvinfer1::AllocatorFlags const flags,
			    cudaStream_t stream) noexcept override
	{
		return cuweir_allocate_async(size, alignment, flags, stream_of(stream));
	}

	// True for nullptr; false for what did not come from here.
	bool deallocateAsync(void *const memory, cudaStream_t stream) noexcept override
	{
		return cuweir_deallocate_async(memory, stream_of(stream));
	}

	// nullptr: not done, and the old memory is as it was.
	void *reallocate(void *const base, std::uint64_t alignment,
			 std::uint64_t new_size) noexcept override
	{
		return cuweir_reallocate(base, alignment, new_size);
	}

	void *allocate(std::uint64_t const size, std::uint64_t const alignment,
		       nvinfer1::AllocatorFlags const flags) noexcept override
	{
		return cuweir_allocate(size, alignment, flags);
	}

	bool deallocate(void *const memory) noexcept override
	{
		return cuweir_deallocate(memory);
	}
};

// The `allocator` of a policy (see policy.h) whose state is an IGpuAsyncAllocator:
//
//	static int open(const struct cuweir_host *host, const char *, void **ret_state)
//	{
//		*ret_state = cuweir::tensorrt::as_state(new my_allocator(host));
//		return CUWEIR_SUCCESS;
//	}
//	... .open = open, .allocator = &cuweir::tensorrt::serving::table ...
//
// It takes its memory from host->next, not from CUDA's functions, so that it counts once.
inline void *as_state(nvinfer1::IGpuAsyncAllocator *allocator) noexcept
{
	return allocator;
}

struct serving {
	static nvinfer1::IGpuAsyncAllocator &of(void *state) noexcept
	{
		return *static_cast<nvinfer1::IGpuAsyncAllocator *>(state);
	}

	static void *allocate_async(void *state, std::uint64_t size, std::uint64_t alignment,
				    std::uint32_t flags, void *stream) noexcept
	{
		try {
			return of(state).allocateAsync(size, alignment, flags,
						       static_cast<cudaStream_t>(stream));
		} catch (...) {
			return nullptr;
		}
	}

	static bool deallocate_async(void *state, void *memory, void *stream) noexcept
	{
		try {
			return of(state).deallocateAsync(memory,
							 static_cast<cudaStream_t>(stream));
		} catch (...) {
			return false;
		}
	}

	static void *reallocate(void *state, void *memory, std::uint64_t alignment,
				std::uint64_t new_size) noexcept
	{
		try {
			return of(state).reallocate(memory, alignment, new_size);
		} catch (...) {
			return nullptr;
		}
	}

	// The synchronous forms are left to cuweir, which synchronizes these (D-20).
	static constexpr cuweir_allocator table = {
		sizeof(cuweir_allocator), allocate_async, deallocate_async, reallocate,
		nullptr, nullptr, nullptr, nullptr, {},
	};
};

} // namespace tensorrt
} // namespace cuweir

#endif
