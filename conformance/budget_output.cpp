// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_output.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "conformance/budget_alignment.hpp"
#include "conformance/budget_extremal.hpp"
#include "conformance/budget_sums.hpp"
#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

using enum BudgetTerm;

// Where weights are not rounded once more (u_p = 0), the spread of the values is multiplied by 0: what comes of it is 0
// or NaN, whatever the spread, and std::max() of `stored` keeps its first argument before either. So it is left out.
void set_sums(const RowWeights& w, const ValueRows& values, std::span<const double> exact, double u_p,
              OutputSums& sums) {
  for (std::vector<double>* sum : {&sums.moved, &sums.spread, &sums.weighted}) {
    sum->resize(values.length);
  }
  sum_value_terms({values.v.data(), w.moved.data(), w.grown.data(), values.v.size(), values.length, exact.data()},
                  {sums.moved.data(), u_p > 0 ? sums.spread.data() : nullptr, sums.weighted.data()});
  sums.read.assign(values.error != nullptr ? values.length : 0, 0.0);
  for (std::size_t j = 0; values.error != nullptr && j < values.v.size(); ++j) {
    const double* error = values.error_of(values.v[j]);
    for (std::size_t d = 0; d < values.length; ++d) {
      sums.read[d] += w.grown[j] * error[d];
    }
  }
}

// How far each exact output may be from the one that is given.
void set_blurs(const ValueRows& values, std::span<const double> exact, const ValueExtent& extent,
               std::vector<double>& blurs) {
  blurs.resize(values.length);
  for (std::size_t d = 0; d < values.length; ++d) {
    blurs[d] = values.blur.empty() ? 0x1p-49 * std::fabs(exact[d]) : values.blur[d];
  }
  for (std::size_t d = 0; values.inexact > 0 && d < values.length; ++d) {
    // A distance |v - o| is as little known as the larger of both.
    blurs[d] += values.inexact * std::max(std::fabs(extent.lowest(d)), std::fabs(extent.highest(d)));
  }
}

ValueExtent extent_of(const ValueRows& values) {
  ValueExtent extent(values.length);
  for (const double* row : values.v) {
    extent.add(row, values.error_of(row));
  }
  return extent;
}

// S of M2 for every element, in units of the row sum, where it exceeds the sum of magnitudes; else 0. Weights are
// normalised before the product, or count against a row sum that is at least `least_sum`. Where operands end with the
// accumulator, each product costs its block less than P5, P6 and O3 count for it.
void set_aligned(const RowWeights& w, const ValueRows& values, const ValueExtent& extent,
                 const BudgetArithmetic& arithmetic, OutputSums& sums) {
  const double s = arithmetic.smallest_aligned();
  if (!(s > 0) || arithmetic.unit_meets_underflow()) {
    sums.aligned.clear();
    return;
  }
  sums.aligned.assign(values.length, 0.0);
  const double stored = (1 + arithmetic.weight_roundoff(probability_storage)) * (1 + w.stored_inverse);
  const double weight = s * std::max(1.0, 1 / w.least_sum) * stored;
  for (std::size_t d = 0; d < values.length; ++d) {
    const double largest = std::max(std::fabs(extent.lowest(d)), std::fabs(extent.highest(d))) + extent.worst_read(d);
    const double size =
        w.unbounded ? largest : (sums.weighted[d] + (sums.read.empty() ? 0 : sums.read[d])) / w.shrunk_sum;
    if (std::max(weight * std::max(largest, s), s * (stored + w.store_flush)) <= size) {
      continue;
    }
    for (std::size_t j = 0; j < values.v.size(); ++j) {
      const double* error = values.error_of(values.v[j]);
      const double v = std::fabs(values.v[j][d]) + (error != nullptr ? error[d] : 0);
      const double share = w.unbounded ? 1 : std::min(1.0, w.grown[j] / w.shrunk_sum);
      sums.aligned[d] = std::max(sums.aligned[d], stored_size({share * stored + w.store_flush, weight},
                                                              unit_factor(v, 0, s, arithmetic.least_operand())));
    }
  }
}

// What the elements of a row share.
struct ElementTerms {
  double n, moved_weight, grown_weight, shrunk_sum, fresh_share, afresh, u_p, inverse, sum_inverse, stored_inverse;
  double theta, quotient, product_flush, weight_flush, store_flush, common, merge, whole;
  double reach, weight_room, sum_room, range;
  double made;  // 1 where a norm has made the values, else 0
};

template <bool unbounded>
[[gnu::always_inline]] inline void output_errors_of(
    const ElementTerms& w, std::size_t length, const double* __restrict exact, const double* __restrict totals,
    const double* __restrict worst_reads, const double* __restrict lowest, const double* __restrict highest,
    const double* __restrict moved, const double* __restrict spreads, const double* __restrict weights,
    const double* __restrict reads, const double* __restrict blurs, const double* __restrict extremal,
    const double* __restrict aligned, double* __restrict errors, double* __restrict hulls) {
  for (std::size_t d = 0; d < length; ++d) {
    const double o = std::fabs(exact[d]);
    const double total = sum_upper(totals[d], w.n);
    const double blur = blurs[d];
    const double radius = std::max(highest[d] - exact[d], exact[d] - lowest[d]) + blur;
    // First: weights e^(+-t) off. Their mean stays in the hull of the values.
    const double by_weights = (moved[d] + w.moved_weight * blur) / w.shrunk_sum;
    const double spread = std::min(radius, (spreads[d] + w.grown_weight * blur) / w.shrunk_sum);
    const double first = std::min(unbounded ? radius : std::min(by_weights, radius), extremal[d]);
    const double formed = std::min(unbounded ? radius : std::min(by_weights * w.fresh_share, radius), extremal[d]);
    // Weights that are formed once more have a mean of their own, and their sum is not quite the row sum.
    const double fresh = formed + (o + blur + formed) * w.afresh;
    // Magnitudes that the roundings of the sum refer to, in units of the row sum.
    const double largest = std::max(std::fabs(lowest[d]), std::fabs(highest[d]));
    const double worst_read = w.made > 0 ? worst_reads[d] : 0;
    const double weighted = unbounded ? largest + worst_read : (weights[d] + reads[d]) / w.shrunk_sum;
    const double read = unbounded ? (w.made > 0 ? worst_read : weighted) : reads[d] / w.shrunk_sum;
    // Stored weights: against |v| if the row sum is that of the unstored ones, else against |v - o|.
    const double stored =
        std::max(w.u_p * weighted, w.u_p * w.stored_inverse * ((unbounded ? radius : spread) + first));
    const double second = std::max(first + stored, fresh + w.u_p * weighted) + read * w.stored_inverse;
    const double rounded = weighted * (1 + w.u_p) * w.stored_inverse;
    const double third = second + w.theta * std::max(rounded, aligned[d]) * w.inverse + w.sum_inverse * (o + second);
    const double divided = std::max(rounded * (1 + w.theta) * w.inverse, o + third);
    // Subnormal weights: against |v|, or where they are summed as stored, against |v - o|.
    const double apart = std::max(total, w.n * (radius + first));
    const double flushed =
        w.product_flush + w.weight_flush * total + w.store_flush * std::min(apart, total + w.n * (o + first));
    const double error = third + w.quotient * divided + flushed * w.inverse * w.stored_inverse;
    // Parts are divided before they are added, so theirs are the roundings of the sum as well.
    const double by_parts = divided * (1 + w.quotient);
    const double parts = w.whole > 1 ? by_parts : std::max(rounded, aligned[d]);
    const double merged = error + ((o + error) * w.common + w.merge * parts);
    const double judged = sum_upper(merged * w.whole, 4 * w.n + 128);
    const bool fits = total * w.reach * w.weight_room * w.sum_room < w.range;
    errors[d] = fits ? judged : std::numeric_limits<double>::infinity();
    const double hull = lowest[d] == highest[d] ? 0 : radius;
    hulls[d] = fits ? hull : 0;
  }
}

}  // namespace

void output_errors(const RowWeights& w, const ValueRows& values, std::span<const double> exact, double slots,
                   const BudgetArithmetic& arithmetic, OutputSums& sums, OutputError& result) {
  const std::size_t length = values.length;
  result.error.resize(length);
  result.hull.resize(length);
  const double u_p = arithmetic.weight_roundoff(probability_storage);
  set_sums(w, values, exact, u_p, sums);
  sums.nothing.resize(std::max(sums.nothing.size(), length));
  std::optional<ValueExtent> own_extent;
  if (values.extent == nullptr) {
    own_extent = extent_of(values);
  }
  const ValueExtent& extent = values.extent != nullptr ? *values.extent : *own_extent;
  const double n = w.n;
  const double u = arithmetic.u(output_sum);
  // Sums of blocks or parts that a unit has formed are added one by one, which a sum in any order has counted.
  const double joins = arithmetic.units_only() ? growth_upper(w.rescales + 1, u) : 0;
  const double theta =
      joined(joins, arithmetic.product_growth(output_sum, n + 1, slots + matrix_block, w.in_lane), w.rescale, u);
  const double quotient = arithmetic.quotient(output_quotient);
  const double merge = arithmetic.u(split_merge) > 0 ? joined(quotient, growth_upper(3, arithmetic.u(split_merge))) : 0;
  const double common = w.merged_growth;
  const double lambda = arithmetic.lambda(output_underflow);
  const double weight_room = std::max(1.01, arithmetic.range_room(w.rescales + 8));
  const double sum_room = 1 + growth_upper(4 * (n + slots) + 64, arithmetic.range_roundoff());
  set_blurs(values, exact, extent, sums.blur);
  set_aligned(w, values, extent, arithmetic, sums);
  if (extremal_form_pays(w)) {
    sums.extremal = extremal_moves(w, values, exact, sums.blur);
  } else {
    sums.extremal.clear();
    sums.infinite.resize(std::max(sums.infinite.size(), length), std::numeric_limits<double>::infinity());
  }
  ElementTerms terms{};
  terms.n = n;
  terms.moved_weight = w.moved_sum;
  terms.grown_weight = w.grown_sum;
  terms.shrunk_sum = w.shrunk_sum;
  terms.fresh_share = w.fresh_share;
  terms.afresh = w.afresh;
  terms.u_p = u_p;
  terms.inverse = 1 + w.sum_inverse;
  terms.sum_inverse = w.sum_inverse;
  terms.stored_inverse = 1 + w.stored_inverse;
  terms.theta = theta;
  terms.quotient = quotient;
  terms.product_flush = lambda * (3 * n + w.rescales + 4) / w.least_sum;
  terms.weight_flush = w.weight_flush;
  terms.store_flush = w.store_flush;
  terms.common = common;
  terms.merge = merge;
  terms.whole = arithmetic.second_order();
  terms.reach = w.reach;
  terms.weight_room = weight_room;
  terms.sum_room = sum_room;
  terms.range = arithmetic.largest();
  terms.made = values.inexact > 0 ? 1 : 0;
  const bool unbounded = w.unbounded;
  const auto if_any = [](const std::vector<double>& numbers, const std::vector<double>& else_these) {
    return numbers.empty() ? else_these.data() : numbers.data();
  };
  in_widest_lanes([=, z = exact.data(), extents = extent.numbers(), moved = sums.moved.data(),
                   spread = u_p > 0 ? sums.spread.data() : sums.nothing.data(), weighted = sums.weighted.data(),
                   read = if_any(sums.read, sums.nothing), blur = sums.blur.data(),
                   extremal = if_any(sums.extremal, sums.infinite), aligned = if_any(sums.aligned, sums.nothing),
                   error = result.error.data(), hull = result.hull.data()]() QKCTS_STRAIGHT {
    if (unbounded) {
      output_errors_of<true>(terms, length, z, extents.total, extents.worst_read, extents.lowest, extents.highest,
                             moved, spread, weighted, read, blur, extremal, aligned, error, hull);
    } else {
      output_errors_of<false>(terms, length, z, extents.total, extents.worst_read, extents.lowest, extents.highest,
                              moved, spread, weighted, read, blur, extremal, aligned, error, hull);
    }
  });
}

}  // namespace qkcts
