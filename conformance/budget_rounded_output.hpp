// SPDX-License-Identifier: Apache-2.0
// Error of the product of rounded probabilities with v (QK-ROUND, point `probs`): docs/budgets.md, Q3.
#pragma once

#include <span>

#include "conformance/budget_output.hpp"

namespace qkcts {

// `p` are the exact probabilities behind their point, each off by at most `errors`, in the order of values.v (a sink at
// its end has no part in the sum); `exact` are the sums of p v. Their error is that of a sum, not that of a mean.
OutputError rounded_output_errors(std::span<const double> p, std::span<const double> errors, const ValueRows& values,
                                  std::span<const double> exact, double slots, double in_lane,
                                  const BudgetArithmetic& arithmetic);

}  // namespace qkcts
