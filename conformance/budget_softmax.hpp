// SPDX-License-Identifier: Apache-2.0
// Errors of the probabilities of one row and of its log-sum-exp: docs/budgets.md, P4, L1 and L2.
#pragma once

#include <span>
#include <vector>

#include "conformance/budget_row_weights.hpp"

namespace qkcts {

// Error of the probability of every key.
void probability_errors(const RowWeights& weights, const BudgetArithmetic& arithmetic, SoftmaxNumbers& numbers,
                        std::vector<double>& errors);
inline std::vector<double> probability_errors(const RowWeights& weights, const BudgetArithmetic& arithmetic) {
  SoftmaxNumbers numbers;
  std::vector<double> errors;
  probability_errors(weights, arithmetic, numbers, errors);
  return errors;
}

// Error of the log-sum-exp, in natural units; `converts`: weights or result are in base 2 (docs/budgets.md, L2).
double lse_error(const RowWeights& weights, double lse, bool converts, const BudgetArithmetic& arithmetic);

}  // namespace qkcts
