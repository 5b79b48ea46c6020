// SPDX-License-Identifier: Apache-2.0
// Errors of the frequencies of computed angles, scaled as the contract says: docs/budgets.md, R3.
#pragma once

#include <vector>

#include <qkcts/contract.h>

#include "conformance/budget_arithmetic.hpp"

namespace qkcts {

// Size from above, and how far a computed frequency may be off; infinite where an intermediate may overflow.
struct Frequency {
  double value = 0;
  double error = 0;
};

// One per pair of a span of `rotated` lanes.
std::vector<Frequency> frequency_errors(const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t rotated,
                                        const BudgetArithmetic& arithmetic);

}  // namespace qkcts
