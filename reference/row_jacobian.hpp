// SPDX-License-Identifier: Apache-2.0
// How strongly a row of weights answers to its scores: max_j p_j (1 - p_j), the largest diagonal entry of the Jacobian
// diag(p) - p p^T of the softmax. 1/4 where two keys share all weight, towards 0 where one key takes everything.
#pragma once

#include <vector>

#include "reference/attention.hpp"

namespace qkcts {

// It is p_max (1 - p_max). f(p) = p (1 - p) rises up to p = 1/2 and f(p) = f(1 - p). If p_max <= 1/2, every p_j is on
// the rising part, so f(p_j) <= f(p_max). If p_max > 1/2, every other p_j <= 1 - p_max < 1/2, the rest of the sum, so
// f(p_j) <= f(1 - p_max) = f(p_max). (Where the weights do not sum to 1, under a sink, the sink's weight counts too, as
// it does in p_max.) |f'| = |1 - 2p| <= 1 on [0, 1]: p_max is right to 1e-6, and so is this, up to one rounding of 1 -
// p and one of the product, 2^-53 together. NaN for a row without visible keys.
inline std::vector<double> row_jacobians(const RowStatistics& rows) {
  std::vector<double> values;
  values.reserve(rows.p_max.size());
  for (const double p : rows.p_max) values.push_back(p * (1 - p));
  return values;
}

}  // namespace qkcts
