// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/case.hpp"

namespace qkcts {

// [B, Lk]: is the key visible to some query of its batch entry? What stands at the others may be anything under
// softmax.hidden_values `excluded`. The case must have the masks that its contract needs, of the right shape.
std::vector<bool> seen_keys(const Case& c);

}  // namespace qkcts
