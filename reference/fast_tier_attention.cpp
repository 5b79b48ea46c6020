// SPDX-License-Identifier: Apache-2.0
#include "reference/fast_tier_attention.hpp"

#include <algorithm>
#include <cmath>

#include "reference/double_word_scalar.hpp"

namespace qkcts {
namespace {

constexpr double more = 1 + 0x1p-20;  // for the roundings of an error itself, and for terms of higher order
constexpr std::size_t rows_per_block = 16;

struct Factor {
  Word value;
  double error = 0;  // relative
};

// scale / T: an exact number, or 1/sqrt(n) by a root (3.126 u^2) and a quotient (11 u^2); T by another quotient.
Factor score_factor(const CaseValues& values, std::int64_t h) {
  const qkcts_score& score = values.terms.score;
  Double tau{1, 0};
  double error = 0;
  const auto inverse_root = [&](double n) {
    tau = dw::divide(Double{1, 0}, dw::square_root(Double{n, 0}));
    error = (dw::root_bound + dw::divide_bound) * u2;
    const double root = std::sqrt(n);
    const bool is_exact = root * root == n && std::fma(root, root, -n) == 0 && 1 / root * root == 1 &&
                          std::fma(1 / root, root, -1.0) == 0;
    if (is_exact) {
      tau = {1 / root, 0};
      error = 0;
    }
  };
  switch (score.scale_form) {
    case QKCTS_SCALE_CONSTANT:
      tau = {score.scale_value, 0};
      break;
    case QKCTS_SCALE_INV_SQRT_SCALAR:
      inverse_root(score.scale_value);
      break;
    case QKCTS_SCALE_LEARNED_SCALAR:
      tau = {values.learned_scale(h), 0};
      break;
    default:
      inverse_root(static_cast<double>(values.shape.head_dim));
  }
  if (score.temperature != 0 && score.temperature != 1) {
    tau = dw::divide(tau, Double{score.temperature, 0});
    error += dw::divide_bound * u2;
  }
  return {of(tau), error * more};
}

}  // namespace

FastAttention::FastAttention(const CaseValues& values, RowPlaces& rows, const FastOperands& q, const FastOperands& k,
                             const FastOperands* v, const Kernels& kernels)
    : values_(values),
      rows_(rows),
      q_(q),
      k_(k),
      normed_v_(v),
      kernels_(kernels),
      keys_(static_cast<std::size_t>(values.shape.k_len)),
      columns_(padded(static_cast<std::size_t>(values.shape.v_head_dim))) {
  const bool per_head = values.terms.logits.scale_axes == QKCTS_SCALE_PER_HEAD;
  for (std::int64_t h = 0; h < (per_head ? values.shape.q_heads : 1); ++h) {
    const Factor factor = score_factor(values, h);
    tau_.push_back(factor.value);
    tau_error_.push_back(factor.error);
  }
  cap_.cap = values.terms.score.softcap;
  if (cap_.cap > 0) cap_.inverse = of(dw::divide(Double{1, 0}, Double{cap_.cap, 0}));
  dots_.resize(rows_per_block);
  anchors_.resize(rows_per_block);
}

void FastAttention::use_keys(std::int64_t b, std::int64_t kv_head) {
  const std::int64_t wanted = b * values_.shape.kv_heads + kv_head;
  if (wanted == keys_of_) return;
  keys_of_ = wanted;
  keys_have_low_ = k_.has_low();
  const auto width = static_cast<std::size_t>(values_.shape.head_dim);
  panels_.resize(padded(keys_) / padding);
  key_scales_.clear(keys_);
  key_norms_.assign(padded(keys_), 0.0);
  key_deltas_.assign(padded(keys_), 0.0);
  for (Panel& panel : panels_) {
    panel.high.assign(width * padding, 0.0);
    panel.low.assign(keys_have_low_ ? width * padding : 0, 0.0);
  }
  for (std::size_t key = 0; key < keys_; ++key) {
    const std::int64_t row = wanted * values_.shape.k_len + static_cast<std::int64_t>(key);
    const FastOperands::Row& kept = k_.row(row);
    Panel& panel = panels_[key / padding];
    for (std::size_t d = 0; d < width; ++d) panel.high[d * padding + key % padding] = k_.high(row)[d];
    for (std::size_t d = 0; d < width && keys_have_low_; ++d) panel.low[d * padding + key % padding] = k_.low(row)[d];
    key_scales_.h[key] = kept.scale.h;
    key_scales_.l[key] = kept.scale.l;
    key_scales_.error[key] = kept.scale_error;
    key_norms_[key] = kept.norm;
    key_deltas_[key] = kept.delta;
  }
  use_values(b, kv_head);
}

void FastAttention::use_values(std::int64_t b, std::int64_t kv_head) {
  const std::vector<bool>& is_seen = rows_.seen(b, kv_head);
  const auto v_width = static_cast<std::size_t>(values_.shape.v_head_dim);
  v_.assign(keys_ * columns_, 0.0);
  v_low_.assign(normed_v_ == nullptr ? 0 : v_.size(), 0.0);
  v_largest_.assign(columns_, 0.0);
  v_error_ = 0;
  for (std::size_t key = 0; key < keys_; ++key) {
    if (!is_seen[key]) continue;
    const std::int64_t row =
        (b * values_.shape.kv_heads + kv_head) * values_.shape.k_len + static_cast<std::int64_t>(key);
    const double* from = normed_v_ == nullptr ? values_.v.row(row).data() : normed_v_->high(row);
    const double* low = normed_v_ == nullptr ? nullptr : normed_v_->low(row);
    for (std::size_t d = 0; d < v_width; d += padding) {
      const std::size_t to = d * keys_ + key * padding, count = std::min(padding, v_width - d);
      std::copy_n(from + d, count, v_.begin() + static_cast<std::ptrdiff_t>(to));
      if (low != nullptr) std::copy_n(low + d, count, v_low_.begin() + static_cast<std::ptrdiff_t>(to));
    }
    for (std::size_t d = 0; d < v_width; ++d) v_largest_[d] = std::max(v_largest_[d], std::fabs(from[d]));
    if (normed_v_ == nullptr) continue;
    v_error_ = std::max(v_error_, normed_v_->row(row).delta);
  }
  for (const double largest : v_largest_)  // too small for the grid of an anchored sum
    if (largest != 0 && largest < 0x1p-400) v_error_ = HUGE_VAL;
}

// The dot products of a block of rows of one head, panel by panel, so that a panel stays in the cache.
void FastAttention::use_block(std::size_t row) {
  const std::size_t at = rows_.index(row);
  if (at >= block_begin_ && at < block_end_) return;
  const RowPlace& first = rows_[row];
  use_keys(first.b, values_.kv_head(first.h));
  const std::vector<std::uint32_t>& held = rows_.held();
  const auto is_neighbour = [&](const RowPlace& place) { return place.h == first.h && place.b == first.b; };
  block_begin_ = at;
  block_end_ = at + 1;
  while (block_end_ < held.size() && block_end_ - block_begin_ < rows_per_block &&
         is_neighbour(rows_[held[block_end_]]))
    ++block_end_;
  const auto width = static_cast<std::size_t>(values_.shape.head_dim);
  for (std::size_t i = 0; i < block_end_ - block_begin_; ++i) {
    dots_[i].h.resize(padded(keys_));
    dots_[i].l.resize(padded(keys_));
    anchors_[i].resize(padded(keys_));
    const double norm = q_.row(static_cast<std::int64_t>(held[block_begin_ + i])).norm;
    kernels_.anchors(key_norms_.data(), padded(keys_), norm, anchors_[i].data());
  }
  for (std::size_t p = 0; p < panels_.size(); ++p) {
    for (std::size_t i = 0; i < block_end_ - block_begin_; ++i) {
      const auto q_row = static_cast<std::int64_t>(held[block_begin_ + i]);
      const DotOperands operands{
          q_.high(q_row),         q_.has_low() ? q_.low(q_row) : nullptr,           width,  nullptr,
          panels_[p].high.data(), keys_have_low_ ? panels_[p].low.data() : nullptr, padding};
      kernels_.dot(operands, padding, anchors_[i].data() + p * padding, dots_[i].words(p * padding));
    }
  }
}

void FastAttention::set_scores(std::size_t row, WordArray& scores) {
  use_block(row);
  scores.reserve(keys_ + padding);
  const FastOperands::Row& q = q_.row(static_cast<std::int64_t>(row));
  const std::size_t head = tau_.size() == 1 ? 0 : static_cast<std::size_t>(rows_[row].h);
  const Double factor = dw::multiply(of(tau_[head]), of(q.scale));
  const bool is_exact =
      q_.is_plain() && k_.is_plain() && !q_.has_low() && !keys_have_low_ && tau_[head].l == 0 && tau_error_[head] == 0;
  const int low_words = (q_.has_low() ? 1 : 0) + (keys_have_low_ ? 1 : 0);
  const ScoreTerms terms{of(factor),
                         (tau_error_[head] + q.scale_error + dw::multiply_bound * u2) * more,
                         q.norm,
                         q.delta,
                         DotSize(static_cast<std::size_t>(values_.shape.head_dim), low_words),
                         is_exact,
                         is_exact ? q_.grid() * k_.grid() : 0};
  const NormedKeys keys{key_scales_.h.data(), key_scales_.l.data(), key_scales_.error.data(), key_norms_.data(),
                        key_deltas_.data()};
  const std::size_t at = rows_.index(row) - block_begin_;
  kernels_.scores(dots_[at].words(), anchors_[at].data(), padded(keys_), terms, keys, scores.words(),
                  scores.error.data());
}

void FastAttention::set_capped(const WordArray& scores, const std::vector<double>& biases, WordArray& capped) const {
  capped.reserve(keys_ + padding);
  CapOperands terms = cap_;
  const std::uint32_t order = values_.terms.score.bias_order;
  if (order == QKCTS_BIAS_BEFORE_SOFTCAP) terms.before = biases.data();
  if (order == QKCTS_BIAS_AFTER_SOFTCAP) terms.after = biases.data();
  kernels_.cap(scores.words(), scores.error.data(), padded(keys_), terms, capped.words(), capped.error.data());
}

// S = 1 + rest: `rest` within the error of the weights and of n + 8 additions (3.01 u^2 each); one more addition, and
// the quotient 1/S (11 u^2).
// Weights and m: see weigh_row. The exact sum is e^(s_largest - m) + ..., and e^(s_largest - m), taken as 1, is within
// the error of the weights too.
void FastAttention::set_softmax(const RowPlace& place, WordView seen, RowSoftmax& result) {
  const std::size_t n = place.visible.size();
  result.scores = kernels_.extremes(seen.words(), seen.error, n);
  const std::size_t largest = result.scores.largest;
  weights_.reserve(n);
  result.probs.reserve(n);
  result.exponent.resize(padded(n));
  const WeightSums sums = kernels_.weights(seen.words(), seen.error, n, largest, weights_.words(),
                                           result.exponent.data(), weights_.error.data());
  const double additions = 3.01 * (static_cast<double>(n) + 8) * u2;
  const Double sum = dw::add(of(sums.rest), 1.0);
  const Word inverse = of(dw::divide(Double{1, 0}, sum));
  const double sum_error = (sums.error + additions + dw::add_number_bound * u2) * more;
  const double inverse_error = (sum_error + dw::divide_bound * u2) * more;
  kernels_.probabilities(weights_.words(), weights_.error.data(), n, inverse, inverse_error, result.probs.words(),
                         result.probs.error.data());

  const double reach = sum.h * (1 + 0x1p-40);  // >= sum of the weights as they are
  column_anchors_.resize(columns_);
  sums_.reserve(columns_);
  result.output.reserve(columns_);
  kernels_.anchors(v_largest_.data(), columns_, reach, column_anchors_.data());
  const bool is_run = place.visible.back() - place.visible.front() + 1 == n;
  for (std::size_t d = 0; d < columns_; d += padding) {
    const std::size_t from = d * keys_ + (is_run ? place.visible.front() * padding : 0);
    const DotOperands operands{weights_.h.data(),
                               weights_.l.data(),
                               n,
                               is_run ? nullptr : place.visible.data(),
                               v_.data() + from,
                               v_low_.empty() ? nullptr : v_low_.data() + from,
                               padding};
    kernels_.dot(operands, padding, column_anchors_.data() + d, sums_.words(d));
  }
  const DotSize size(n, v_low_.empty() ? 1 : 2);
  kernels_.outputs(sums_.words(), column_anchors_.data(), v_largest_.data(), columns_, size, reach, sums.error, inverse,
                   inverse_error, result.output.words(), result.output.error.data());
  // Probabilities sum to 1, so entries of v that are off by v_error_ move the output by no more.
  if (v_error_ > 0)
    for (std::size_t d = 0; d < columns_; ++d) result.output.error[d] = (result.output.error[d] + v_error_) * more;

  // lse = m + log(1 + rest); the slope of the logarithm carries the relative error of the sum over as it is.
  rest_.reserve(1);
  log_sum_.reserve(1);
  guess_.resize(padded(1));
  rest_.h[0] = sums.rest.h;
  rest_.l[0] = sums.rest.l;
  guess_[0] = std::log1p(sums.rest.h);
  kernels_.log_one_plus(rest_.words(), guess_.data(), 1, log_sum_.words(), log_sum_.error.data());
  const Double log_of_sum{log_sum_.h[0], log_sum_.l[0]};
  const double log_error = log_sum_.error[0];
  const Double lse = dw::add(Double{seen.h[largest], seen.l[largest]}, log_of_sum);
  result.lse = of(lse);
  result.lse_error = (sum_error + log_error + dw::add_bound * u2 * std::fabs(lse.h)) * more;

  // The largest probability is e^(max s - m)/S, and max s is within the largest error of a score of m.
  result.p_max = inverse;
  result.p_max_error = inverse.h * (inverse_error + sums.error) * more;

  // H = log(1 + rest) + weighted/S, both >= 0. H does not depend on m; taken as the exact largest score, all weights
  // are within 2w and all x within 2w, w = sums.error, which exceeds what each score and difference is off by, and the
  // weight 1 is exact. Slopes: of log(1 + rest) 1/(1 + rest); weighted = sum of w x with products (5 u^2), differences
  // (3.01 u^2, in w) and the additions; the quotient 11 u^2. Keys left out below e^-600: less than 2^-840.
  const Double mean = dw::divide(of(sums.weighted), sum);
  const Double entropy = dw::add(log_of_sum, mean);
  const double w2 = 2 * sums.error + additions;
  const double share = sums.rest.h / sum.h;  // rest/(1 + rest)
  result.entropy = of(entropy);
  result.entropy_error = (share * w2 + log_error + std::fabs(mean.h) * (2 * w2 + 20 * u2) + share * 2 * sums.error +
                          3.01 * u2 * entropy.h + 0x1p-840) *
                         more;
}

}  // namespace qkcts
