// SPDX-License-Identifier: Apache-2.0
// Outcomes of the vectors of q, k and v after special values, stage by stage (QK-SPECIAL).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "conformance/case.hpp"
#include "conformance/outcome.hpp"

namespace qkcts {

// All tensors are [B, heads, length, lanes] of the side, or [B, length, E] of what is projected.
struct SideOutcomes {
  std::vector<Outcomes> projected, normed, roped;  // empty where the stage does not exist
  std::vector<Outcomes> last;                      // what the scores, or the output, are made of
};

SideOutcomes query_outcomes(const Case& c);
SideOutcomes key_outcomes(const Case& c);
SideOutcomes value_outcomes(const Case& c);

// Of an input as it stands. A number may be flushed to 0 when it is read, and keeps its sign otherwise.
Outcomes input_outcomes(double value);
// What a rounding point makes of them.
Outcomes at_point(const qkcts_contract& terms, std::uint32_t format, Outcomes outcomes);

}  // namespace qkcts
