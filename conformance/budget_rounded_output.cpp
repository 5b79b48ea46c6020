// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_rounded_output.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/budget_alignment.hpp"

namespace qkcts {
namespace {

using enum BudgetTerm;

// S of M2 for element d.
double stored_products(std::span<const double> p, std::span<const double> errors, const ValueRows& values,
                       std::size_t d, const BudgetArithmetic& arithmetic) {
  const double s = arithmetic.smallest_aligned();
  const double least = arithmetic.least_operand();
  double stored = 0;
  for (std::size_t j = 0; j < p.size(); ++j) {
    const double* error = values.error_of(values.v[j]);
    const double v = std::fabs(values.v[j][d]) + (error != nullptr ? error[d] : 0);
    stored = std::max(stored, stored_size(unit_factor(p[j] + errors[j], arithmetic.operand_lambda(), s, least),
                                          unit_factor(v, 0, s, least)));
  }
  return stored;
}

}  // namespace

OutputError rounded_output_errors(std::span<const double> p, std::span<const double> errors, const ValueRows& values,
                                  std::span<const double> exact, double slots, double in_lane,
                                  const BudgetArithmetic& arithmetic) {
  const std::size_t length = values.length;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  OutputError result{std::vector<double>(length), std::vector<double>(length)};
  std::vector<double> moved(length), size(length), lowest(length, infinity), highest(length, -infinity);
  bool domain = false;
  double most = 0;  // of any factor, as a unit reads it
  for (std::size_t j = 0; j < p.size(); ++j) {
    const double* v = values.v[j];
    domain = domain || !std::isfinite(errors[j]);
    most = std::max(most, p[j] + errors[j]);
    for (std::size_t d = 0; d < length; ++d) {
      const double read = values.error != nullptr ? values.error[v - values.base + static_cast<std::ptrdiff_t>(d)] : 0;
      const double magnitude = std::fabs(v[d]) + read;
      moved[d] += errors[j] * magnitude + p[j] * read;
      size[d] += (p[j] + errors[j]) * magnitude;
      most = std::max(most, magnitude);
    }
  }
  for (const double* v : values.v) {
    for (std::size_t d = 0; d < length; ++d) {
      lowest[d] = std::min(lowest[d], v[d]);
      highest[d] = std::max(highest[d], v[d]);
    }
  }
  const auto n = static_cast<double>(p.size());
  const double growth = joined(arithmetic.product_growth(output_sum, n, slots, in_lane > 0 ? in_lane : n),
                               arithmetic.operand_roundoff(MatrixOperand::p));
  const double read_lambda = arithmetic.operand_lambda();
  const double smallest = arithmetic.smallest_aligned();
  const double stored = smallest * (std::max(most, smallest) + read_lambda);  // at most, M2
  const double room = 1 + growth_upper(2 * (n + slots) + 64, arithmetic.range_roundoff());
  for (std::size_t d = 0; d < length; ++d) {
    if (domain || !(size[d] * room < arithmetic.largest())) {
      result.error[d] = infinity;
      continue;
    }
    const double blur = values.blur.empty() ? 0x1p-49 * std::fabs(exact[d]) : values.blur[d];
    const bool equal = lowest[d] == highest[d];
    result.hull[d] = equal ? 0 : std::max(highest[d] - exact[d], exact[d] - lowest[d]) + blur;
    // What a product loses by underflow, and a matrix unit of a subnormal weight.
    const double largest = std::max(std::fabs(lowest[d]), std::fabs(highest[d]));
    const double flushed = 2 * n * arithmetic.lambda(output_underflow) + n * read_lambda * largest;
    const double met =
        stored > size[d] ? std::max(size[d], stored_products(p, errors, values, d, arithmetic)) : size[d];
    result.error[d] = sum_upper(moved[d] + growth * met + flushed * (1 + growth), 4 * n + 64);
  }
  return result;
}

}  // namespace qkcts
