// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_rounded_rope.hpp"

#include <algorithm>
#include <cmath>

namespace qkcts {
namespace {

// A product behind its point: where its exact magnitude lies, and its error.
struct Product {
  Interval exact;
  double error = 0;

  Interval computed() const { return {std::max(0.0, exact.low - error), exact.high + error}; }
};

}  // namespace

// Rounding is symmetric about 0, so magnitudes are all that is needed.
void rotate_rounded_errors(VectorError& vector, RopePair pair, const TableEntry& table, WaveKnowledge knowledge,
                           const RoundingPoint& point, const BudgetArithmetic& arithmetic) {
  const double u = arithmetic.u(BudgetTerm::rope_rounding);
  const double lambda = arithmetic.lambda(BudgetTerm::rope_underflow);
  const double room = 1 + 64 * arithmetic.range_roundoff();
  const auto product = [&](std::int64_t lane, double factor, double factor_error) {
    const double x = vector.magnitude[static_cast<std::size_t>(lane)];
    const double x_error = vector.error[static_cast<std::size_t>(lane)];
    const double c = std::fabs(factor);
    const double size = (x + x_error) * (c + factor_error);
    vector.domain = vector.domain || !(size * room < arithmetic.largest());
    double error = sum_upper(x_error * c + x * factor_error + x_error * factor_error + u * size + lambda, 16);
    const double blur = x * c * 0x1p-49;  // x is a number of an earlier point, or known to 2^-50
    if (knowledge == WaveKnowledge::size) {
      return Product{{0, point.largest_behind(x * c + blur)}, point.moved_anywhere(x * c + blur, error)};
    }
    if (x_error == 0 && factor_error == 0 && arithmetic.multiplies_exactly(x, c)) {
      error = 0;
    }
    return Product{point.exact({x * c - blur, x * c + blur}), point.moved(x * c, blur, error)};
  };
  const auto sum = [&](const Product& c, const Product& s) {
    const double size = c.computed().high + s.computed().high;
    vector.domain = vector.domain || !(size * room < arithmetic.largest());
    const double rounded = point.adds_exactly(c.computed(), s.computed()) ? 0 : u * size;
    return sum_upper(c.error + s.error + rounded + arithmetic.sum_lambda(BudgetTerm::rope_underflow), 32);
  };
  const Product ac = product(pair.a, table.cos, table.cos_error);
  const Product bs = product(pair.b, table.sin, table.sin_error);
  const Product bc = product(pair.b, table.cos, table.cos_error);
  const Product as = product(pair.a, table.sin, table.sin_error);
  vector.error[static_cast<std::size_t>(pair.a)] = sum(ac, bs);
  vector.error[static_cast<std::size_t>(pair.b)] = sum(bc, as);
}

}  // namespace qkcts
