// SPDX-License-Identifier: Apache-2.0
// Errors of scores whose product is rounded before the scale comes to it (QK-ROUND, `product`): docs/budgets.md, Q1.
#pragma once

#include <cstdint>
#include <span>

#include "conformance/budget_rounding.hpp"
#include "conformance/budget_score.hpp"

namespace qkcts {

// As score_errors(), of scores first <= key < last; `products` are the exact <q,k> of the row, before their point.
void rounded_product_errors(const VectorError& q, const KeyPanel& keys, const ScoreScale& scale,
                            std::span<const double> products, const RoundingPoint& point, std::int64_t first,
                            std::int64_t last, const BudgetArithmetic& arithmetic, std::span<double> errors);

}  // namespace qkcts
