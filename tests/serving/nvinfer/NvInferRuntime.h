// SPDX-License-Identifier: Apache-2.0
//
// As much of TensorRT 10's interface as its allocators are, written from its documentation
// (rows T-01 to T-09), for a machine without TensorRT's headers. The order of the virtual
// functions is the layout that TensorRT has.
#ifndef TESTS_NVINFER_RUNTIME_H
#define TESTS_NVINFER_RUNTIME_H

#include <cstdint>
#include <cuda_runtime_api.h>

namespace nvinfer1
{

using InterfaceKind = char const *;
using AllocatorFlags = std::uint32_t;

enum class AllocatorFlag : std::int32_t { kRESIZABLE = 0 };
enum class APILanguage : std::int32_t { kCPP = 0, kPYTHON = 1 };

class InterfaceInfo
{
public:
	InterfaceKind kind;
	std::int32_t major;
	std::int32_t minor;
};

class IVersionedInterface
{
public:
	virtual APILanguage getAPILanguage() const noexcept
	{
		return APILanguage::kCPP;
	}
	virtual InterfaceInfo getInterfaceInfo() const noexcept = 0;
	virtual ~IVersionedInterface() noexcept = default;

protected:
	IVersionedInterface() = default;
	IVersionedInterface(IVersionedInterface const &) = default;
	IVersionedInterface &operator=(IVersionedInterface const &) & = default;
};

class IGpuAllocator : public IVersionedInterface
{
public:
	[[deprecated]] virtual void *allocate(std::uint64_t const size,
					      std::uint64_t const alignment,
					      AllocatorFlags const flags) noexcept = 0;
	virtual void *reallocate(void *const, std::uint64_t, std::uint64_t) noexcept
	{
		return nullptr;
	}
	[[deprecated]] virtual bool deallocate(void *const memory) noexcept = 0;
	virtual void *allocateAsync(std::uint64_t const size, std::uint64_t const alignment,
				    AllocatorFlags const flags, cudaStream_t) noexcept = 0;
	virtual bool deallocateAsync(void *const memory, cudaStream_t) noexcept = 0;
	InterfaceInfo getInterfaceInfo() const noexcept override
	{
		return { "IGpuAllocator", 1, 0 };
	}
};

class IGpuAsyncAllocator : public IGpuAllocator
{
public:
	void *allocateAsync(std::uint64_t const size, std::uint64_t const alignment,
			    AllocatorFlags const flags,
			    cudaStream_t stream) noexcept override = 0;
	bool deallocateAsync(void *const memory, cudaStream_t stream) noexcept override = 0;
	[[deprecated]] void *allocate(std::uint64_t const size, std::uint64_t const alignment,
				      AllocatorFlags const flags) noexcept override
	{
		return allocateAsync(size, alignment, flags, nullptr);
	}
	[[deprecated]] bool deallocate(void *const memory) noexcept override
	{
		return deallocateAsync(memory, nullptr);
	}
};

} // namespace nvinfer1

#endif
