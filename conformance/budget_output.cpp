// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_output.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "conformance/budget_extremal.hpp"
#include "conformance/budget_sums.hpp"

namespace qkcts {
namespace {

using enum BudgetTerm;

// Sums over the visible keys, one per output element, that depend on their weights: those of ValueSums, and
// sum p e^t Dv.
struct WeightedSums {
  std::vector<double> moved, spread, weighted, read;
};

WeightedSums weighted_sums(const RowWeights& w, const ValueRows& values, std::span<const double> exact) {
  const std::vector<double> zeros(values.length);
  WeightedSums sums{zeros, zeros, zeros, zeros};
  add_value_terms({values.v.data(), w.moved.data(), w.grown.data(), values.v.size(), values.length, exact.data()},
                  {sums.moved.data(), sums.spread.data(), sums.weighted.data()});
  for (std::size_t j = 0; values.error != nullptr && j < values.v.size(); ++j) {
    const double* error = values.error_of(values.v[j]);
    for (std::size_t d = 0; d < values.length; ++d) {
      sums.read[d] += w.grown[j] * error[d];
    }
  }
  return sums;
}

ValueExtent extent_of(const ValueRows& values) {
  ValueExtent extent(values.length);
  for (const double* row : values.v) {
    extent.add(row, values.error_of(row));
  }
  return extent;
}

}  // namespace

OutputError output_errors(const RowWeights& w, const ValueRows& values, std::span<const double> exact, double slots,
                          const BudgetArithmetic& arithmetic) {
  OutputError result{std::vector<double>(values.length), std::vector<double>(values.length),
                     std::vector<bool>(values.length)};
  const WeightedSums sums = weighted_sums(w, values, exact);
  std::optional<ValueExtent> own_extent;
  if (values.extent == nullptr) {
    own_extent = extent_of(values);
  }
  const ValueExtent& extent = values.extent != nullptr ? *values.extent : *own_extent;
  const double n = w.n;
  double moved_weight = 0;
  double grown_weight = 0;
  for (std::size_t j = 0; j < w.moved.size(); ++j) {
    moved_weight += w.moved[j];
    grown_weight += w.grown[j];
  }
  const double u = arithmetic.u(output_sum);
  const double u_p = arithmetic.weight_roundoff(probability_storage);
  // Sums of blocks or parts that a unit has formed are added one by one, which a sum in any order has counted.
  const double joins = arithmetic.units_only() ? growth_upper(w.rescales + 1, u) : 0;
  const double theta =
      joined(joins, arithmetic.product_growth(output_sum, n + 1, slots + matrix_block, w.in_lane), w.rescale, u);
  const double quotient = arithmetic.quotient(output_quotient);
  const double merge = arithmetic.u(split_merge) > 0 ? joined(quotient, growth_upper(3, arithmetic.u(split_merge))) : 0;
  const double common = expm1_upper(w.merged);
  const double inverse = 1 + w.sum_inverse;
  const double stored_inverse = 1 + w.stored_inverse;
  const double lambda = arithmetic.lambda(output_underflow);
  const double whole = arithmetic.second_order();
  std::vector<double> blurs(values.blur.begin(), values.blur.end());  // accuracy of the exact output
  for (std::size_t d = 0; values.blur.empty() && d < values.length; ++d) {
    blurs.push_back(0x1p-49 * std::fabs(exact[d]));
  }
  for (std::size_t d = 0; values.inexact > 0 && d < values.length; ++d) {
    // A distance |v - o| is as little known as the larger of both.
    blurs[d] += values.inexact * std::max(std::fabs(extent.lowest(d)), std::fabs(extent.highest(d)));
  }
  const double weight_room = std::max(1.01, arithmetic.range_room(w.rescales + 8));
  const double sum_room = 1 + growth_upper(4 * (n + slots) + 64, arithmetic.range_roundoff());
  std::vector<double> extremal;
  if (extremal_form_pays(w)) {
    extremal = extremal_moves(w, values, exact, blurs);
  }

  for (std::size_t d = 0; d < values.length; ++d) {
    const double o = std::fabs(exact[d]);
    const double total = sum_upper(extent.total(d), n);
    if (!(total * w.reach * weight_room * sum_room < arithmetic.largest())) {
      result.domain[d] = true;
      continue;
    }
    const double blur = blurs[d];
    const bool equal = extent.lowest(d) == extent.highest(d);
    const double radius = std::max(extent.highest(d) - exact[d], exact[d] - extent.lowest(d)) + blur;
    result.hull[d] = equal ? 0 : radius;
    // First: weights e^(+-t) off. Their mean stays in the hull of the values.
    const double by_weights = (sums.moved[d] + moved_weight * blur) / w.shrunk_sum;
    const double spread = std::min(radius, (sums.spread[d] + grown_weight * blur) / w.shrunk_sum);
    double first = w.unbounded ? radius : std::min(by_weights, radius);
    double fresh = w.unbounded ? radius : std::min(by_weights * w.fresh_share, radius);
    if (!extremal.empty()) {
      first = std::min(first, extremal[d]);
      fresh = std::min(fresh, extremal[d]);
    }
    // Weights that are formed once more have a mean of their own, and their sum is not quite the row sum.
    fresh += (o + blur + fresh) * w.afresh;
    // Magnitudes that the roundings of the sum refer to, in units of the row sum.
    const bool made = values.inexact > 0;
    const double largest = std::max(std::fabs(extent.lowest(d)), std::fabs(extent.highest(d)));
    const double weighted =
        w.unbounded ? largest + (made ? extent.worst_read(d) : 0) : (sums.weighted[d] + sums.read[d]) / w.shrunk_sum;
    const double read = w.unbounded ? (made ? extent.worst_read(d) : weighted) : sums.read[d] / w.shrunk_sum;
    // Stored weights: against |v| if the row sum is that of the unstored ones, else against |v - o|.
    const double stored = std::max(u_p * weighted, u_p * stored_inverse * ((w.unbounded ? radius : spread) + first));
    const double second = std::max(first + stored, fresh + u_p * weighted) + read * stored_inverse;
    const double rounded = weighted * (1 + u_p) * stored_inverse;
    const double third = second + theta * rounded * inverse + w.sum_inverse * (o + second);
    const double divided = std::max(rounded * (1 + theta) * inverse, o + third);
    // Subnormal weights: against |v|, or where they are summed as stored, against |v - o|.
    const double apart = std::max(total, n * (radius + first));
    const double flushed = lambda * (3 * n + w.rescales + 4) / w.least_sum + w.weight_flush * total +
                           w.store_flush * std::min(apart, total + n * (o + first));
    double error = third + quotient * divided + flushed * inverse * stored_inverse;
    // Parts are divided before they are added, so theirs are the roundings of the sum as well.
    const double parts = whole > 1 ? divided * (1 + quotient) : rounded;
    error += (o + error) * common + merge * parts;
    result.error[d] = sum_upper(error * whole, 4 * n + 128);
  }
  return result;
}

}  // namespace qkcts
