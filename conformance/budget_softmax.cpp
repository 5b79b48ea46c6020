// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_softmax.hpp"

#include <algorithm>
#include <cmath>

#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

using enum BudgetTerm;

// What probability_errors() asks of a row.
struct RowShares {
  double shrunk_sum, factor, flush, terms;
  double fallen_top, moved_top;  // of the largest key
};
// And of the keys beside one of them.
struct OtherKeys {
  double fallen, grown, sum;
};

template <bool unbounded>
[[gnu::always_inline]] inline double probability_error(const RowShares& row, double p, double moved, double split,
                                                       double raised, const OtherKeys& others) {
  const double e = moved / p;
  const double f = e / (1 + e);
  // A weight may exceed the row sum only by what sets it apart from its own share of that sum.
  const double apart = std::max(p, others.sum + split);
  // The two corners: this weight up and all others down, and the reverse. The weight in the row sum and the one
  // above it share the error of the score, not their roundings.
  const double lowered = raised / (1 + raised);
  const double gap = p * split / (1 + split);
  const double kept = std::max(0.0, (1 + raised) / (1 + split) - 1 / (1 + e));
  const double up = p * (raised * others.sum + gap * (1 + raised) + others.fallen) / (row.shrunk_sum + p * kept);
  const double down = p * (lowered * others.sum + gap * (1 + e) + others.grown) / (1 - p * f + others.grown);
  // Where e > 1, sums over the other keys may drown in the own part: p itself bounds the fall.
  const double fall = std::min(down, p);
  const double corners = std::max(std::min(up, others.sum + split), e < 1 ? fall : p);
  const double first = sum_upper(unbounded ? apart : corners, row.terms);
  return sum_upper(first + (p + first) * row.factor + row.flush, 32);
}

// Of every key as one beside the largest.
template <bool unbounded>
[[gnu::always_inline]] inline void probability_errors_of(const RowShares& row, const OtherKeys& beside_top,
                                                         std::size_t n, const double* __restrict probabilities,
                                                         const double* __restrict moved,
                                                         const double* __restrict splits,
                                                         const double* __restrict raised, double* __restrict errors) {
  for (std::size_t j = 0; j < n; ++j) {
    const double p = probabilities[j];
    const double e = moved[j] / p;
    const OtherKeys others{std::max(0.0, beside_top.fallen - p * (e / (1 + e))) + row.fallen_top,
                           std::max(0.0, beside_top.grown - p * e) + row.moved_top, 1 - p};
    errors[j] = probability_error<unbounded>(row, p, moved[j], splits[j], raised[j], others);
  }
}

}  // namespace

void probability_errors(const RowWeights& w, const BudgetArithmetic& arithmetic, SoftmaxNumbers& numbers,
                        std::vector<double>& errors) {
  const std::size_t n = w.probability.size();
  errors.resize(n);
  const double u = arithmetic.u(softmax_quotient);
  const double u_p = arithmetic.weight_roundoff(probability_storage);
  RowShares row{};
  row.shrunk_sum = w.shrunk_sum;
  row.terms = 4 * w.n + 32;
  row.factor = joined(w.sum_inverse, w.rescale, arithmetic.quotient(softmax_quotient), u, w.stored_inverse, u_p,
                      w.merged_growth);
  row.flush = (w.weight_flush + w.store_flush) * (1 + w.sum_inverse) * (1 + w.stored_inverse) +
              arithmetic.lambda(softmax_underflow);
  // Sums over all keys but one: of the largest key they are made apart, where the subtraction would cancel.
  const std::size_t top = w.top;
  const OtherKeys beside_top{w.fallen_beside_top, w.moved_beside_top, w.beside_top};
  const double p_top = w.probability[top];
  const double e_top = w.moved[top] / p_top;
  row.fallen_top = p_top * e_top / (1 + e_top);
  row.moved_top = w.moved[top];
  // e^t - 1 of what sets the two weights apart, and of what moves the one above the line.
  std::vector<double>& exponentials = numbers.exponentials;
  exponentials.assign(w.apart.begin(), w.apart.end());
  exponentials.insert(exponentials.end(), w.own.begin(), w.own.end());
  expm1_upper(w.unbounded ? std::span(exponentials).first(n) : std::span(exponentials));
  in_widest_lanes([=, unbounded = w.unbounded, probabilities = w.probability.data(), moved = w.moved.data(),
                   splits = exponentials.data(), to = errors.data()]() QKCTS_STRAIGHT {
    if (unbounded) {
      probability_errors_of<true>(row, beside_top, n, probabilities, moved, splits, splits + n, to);
    } else {
      probability_errors_of<false>(row, beside_top, n, probabilities, moved, splits, splits + n, to);
    }
  });
  const auto of_top = w.unbounded ? probability_error<true> : probability_error<false>;
  errors[top] = of_top(row, p_top, w.moved[top], exponentials[top], exponentials[n + top], beside_top);
}

double lse_error(const RowWeights& w, double lse, bool converts, const BudgetArithmetic& arithmetic) {
  // The log-sum-exp moves at most as far as the exponent that moves most.
  double first = w.exponent;
  if (!w.unbounded) {
    const double moved = sum_upper(w.moved_sum, w.n);
    const double fallen = sum_upper(w.fallen_sum, w.n);
    const double down = fallen < 0.5 ? minus_log1m_upper(fallen) : log_upper(1 / w.shrunk_sum * (1 + 0x1p-48));
    first = std::min(first, std::max(log1p_upper(moved), down));
  }
  const double u = arithmetic.u(logarithm);
  const double summed = log1p_upper(w.sum_inverse) + log1p_upper(w.stored_inverse);
  const double size = w.log_sum + first + w.shift + log_upper(w.reach) + w.above;
  // A quotient by ln 2 in place of a product, and the maximum scaled apart from the logarithm.
  const double converted = converts
                               ? arithmetic.division(logarithm_base) * (std::fabs(lse) + first + summed) * (1 + 4 * u) +
                                     arithmetic.u(logarithm_base) * (std::fabs(w.max_score) + w.shift)
                               : 0;
  return sum_upper(
      (first + summed + (arithmetic.log(logarithm) + 2 * u) * (size + summed) +
       3 * u * (std::fabs(lse) + first + summed) * (1 + 4 * u) + u * (std::fabs(w.max_score) + w.shift) + w.merged_lse +
       4 * arithmetic.lambda(softmax_underflow) + converted + arithmetic.log_absolute(logarithm)) *
          arithmetic.second_order(),
      64);
}

}  // namespace qkcts
