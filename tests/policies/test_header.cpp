/* SPDX-License-Identifier: Apache-2.0 */
/* policy.h alone, as a policy in C++ sees it: the same layout, and C linkage of the entry. */
#include <cuweir/policy.h>

#include <type_traits>

#include "header_abi.h"

static_assert(std::is_standard_layout<cuweir_policy>::value, "cuweir_policy");
static_assert(std::is_trivially_copyable<cuweir_event>::value, "cuweir_event");

static constexpr cuweir_policy make_policy()
{
	cuweir_policy policy{};
	policy.struct_size = sizeof(policy);
	policy.version = CUWEIR_POLICY_VERSION;
	policy.name = "nothing";
	return policy;
}

const cuweir_policy cuweir_policy_entry = make_policy();
