// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_rounded_product.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkcts {

// Nothing of the scale can be folded into an element across the point: what comes behind it is at most four constants
// with their products, which multiply the rounded number.
void rounded_product_errors(const VectorError& q, const KeyPanel& keys, const ScoreScale& scale,
                            std::span<const double> products, const RoundingPoint& point, std::int64_t first,
                            std::int64_t last, const BudgetArithmetic& arithmetic, std::span<double> errors) {
  score_errors(q, keys, ScoreScale{}, products, first, last, arithmetic, errors);
  const double most = std::max({1.0, scale.tau, scale.partial});
  const double lambda =
      4 * arithmetic.lambda(BudgetTerm::score_underflow) * std::max(1.0, scale.partial) * (1 + scale.relative);
  const double room = 1 + growth_upper(16, arithmetic.range_roundoff()) + scale.relative;
  for (std::int64_t key = first; key < last; ++key) {
    const auto i = static_cast<std::size_t>(key);
    if (!std::isfinite(errors[i])) {  // also of a key that holds nothing
      errors[i] = std::numeric_limits<double>::infinity();
      continue;
    }
    const double blur = std::fabs(products[i]) * 0x1p-50;
    const double moved = point.moved(products[i], blur, errors[i]);
    const double size = point.exact({products[i] - blur, products[i] + blur}).size() + moved;
    const bool in_range = !scale.domain && size * most * arithmetic.base_two_room() * room < arithmetic.largest();
    errors[i] = in_range ? sum_upper(scale.tau * (moved + scale.relative * size) + lambda, 16)
                         : std::numeric_limits<double>::infinity();
  }
}

}  // namespace qkcts
