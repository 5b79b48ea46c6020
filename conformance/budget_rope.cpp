// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_rope.hpp"

#include <cmath>

namespace qkcts {
namespace {

// |x C| and how far the product of what is read may be from it.
struct Product {
  double size = 0;   // (|x| + Dx)(|C| + dC)
  double error = 0;  // Dx |C| + |x| dC + Dx dC
};

Product product(double x, double x_error, double factor, double factor_error) {
  const double c = std::fabs(factor);
  return {(x + x_error) * (c + factor_error), x_error * c + x * factor_error + x_error * factor_error};
}

}  // namespace

std::int64_t rope_pairs(const qkcts_rope& rope, std::int64_t head_dim) {
  return (rope.rotated == 0 ? head_dim : static_cast<std::int64_t>(rope.rotated)) / 2;
}

RopePair rope_pair(const qkcts_rope& rope, std::int64_t head_dim, std::int64_t pair) {
  const std::int64_t pairs = rope_pairs(rope, head_dim);
  const std::int64_t first = rope.span == QKCTS_SPAN_LAST ? head_dim - 2 * pairs : 0;
  if (rope.pairing == QKCTS_INTERLEAVED) {
    return {first + 2 * pair, first + 2 * pair + 1};
  }
  return {first + pair, first + pair + pairs};
}

void settle_errors(VectorError& vector, const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t head_dim) {
  if (rotation.layout != QKCTS_LAYOUT_DEINTERLEAVED) {
    return;
  }
  const std::vector<double> rotated = vector.error;
  const std::int64_t pairs = rope_pairs(rope, head_dim);
  const std::int64_t first = rope.span == QKCTS_SPAN_LAST ? head_dim - 2 * pairs : 0;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const RopePair pair = rope_pair(rope, head_dim, i);
    vector.error[static_cast<std::size_t>(first + i)] = rotated[static_cast<std::size_t>(pair.a)];
    vector.error[static_cast<std::size_t>(first + i + pairs)] = rotated[static_cast<std::size_t>(pair.b)];
  }
}

void rotate_errors(VectorError& vector, RopePair pair, const TableEntry& table, const BudgetArithmetic& arithmetic) {
  const auto a = static_cast<std::size_t>(pair.a);
  const auto b = static_cast<std::size_t>(pair.b);
  const double u = arithmetic.u(BudgetTerm::rope_rounding);
  // Two products and a sum may be flushed; relative to a common factor of at least 1/2 they count twice.
  const double lambda = arithmetic.lambda(BudgetTerm::rope_underflow);
  const double flush = 2 * (2 * lambda * (1 + u) + arithmetic.sum_lambda(BudgetTerm::rope_underflow));
  const auto lane = [&](std::size_t first, std::size_t second) {
    const Product c = product(vector.magnitude[first], vector.error[first], table.cos, table.cos_error);
    const Product s = product(vector.magnitude[second], vector.error[second], table.sin, table.sin_error);
    const double size = c.size + s.size;
    const double room = 1 + 64 * arithmetic.range_roundoff();
    vector.domain = vector.domain || !(size * (1 + vector.common) * room < arithmetic.largest());
    return sum_upper(c.error + s.error + joined(u, u) * size + flush, 32);
  };
  const double error_a = lane(a, b);
  const double error_b = lane(b, a);
  vector.error[a] = error_a;
  vector.error[b] = error_b;
}

}  // namespace qkcts
