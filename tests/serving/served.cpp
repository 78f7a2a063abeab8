// SPDX-License-Identifier: Apache-2.0
// A policy that is served by a user's IGpuAsyncAllocator: whole multiples of 4 KiB. One size it
// has a C++ accident with.
#include <cuweir/tensorrt.hpp>

#include <stdexcept>

namespace
{

class pages : public nvinfer1::IGpuAsyncAllocator
{
public:
	explicit pages(const cuweir_host *host) : host_(host)
	{
	}

	void *allocateAsync(std::uint64_t const size, std::uint64_t const alignment,
			    nvinfer1::AllocatorFlags const flags,
			    cudaStream_t stream) noexcept override
	{
		try {
			if (size == 666) {
				throw std::runtime_error("no such size");
			}
		} catch (const std::exception &) {
			return nullptr;
		}
		return host_->next->allocate_async(host_->next_state,
						   (size + 4095) & ~std::uint64_t(4095),
						   alignment, flags, stream);
	}

	bool deallocateAsync(void *const memory, cudaStream_t stream) noexcept override
	{
		return host_->next->deallocate_async(host_->next_state, memory, stream);
	}

private:
	const cuweir_host *host_;
};

int open_pages(const cuweir_host *host, const char *, void **ret_state)
{
	*ret_state = cuweir::tensorrt::as_state(new pages(host));
	return CUWEIR_SUCCESS;
}

cuweir_policy make()
{
	cuweir_policy policy = {};

	policy.struct_size = sizeof(policy);
	policy.version = CUWEIR_POLICY_VERSION;
	policy.name = "pages";
	policy.open = open_pages;
	policy.allocator = &cuweir::tensorrt::serving::table;
	return policy;
}

} // namespace

extern "C" const cuweir_policy cuweir_policy_entry = make();
