// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_angle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkcts {

using enum BudgetTerm;

AngleBudget::AngleBudget(const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t rotated,
                         const BudgetArithmetic& arithmetic)
    : arithmetic_(arithmetic),
      factor_(rotation.attention_factor > 0 ? rotation.attention_factor : 1),
      factor_error_(arithmetic.constant_distance(angle_wave, factor_) / factor_),
      frequencies_(frequency_errors(rope, rotation, rotated, arithmetic)) {}

TableEntry AngleBudget::entry(double position, std::int64_t pair) const {
  const Frequency& frequency = frequencies_[static_cast<std::size_t>(pair)];
  const double u = arithmetic_.u(angle_frequency);
  // Positions beyond the whole numbers of the format are rounded before the product.
  const double rounded = joined(u, arithmetic_.holds_integer(position) ? 0 : u);
  const double angle = position * frequency.value;
  double turned = 0;  // a product with 0 is exact
  if (position > 0 && frequency.value > 0) {
    turned = position * frequency.error * (1 + rounded) + rounded * angle + arithmetic_.lambda(angle_frequency);
  }
  if (!(angle + turned < arithmetic_.largest())) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return {1, 1, infinity, infinity};
  }
  const CircleBound bound = circle_upper(angle, angle * 0x1p-38);

  const auto wave_error = [&](double own, double other) {
    // |cos(x + d) - cos x| <= |sin x| |d| + d^2 / 2, and never more than from one end of the range to the other.
    const double moved = std::min(other * turned + turned * turned / 2, 1 + own);
    const double reach = own + moved;
    double error = moved + arithmetic_.wave(angle_wave) * reach + arithmetic_.wave_absolute(angle_wave);
    if (factor_ != 1) {
      const double product = joined(factor_error_, arithmetic_.u(angle_wave));
      error = factor_ * (error + product * (own + error)) + arithmetic_.lambda(angle_wave);
    }
    return sum_upper(error, 32);
  };
  return {factor_ * bound.cos, factor_ * bound.sin, wave_error(bound.cos, bound.sin), wave_error(bound.sin, bound.cos)};
}

}  // namespace qkcts
