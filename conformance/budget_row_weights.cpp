// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_row_weights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/budget_sums.hpp"
#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

using enum BudgetTerm;

constexpr std::size_t most_compared = 512;  // blocks that are compared with each other; more are sorted
constexpr double largest_exponent = 300;    // beyond it weights are called unbounded; e^300 is far from overflow here

// How far the exponent of each weight may be off (docs/budgets.md, P1, P2, P7).
class ExponentError {
 public:
  ExponentError(const SoftmaxKeys& row, double maximum, double shift, double rescales,
                const BudgetArithmetic& arithmetic)
      : maximum_(maximum), shift_(shift), rescales_(rescales), lse_(row.lse) {
    u_ = arithmetic.u(softmax_exponent);
    three_u_ = joined(u_, u_, u_);
    slack_ = arithmetic.shift_slack();
    exponential_ = arithmetic.exp_exponent(softmax_exponential);
    flush_ = (rescales + 4) * arithmetic.sum_lambda(softmax_underflow);
    merge_u_ = arithmetic.u(split_merge);
    const double log_n = log_upper(static_cast<double>(row.scores.size()) + 1);
    merge_three_u_ = joined(merge_u_, merge_u_, merge_u_);
    merge_reach_ = log_n + shift;
    merge_fixed_ = 2 * (arithmetic.log(split_merge) + 3 * merge_u_) * merge_reach_ +
                   arithmetic.log_absolute(split_merge) + arithmetic.exp_exponent(split_merge);
    whole_ = std::max(1 + 0x1p-48, arithmetic.second_order());
  }

  // Roundings of a weight as it enters the row sum, and as it is formed once against the final shift; of the latter
  // without those of a log-sum-exp, and of one rescaling.
  struct Rounding {
    double in_sum = 0;
    double fresh = 0;
    double formed = 0;
    double rescaled_once = 0;
  };

  [[gnu::always_inline]] Rounding operator()(double score, double error) const {
    const double below = std::max(0.0, maximum_ - score) + error + shift_ + 2 * slack_;
    const double size = std::max(std::fabs(score), std::fabs(maximum_)) + error + shift_;
    const double formed = three_u_ * below + u_ * (std::fabs(score) + error + size) + exponential_ + flush_;
    const double rescaled_once = u_ * size + exponential_;
    const double rescaled = rescales_ * rescaled_once;
    const double merge_size = std::max(std::fabs(score), std::fabs(lse_)) + error + merge_reach_;
    const double below_lse = std::max(0.0, lse_ - score) + error + merge_reach_;
    const double merged = merge_three_u_ * (merge_size + below_lse) + merge_fixed_;
    return {(formed + rescaled + merged) * whole_, (formed + merged) * whole_, formed * whole_, rescaled_once * whole_};
  }

 private:
  double maximum_, shift_, rescales_, lse_;
  double u_ = 0, three_u_ = 0, slack_ = 0, exponential_ = 0, flush_ = 0;
  double merge_u_ = 0, merge_three_u_ = 0, merge_reach_ = 0, merge_fixed_ = 0;
  double whole_ = 1;  // roundings of this evaluation, and of second order
};

// Exponent of the largest weight against the shift, in absolute value: errors of scores do not enter, since shift and
// weight come from the same computed scores.
double shift_exponent(double maximum, double shift, double rescales, const BudgetArithmetic& arithmetic) {
  const double u = arithmetic.range_roundoff();
  return (arithmetic.shift_slack() * (1 + 4 * u) + (rescales + 3) * u * (std::fabs(maximum) + shift) +
          (1 + rescales) * arithmetic.range_exp_exponent() + 0x1p-40) *
         arithmetic.second_order();
}

// How often a sum may be rescaled after a key has come in, where that happens only when the running maximum rises or
// parts are merged (docs/budgets.md, O7): every rise brings in another block, with a computed score above that of the
// key; and the shift of another part is larger only if its maximum is, but for the slack of both.
void set_rises(const SoftmaxKeys& row, double slack, SoftmaxNumbers& numbers) {
  const std::size_t n = row.scores.size();
  const auto block = [&](std::size_t j) { return row.block_of.empty() ? j : row.block_of[j]; };
  const std::size_t blocks = row.block_of.empty() ? n : *std::max_element(row.block_of.begin(), row.block_of.end()) + 1;
  std::vector<double>&tops = numbers.tops, &lowest = numbers.lowest, &rises = numbers.rises;
  tops.assign(blocks, -std::numeric_limits<double>::infinity());  // highest score of every block
  lowest.resize(n);
  for (std::size_t j = 0; j < n; ++j) {
    // How far a computed score may be from the one that is given.
    const double reach = row.errors[j] + std::fabs(row.scores[j]) * 0x1p-48;
    tops[block(j)] = std::max(tops[block(j)], row.scores[j] + reach);
    lowest[j] = row.scores[j] - reach - 2 * slack;
  }
  if (blocks <= most_compared) {
    count_above(tops.data(), blocks, lowest.data(), n, rises.data());
  } else {
    std::vector<double> sorted = tops;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t j = 0; j < n; ++j) {
      rises[j] = static_cast<double>(sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), lowest[j]));
    }
  }
  for (std::size_t j = 0; j < n; ++j) {
    rises[j] -= tops[block(j)] > lowest[j] ? 1 : 0;
  }
}

// Exponents of e^t - 1 of what moves a weight in the row sum, of what sets a weight apart that is formed once more, and
// of what moves that one. Beyond largest_exponent the weights are unbounded.
[[gnu::always_inline]] inline void exponents_of(const ExponentError& exponent_error, std::size_t n,
                                                const double* __restrict scores, const double* __restrict errors,
                                                const double* __restrict rises, double* __restrict exponent,
                                                double* __restrict weight_own, double* __restrict weight_apart,
                                                double* __restrict in_sum, double* __restrict apart,
                                                double* __restrict own) {
  for (std::size_t j = 0; j < n; ++j) {
    const ExponentError::Rounding rounding = exponent_error(scores[j], errors[j]);
    const double t = errors[j] + rounding.in_sum;
    exponent[j] = t;
    weight_own[j] = errors[j] + rounding.fresh;
    weight_apart[j] = rounding.in_sum + rounding.fresh;
    in_sum[j] = std::min(t, largest_exponent);
    const double risen = rises[j];
    const double set_apart = 2 * rounding.formed + risen * rounding.rescaled_once;
    apart[j] = std::min(risen > 0 ? set_apart : 0, largest_exponent);
    const double rescaled = risen > 0 ? rounding.rescaled_once : 0;
    own[j] = std::min(errors[j] + rounding.formed + rescaled, t);
  }
}

// For all keys, one kind after another.
void set_exponents(const SoftmaxKeys& row, const ExponentError& exponent_error, SoftmaxNumbers& numbers,
                   RowWeights& w) {
  const std::size_t n = row.scores.size();
  numbers.exponentials.resize(3 * n);
  numbers.exponent.resize(n);
  in_widest_lanes([=, scores = row.scores.data(), errors = row.errors.data(), rises = numbers.rises.data(),
                   exponent = numbers.exponent.data(), own = w.own.data(), apart = w.apart.data(),
                   to = numbers.exponentials.data()]() QKCTS_STRAIGHT {
    exponents_of(exponent_error, n, scores, errors, rises, exponent, own, apart, to, to + n, to + 2 * n);
  });
}

// From these exponentials the weights; in their place what each adds to the least row sum, and its share of what moves
// a weight that is formed once more.
[[gnu::always_inline]] inline void weights_of(std::size_t n, const double* __restrict given, double* __restrict in_sum,
                                              double* __restrict own, double* __restrict probability,
                                              double* __restrict moved, double* __restrict grown,
                                              double* __restrict fallen) {
  for (std::size_t j = 0; j < n; ++j) {
    const double e = in_sum[j];
    const double p = std::max(given[j], 0x1p-1022);
    probability[j] = p;
    moved[j] = p * e;
    grown[j] = p * (1 + e);
    fallen[j] = p * e * p / (p * (1 + e));
    in_sum[j] = given[j] / (1 + e);
    const double share = own[j] / e;
    own[j] = e > 0 ? share : 1;
  }
}

void set_weights(const SoftmaxKeys& row, SoftmaxNumbers& numbers, RowWeights& w) {
  const std::size_t n = row.scores.size();
  in_widest_lanes([=, given = row.probabilities.data(), from = numbers.exponentials.data(), p = w.probability.data(),
                   moved = w.moved.data(), grown = w.grown.data(), fallen = w.fallen.data()]()
                      QKCTS_STRAIGHT { weights_of(n, given, from, from + 2 * n, p, moved, grown, fallen); });
}

// Sums over keys, one term after another; of all keys, and of those beside the largest.
struct KeySums {
  double shrunk = 0;
  double afresh = 0;  // of grown weights times how far each may be from the one in the row sum
  double others = 0;  // grown weights of all but the key with the largest score
};

// Keys first <= j < last. They stand `beside` the largest: their sums go on there, too.
void add_keys(std::size_t first, std::size_t last, bool beside_score, bool beside_probability,
              const SoftmaxNumbers& numbers, RowWeights& w, KeySums& sums) {
  const std::size_t n = w.probability.size();
  const double* const shrunk = numbers.exponentials.data();
  const double* const apart = numbers.exponentials.data() + n;
  KeySums s = sums;
  double grown_sum = w.grown_sum, moved_sum = w.moved_sum, fallen_sum = w.fallen_sum;
  double beside_top = w.beside_top, moved_beside = w.moved_beside_top, fallen_beside = w.fallen_beside_top;
  for (std::size_t j = first; j < last; ++j) {
    const double grown = w.grown[j], moved = w.moved[j], fallen = w.fallen[j];
    s.shrunk += shrunk[j];
    s.afresh += grown * apart[j];
    s.others += beside_score ? grown : 0;
    grown_sum += grown;
    moved_sum += moved;
    fallen_sum += fallen;
    beside_top += beside_probability ? w.probability[j] : 0;
    moved_beside += beside_probability ? moved : 0;
    fallen_beside += beside_probability ? fallen : 0;
  }
  sums = s;
  w.grown_sum = grown_sum;
  w.moved_sum = moved_sum;
  w.fallen_sum = fallen_sum;
  w.beside_top = beside_top;
  w.moved_beside_top = moved_beside;
  w.fallen_beside_top = fallen_beside;
}

// `top` is the key with the largest score; mostly it has the largest probability, too.
KeySums add_keys(std::size_t top, const SoftmaxNumbers& numbers, RowWeights& w) {
  const std::size_t n = w.probability.size();
  w.top = place_of_largest(w.probability.data(), n);
  const std::size_t first = std::min(top, w.top), second = std::max(top, w.top);
  KeySums sums;
  add_keys(0, first, true, true, numbers, w, sums);
  add_keys(first, first + 1, first != top, first != w.top, numbers, w, sums);
  if (second > first) {
    add_keys(first + 1, second, true, true, numbers, w, sums);
    add_keys(second, second + 1, second != top, second != w.top, numbers, w, sums);
  }
  add_keys(second + 1, n, true, true, numbers, w, sums);
  return sums;
}

}  // namespace

void row_weights(const SoftmaxKeys& row, const BudgetArithmetic& arithmetic, SoftmaxNumbers& numbers, RowWeights& w) {
  const std::size_t n = row.scores.size();
  RowWeights anew;
  for (std::vector<double> RowWeights::*of_keys : {&RowWeights::probability, &RowWeights::grown, &RowWeights::moved,
                                                   &RowWeights::fallen, &RowWeights::own, &RowWeights::apart}) {
    anew.*of_keys = std::move(w.*of_keys);  // for its memory
    (anew.*of_keys).clear();
  }
  w = std::move(anew);
  w.n = static_cast<double>(n);
  const std::size_t top = place_of_largest(row.scores.data(), n);
  w.max_score = row.scores[top];
  w.above = row.above;
  w.coarse = row.points || arithmetic.coarse();
  w.shift = row.errors[place_of_largest(row.errors.data(), n)] + arithmetic.shift_slack();
  w.rescales = row.blocks;  // blocks - 1, and one more for a merge
  // Sums of blocks or of parts are added one after another; one term more, as in n + 1.
  w.in_lane = row.in_lane > 0 ? row.in_lane + w.rescales + 1 : w.n + 1;
  if (!std::isfinite(w.shift)) {
    w.domain = true;
    return;
  }
  const double edge = shift_exponent(w.max_score, w.shift, w.rescales, arithmetic);
  w.reach = exp_upper(edge);
  w.least_sum = exp_lower(-edge);
  // Sums over the row, and a weight that is rescaled or stored.
  const double room = std::max(1.01, arithmetic.range_room(2 * (w.n + row.slots) + w.rescales + 8));
  if (!(w.reach * w.n * room < arithmetic.largest()) ||
      !(w.reach * std::max(1.01, arithmetic.range_room(w.rescales + 4)) < arithmetic.largest_weight()) ||
      !(w.least_sum > 0)) {
    w.domain = true;
    return;
  }

  const ExponentError exponent_error(row, w.max_score, w.shift, w.rescales, arithmetic);
  for (std::vector<double>* of_keys : {&w.probability, &w.grown, &w.moved, &w.fallen, &w.own, &w.apart}) {
    of_keys->resize(n);
  }
  if (row.blocks > 1) {
    numbers.rises.resize(n);
    set_rises(row, arithmetic.shift_slack(), numbers);
  } else {
    numbers.rises.assign(n, 0.0);
  }
  set_exponents(row, exponent_error, numbers, w);
  expm1_upper(numbers.exponentials);
  set_weights(row, numbers, w);
  const KeySums sums = add_keys(top, numbers, w);
  // e^t - 1 of the weights that are formed once more; and what set_weights() left there.
  const double farthest = largest_above(0, numbers.exponentials.data() + n, n);
  const double fresh_share = largest_above(0, numbers.exponentials.data() + 2 * n, n);
  w.exponent = largest_above(0, numbers.exponent.data(), n);
  w.unbounded = !(w.exponent <= largest_exponent);
  w.shrunk_sum = sum_lower(sums.shrunk, w.n);
  w.fresh_share = std::min(1.0, fresh_share);
  w.afresh =
      arithmetic.formed_afresh(w.unbounded ? farthest : std::min(farthest, sum_upper(sums.afresh, w.n) / w.shrunk_sum));
  w.log_sum = log_upper(1 / row.probabilities[top] * (1 + 0x1p-48));

  // The row sum: any order; but no addition of positive numbers is off by more than its smaller operand.
  const double u = arithmetic.u(softmax_sum);
  const double growth = arithmetic.product_growth(softmax_sum, w.n + 1, row.slots + matrix_block, w.in_lane);
  const double inverse_growth = growth / std::max(0x1p-10, 1 - growth);
  const double share = sum_upper(sums.others, w.n) / w.shrunk_sum * (1 + 2 * growth);
  const double on = u > 0 ? 1 : 0;
  double rise = growth;
  double inverse = growth < 0.5 ? inverse_growth : growth_upper(2 * (row.slots + w.n), 4 * u);
  if (share < 0.5) {
    rise = std::min(rise, on * share);
    inverse = std::min(inverse, on * share / (1 - share));
  }
  w.rescale = growth_upper(w.rescales, arithmetic.u(softmax_exponential) * (1 + 2 * arithmetic.u(softmax_exponential)));
  const double flush =
      (2 * arithmetic.exp_quanta(softmax_underflow) + (w.rescales + 2) * arithmetic.lambda(softmax_underflow)) *
      w.reach * arithmetic.second_order();
  w.weight_flush = flush / w.least_sum;
  w.sum_rise = joined(rise, w.rescale) + w.n * w.weight_flush;
  const double lost = w.n * w.weight_flush * (1 + inverse) * (1 + w.rescale);
  if (!(lost < 0.25)) {
    w.domain = true;
    return;
  }
  w.sum_inverse = joined(inverse, w.rescale, lost / (1 - lost));

  // Weights as stored: relative, and a subnormal quantum each, but never more than the weight itself.
  // Shifts only rise, so that rescaling does not enlarge what was lost (but for its own roundings).
  const double risen_shift = edge - arithmetic.shift_slack();
  w.store_flush = arithmetic.weight_lambda(probability_storage) *
                  (risen_shift == edge ? w.reach : exp_upper(risen_shift)) / w.least_sum;
  double stored = arithmetic.weight_roundoff(probability_storage);
  for (std::size_t j = 0; j < n && w.store_flush > 0; ++j) {
    stored += std::min(w.store_flush, w.grown[j] / w.shrunk_sum);
  }
  w.stored_inverse = stored < 0.5 ? stored / (1 - stored) : 4 * w.n * w.reach * w.reach;

  const double merge_u = arithmetic.u(split_merge);
  const double merge_size = merge_u * (std::fabs(row.lse) + w.shift) * (1 + 8 * merge_u);
  w.merged_lse = (2 * merge_size + (arithmetic.log(split_merge) + 8 * merge_u) * (log_upper(w.n + 1) + w.shift) +
                  2 * arithmetic.exp_exponent(split_merge)) *
                 arithmetic.second_order();
  w.merged = w.merged_lse + 4 * merge_size * arithmetic.second_order() + 2 * arithmetic.log_absolute(split_merge);
  w.merged_growth = expm1_upper(w.merged);
}

}  // namespace qkcts
