/* SPDX-License-Identifier: Apache-2.0 */
/* A tracker of the kind of RMM's tracking adaptor: a map of what is live behind a mutex. */
#include <cstddef>
#include <dlfcn.h>
#include <map>
#include <mutex>

namespace
{

using address = unsigned long long;

struct tracker
{
	std::mutex lock;
	std::map<address, std::size_t> live;
	std::size_t total = 0;
};

tracker &books()
{
	static tracker *made = new tracker;

	return *made;
}

} // namespace

extern "C" __attribute__((visibility("default"))) int cuMemAlloc_v2(address *ret, std::size_t bytes)
{
	static auto real =
		reinterpret_cast<int (*)(address *, std::size_t)>(dlsym(RTLD_NEXT, "cuMemAlloc_v2"));
	int result = real(ret, bytes);

	if (result == 0) {
		tracker &here = books();
		std::lock_guard<std::mutex> guard(here.lock);

		here.live.emplace(*ret, bytes);
		here.total += bytes;
	}
	return result;
}

extern "C" __attribute__((visibility("default"))) int cuMemFree_v2(address memory)
{
	static auto real = reinterpret_cast<int (*)(address)>(dlsym(RTLD_NEXT, "cuMemFree_v2"));
	{
		tracker &here = books();
		std::lock_guard<std::mutex> guard(here.lock);
		auto found = here.live.find(memory);

		if (found != here.live.end()) {
			here.total -= found->second;
			here.live.erase(found);
		}
	}
	return real(memory);
}
