// SPDX-License-Identifier: Apache-2.0
// How surely a case tells two contracts apart: sep = max |z - z_m| / (Delta + Delta_m), per stage and profile.
//
// If sep > 1, no implementation that is within Delta_m of the neighbour's values is within Delta of the contract's own:
// |got - z| <= Delta and |got - z_m| <= Delta_m would give |z - z_m| <= Delta + Delta_m. So an adapter that is right
// for the wrong contract cannot pass this case.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "reference/attention.hpp"

namespace qkcts {

struct Separation {
  double value = 0;  // a lower bound; infinite where the special-value classes differ, or where both values are fixed
  std::uint32_t row = 0;
  std::int64_t column = 0;  // of the element
};

// [stage][profile]; empty where a stage does not exist in both contracts.
using SeparationTable = std::array<std::vector<Separation>, QKCTS_STAGE_COUNT>;

// The largest over all stages, of one profile.
Separation largest_separation(const SeparationTable& table, std::size_t profile);

// Evaluates its own contract once, then each neighbour's.
class Separator {
 public:
  // `c` must outlive the object. Throws what evaluate() throws.
  Separator(const Case& c, StageRows rows, std::vector<Profile> profiles);

  // `neighbour` is the same case under another contract: case_under() of conformance/neighbour.hpp.
  SeparationTable to(const Case& neighbour) const;

 private:
  struct Evaluated {
    ReferenceResult values;
    std::vector<std::array<StageBudget, QKCTS_STAGE_COUNT>> budgets;
  };
  Evaluated evaluated(const Case& c, const StageRows& rows) const;

  const Case& case_;
  StageRows rows_;
  std::vector<Profile> profiles_;
  Evaluated own_;
};

}  // namespace qkcts
