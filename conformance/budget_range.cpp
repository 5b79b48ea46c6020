// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_range.hpp"

#include <algorithm>
#include <cmath>

namespace qkcts {

double Clamp::reach(double x, double x_error, double blur) {
  return (std::fabs(x) + x_error + blur) * (1 + 0x1p-50);
}

double Clamp::value(double x) const {
  return exists() ? std::clamp(x, -bound, bound) : x;
}

// min and max move no further than the argument that moves most; and where both the exact and the computed number lie
// beyond both bounds, only the bound itself is off.
double Clamp::moved(double x, double x_error, double blur) const {
  if (!exists() || !reached(x, x_error, blur)) {
    return x_error;
  }
  const double least = (std::fabs(x) - x_error - blur) * (1 - 0x1p-50);
  return least >= bound + error ? error : std::max(x_error, error);
}

Clamp clamp_terms(double bound, const BudgetArithmetic& arithmetic) {
  if (bound > arithmetic.largest()) {
    return {bound, 0};  // whatever the constant becomes, no number in range meets it
  }
  return {bound, bound > 0 ? arithmetic.constant_distance(BudgetTerm::clamp_constant, bound) : 0};
}

double ConstantFactor::moved(double x, double x_error, const BudgetArithmetic& arithmetic) const {
  if (!exists()) {
    return x_error;
  }
  const double rounded = joined(relative, arithmetic.u(BudgetTerm::norm_factor));
  const double lambda = arithmetic.lambda(BudgetTerm::norm_underflow);
  return sum_upper(value * (x_error + rounded * (std::fabs(x) + x_error)) + lambda, 16);
}

ConstantFactor factor_terms(double multiplier, const BudgetArithmetic& arithmetic) {
  ConstantFactor factor;
  if (multiplier > 0 && multiplier != 1) {
    factor.value = multiplier;
    factor.relative = arithmetic.constant_distance(BudgetTerm::norm_factor, multiplier) / multiplier;
  }
  return factor;
}

void clamp_errors(VectorError& vector, std::span<const double> before, std::span<const double> blur,
                  const Clamp& clamp) {
  if (!clamp.exists()) {
    return;
  }
  bool reached = false;
  std::vector<double> total(before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    total[i] = sum_upper(vector.total(i), 16);
    reached = reached || clamp.reached(before[i], total[i], blur[i]);
  }
  if (!reached) {
    return;
  }
  vector.common = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    vector.error[i] = clamp.moved(before[i], total[i], blur[i]);
  }
}

}  // namespace qkcts
