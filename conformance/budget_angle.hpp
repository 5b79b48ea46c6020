// SPDX-License-Identifier: Apache-2.0
// Errors of cosine and sine of angles that the runtime computes: docs/budgets.md, R3 and R4.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/budget_frequency.hpp"
#include "conformance/budget_rope.hpp"

namespace qkcts {

class AngleBudget {
 public:
  AngleBudget(const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t rotated,
              const BudgetArithmetic& arithmetic);

  // Magnitudes from above and errors of cosine and sine of position * frequency, their common factor included.
  TableEntry entry(double position, std::int64_t pair) const;

 private:
  const BudgetArithmetic& arithmetic_;
  double factor_;        // of cosine and sine
  double factor_error_;  // its relative error
  std::vector<Frequency> frequencies_;
};

}  // namespace qkcts
