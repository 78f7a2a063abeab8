/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy in C++17, with the objects that such a one has: a constructor that runs at load, a
 * heap, exceptions that stay inside. It says "cxx_policy alloc TOTAL" and "cxx_policy dealloc
 * TOTAL" when the total passes one of the sizes in its arguments ("1024+4096").
 */
#include <cuweir/policy.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

const std::string prefix = "cxx_policy ";

struct Policy {
	const cuweir_host *host;
	std::vector<uint64_t> thresholds;

	void tell(const char *what, uint64_t total) const
	{
		host->log(host, (prefix + what + ' ' + std::to_string(total)).c_str());
	}
};

void add_thresholds(Policy &policy, const std::string &text)
{
	for (std::size_t at = 0; at < text.size();) {
		std::size_t length = 0;
		policy.thresholds.push_back(std::stoull(text.substr(at), &length));
		at += length;
		if (at < text.size() && text[at++] != '+') {
			throw std::invalid_argument(text);
		}
	}
}

} // namespace

extern "C" {

static int open_policy(const cuweir_host *host, const char *arguments, void **ret_state)
{
	try {
		auto policy = std::make_unique<Policy>();
		policy->host = host;
		add_thresholds(*policy, arguments);
		*ret_state = policy.release();
		return CUWEIR_SUCCESS;
	} catch (const std::exception &) {
		return host->refuse(host, "want sizes joined by '+'");
	}
}

static void close_policy(void *state)
{
	/* Not deleted: a callback in another thread may still be running. */
	static_cast<Policy *>(state)->tell("close", 0);
}

static const uint64_t *get_thresholds(void *state, size_t *ret_count)
{
	auto *policy = static_cast<Policy *>(state);
	*ret_count = policy->thresholds.size();
	return policy->thresholds.data();
}

static int on_alloc_threshold(void *state, uint64_t total, const cuweir_event *)
{
	static_cast<Policy *>(state)->tell("alloc", total);
	return CUWEIR_SUCCESS;
}

static int on_dealloc_threshold(void *state, uint64_t total, const cuweir_event *)
{
	static_cast<Policy *>(state)->tell("dealloc", total);
	return CUWEIR_SUCCESS;
}

} // extern "C"

static constexpr cuweir_policy make_policy()
{
	cuweir_policy policy{};
	policy.struct_size = sizeof(policy);
	policy.version = CUWEIR_POLICY_VERSION;
	policy.name = "cxx_policy";
	policy.open = open_policy;
	policy.close = close_policy;
	policy.get_alloc_thresholds = get_thresholds;
	policy.get_dealloc_thresholds = get_thresholds;
	policy.on_alloc_threshold = on_alloc_threshold;
	policy.on_dealloc_threshold = on_dealloc_threshold;
	return policy;
}

const cuweir_policy cuweir_policy_entry = make_policy();
