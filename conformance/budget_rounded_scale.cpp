// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_rounded_scale.hpp"

#include <cmath>

namespace qkcts {

double scale_accuracy(const qkcts_contract& terms) {
  const bool transcendental =
      (terms.score.scale_form == QKCTS_SCALE_LEARNED_SCALAR && terms.logits.scale_exp_cap > 0) ||
      terms.logits.query_temperature != QKCTS_QUERY_TEMPERATURE_NONE;
  return transcendental ? 0x1p-41 : 0x1p-49;
}

void scale_and_round(VectorError& q, const ScoreScale& scale, double inexact, const RoundingPoint& point,
                     const BudgetArithmetic& arithmetic) {
  q.domain = q.domain || scale.domain;
  // At most three constants, one product each; what one loses by underflow may meet the others.
  const double lambda = 4 * arithmetic.lambda(BudgetTerm::score_underflow) * std::max(1.0, scale.partial);
  const double room = 1 + growth_upper(16, arithmetic.range_roundoff()) + scale.relative;
  q.held.assign(q.magnitude.size(), point.format());
  for (std::size_t i = 0; i < q.magnitude.size() && !q.domain; ++i) {
    const double moved = sum_upper(q.total(i), 16);
    const double size = q.magnitude[i] + moved;
    const double x = q.magnitude[i] * scale.tau;
    const double error = sum_upper(scale.tau * (moved + scale.relative * size) + lambda * (1 + scale.relative), 16);
    const double blur = x * inexact;
    q.error[i] = point.moved(x, blur, error);
    q.magnitude[i] = point.exact({x - blur, x + blur}).size();
    const double reach = size * std::max({1.0, scale.tau, scale.partial}) * room;
    q.domain = !std::isfinite(q.error[i]) || !(reach < arithmetic.largest());
  }
  q.common = 0;
}

}  // namespace qkcts
