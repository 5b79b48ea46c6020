// SPDX-License-Identifier: Apache-2.0
// The contracts that differ from a given one in a single clause: what a wrong kernel most likely computes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conformance/case.hpp"

namespace qkcts {

struct Neighbour {
  std::string name;      // field and value, "q_norm.root=outside_root"; "norm.root=..." where q and k change together
  qkcts_contract terms;  // normalised
};

// Valid contracts (no contract_fault()), each once, none equal to `terms`. Enumerations and flags take every other
// value; numbers a few that occur: epsilon 0, ten times and a tenth; a cap gone, doubled; a window one key longer,
// shorter, gone. Deterministic, in the order of the fields.
std::vector<Neighbour> neighbours(const qkcts_contract& terms);

// The same inputs, as far as the other contract uses them; nothing if it needs one that the case does not have or
// refuses a value.
std::optional<Case> case_under(const Case& c, const qkcts_contract& terms);

}  // namespace qkcts
