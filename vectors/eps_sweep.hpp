// SPDX-License-Identifier: Apache-2.0
// Contracts that differ from one of a name in what is added to a norm, and where.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract.hpp"

namespace qkcts {

// "0" or "1e-12" is that value; "1e-12..1e-3" are A, 10 A, 100 A, ... up to B. Throws InputError.
std::vector<double> eps_values(std::string_view text);
// "inside_root", ...; "all" stands for the four of them. Throws InputError.
std::vector<qkcts_root> eps_placements(std::string_view text);

// The contract with this epsilon wherever q or k has a norm, under a name that says so: qwen3_rmsnorm_eps_1em12.
Contract with_epsilon(const Contract& contract, double eps);
// Likewise with the epsilon at this place: qwen3_rmsnorm_max_root. It keeps its value.
Contract with_placement(const Contract& contract, qkcts_root root);

}  // namespace qkcts
