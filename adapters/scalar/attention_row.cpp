// SPDX-License-Identifier: Apache-2.0
// What happens to one query row, from its scores to its output.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "adapters/scalar/attention.hpp"

namespace qkcts::scalar {

namespace {

// Eight partial sums: any order is allowed, and this one lets the compiler use the machine's vectors.
template <class Real>
Real dot(std::span<const Real> a, std::span<const Real> b) {
  std::array<Real, 8> partial{};
  std::size_t i = 0;
  for (; i + 8 <= a.size(); i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) partial[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < a.size(); ++i) partial[i % 8] += a[i] * b[i];
  Real sum = 0;
  for (const Real value : partial) sum += value;
  return sum;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t positive) {
  return a / positive - (a % positive < 0 ? 1 : 0);
}

}  // namespace

template <class Real>
std::int64_t Attention<Real>::kv_head(std::int64_t h) const {
  return terms_.heads.mapping == QKCTS_HEADS_TILE ? h % shape_.kv_heads : h / (shape_.q_heads / shape_.kv_heads);
}

template <class Real>
double Attention<Real>::query_factor(std::int64_t b, std::int64_t t) const {
  const qkcts_logits& logits = terms_.logits;
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE) return 1;
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_LOG_RATIO) {
    const double steps = static_cast<double>(position_of(Side::query, b, t)) + logits.query_shift;
    return 1 + logits.query_alpha * std::log(std::max(steps / logits.query_period, 1.0));
  }
  // Whole numbers: the quotient of integers is not rounded up to the next one.
  const auto period = static_cast<std::int64_t>(logits.query_period);
  const std::int64_t shifted = position_of(Side::query, b, t) + static_cast<std::int64_t>(logits.query_shift);
  return 1 + logits.query_alpha * std::log1p(static_cast<double>(floor_divide(shifted, period)));
}

template <class Real>
Real Attention<Real>::tau(const QueryRow<Real>& row) const {
  return static_cast<Real>(tau_[row.h] * query_factor(row.b, row.t));
}

template <class Real>
std::int64_t Attention<Real>::query_offset(std::int64_t b) const {
  switch (terms_.mask.alignment) {
    case QKCTS_BOTTOM_RIGHT:
      return shape_.k_len - shape_.q_len;
    case QKCTS_BOTTOM_RIGHT_VALID:
      return kv_len_.load<std::int64_t>(b) - shape_.q_len;
    case QKCTS_OFFSET:
      return terms_.mask.offset;
    default:
      return 0;
  }
}

template <class Real>
bool Attention<Real>::visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const {
  const qkcts_mask& mask = terms_.mask;
  const qkcts_regions& regions = terms_.regions;
  const std::int64_t place = t + query_offset(b);
  const bool in_prefix = regions.prefix != 0 && k < prefix_len_.load<std::int64_t>(b);
  if (mask.causal != 0 && k > place && !in_prefix) return false;
  if (mask.has_window != 0 && mask.window_left >= 0 && place - k > mask.window_left) return false;
  if (mask.has_window != 0 && mask.window_right >= 0 && k - place > mask.window_right) return false;
  if (regions.chunk > 0 && floor_divide(k, regions.chunk) != floor_divide(place, regions.chunk)) return false;
  if (mask.kv_lengths != 0 && k >= kv_len_.load<std::int64_t>(b)) return false;
  if (regions.documents != 0 && documents_[0].load<std::int64_t>(b, t) != documents_[1].load<std::int64_t>(b, k))
    return false;
  if (mask.boolean != 0 && mask_.load<int>(b, h, t, k) == 0) return false;
  return !additive_.present() || additive_.load<Real>(b, h, t, k) != -infinity<Real>;
}

template <class Real>
void Attention<Real>::score_row(QueryRow<Real>& row) {
  // Hidden keys take no part in the result; their scores are formed only for somebody who looks at them.
  const bool all = observed(QKCTS_STAGE_SCORES) || observed(QKCTS_STAGE_CAPPED) || propagates();
  row.scores.assign(row.visible.size(), 0);
  Real factor = tau(row);
  const qkcts_rounding& points = terms_.rounding;
  const std::span<const Real> plain = query(row.b, row.h, row.t);
  std::vector<Real> q(plain.begin(), plain.end());
  if (points.scaled_q != 0) {
    for (Real& x : q) x = rounded(points.scaled_q, x * factor);
    factor = 1;
  }
  for (std::int64_t k = 0; k < shape_.k_len; ++k)
    if (all || row.visible[k] != 0)
      row.scores[k] =
          rounded(points.scores, factor * rounded(points.product, dot<Real>(q, key(row.b, kv_head(row.h), k))));
}

template <class Real>
Real Attention<Real>::bias_of(const QueryRow<Real>& row, std::int64_t k) const {
  return additive_.load<Real>(row.b, row.h, row.t, k);
}

template <class Real>
double Attention<Real>::alibi_distance(const QueryRow<Real>& row, std::int64_t k) const {
  const std::int64_t place = row.t + query_offset(row.b);
  switch (terms_.logits.alibi) {
    case QKCTS_ALIBI_SYMMETRIC:
      return -static_cast<double>(std::abs(k - place));
    case QKCTS_ALIBI_LAST_KEY:
      return static_cast<double>(k - (shape_.k_len - 1));
    default:
      return static_cast<double>(k - place);
  }
}

template <class Real>
Real Attention<Real>::alibi_of(const QueryRow<Real>& row, std::int64_t k) const {
  return static_cast<Real>(slopes_[row.h] * alibi_distance(row, k));
}

template <class Real>
void Attention<Real>::cap_row(QueryRow<Real>& row) {
  const Real cap = static_cast<Real>(terms_.score.softcap);
  row.capped = row.scores;
  for (std::int64_t k = 0; k < shape_.k_len; ++k) {
    Real& s = row.capped[k];
    if (terms_.score.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP) s += bias_of(row, k);
    if (cap > 0) s = cap * std::tanh(s / cap);
    if (terms_.score.bias_order == QKCTS_BIAS_AFTER_SOFTCAP) s += bias_of(row, k);
    if (terms_.logits.alibi != QKCTS_ALIBI_NONE) s += alibi_of(row, k);
    s = rounded(terms_.rounding.capped, s);
  }
}

// QK-HIDDEN: a score takes the place of -inf, or -inf was added to it and NaN is left.
template <class Real>
bool Attention<Real>::is_added(const QueryRow<Real>& row, std::int64_t k) const {
  return propagates() && terms_.score.bias_order == QKCTS_BIAS_AFTER_SOFTCAP && bias_of(row, k) == -infinity<Real>;
}

template <class Real>
void Attention<Real>::mask_row(QueryRow<Real>& row) {
  row.masked = row.capped;
  for (std::int64_t k = 0; k < shape_.k_len; ++k)
    if (row.visible[k] == 0 && !is_added(row, k)) row.masked[k] = -infinity<Real>;
}

template <class Real>
Real Attention<Real>::power(Real x) const {
  return terms_.softmax.base == QKCTS_BASE_TWO ? std::exp2(x) : std::exp(x);
}

template <class Real>
Real Attention<Real>::logarithm(Real x) const {
  return terms_.softmax.base == QKCTS_BASE_TWO ? std::log2(x) : std::log(x);
}

template <class Real>
void Attention<Real>::empty_softmax(QueryRow<Real>& row) const {
  const auto keys = static_cast<Real>(row.visible.size());
  row.lse = -infinity<Real>;
  if (terms_.mask.empty_row == QKCTS_EMPTY_UNIFORM)
    row.probs.assign(row.visible.size(), rounded(terms_.rounding.probs, Real{1} / keys));
  if (terms_.mask.empty_row != QKCTS_EMPTY_NAN) return;
  row.lse = std::numeric_limits<Real>::quiet_NaN();
  row.probs.assign(row.visible.size(), row.lse);
}

template <class Real>
void Attention<Real>::softmax_row(QueryRow<Real>& row) {
  const std::size_t keys = row.visible.size();
  row.probs.assign(keys, 0);
  if (row.empty && !has_sink_column()) return empty_softmax(row);
  Real largest = has_sink_column() ? sink_of(row) : -infinity<Real>;
  for (std::size_t k = 0; k < keys; ++k)
    if (row.visible[k] != 0) largest = std::max(largest, row.masked[k]);
  Real sum = has_sink_column() ? power(sink_of(row) - largest) : 0;
  for (std::size_t k = 0; k < keys; ++k) {
    if (row.visible[k] == 0 && !std::isnan(row.masked[k])) continue;
    row.probs[k] = power(row.masked[k] - largest);
    sum += row.probs[k];
  }
  for (Real& p : row.probs) p = rounded(terms_.rounding.probs, p / sum);
  row.lse = largest + logarithm(sum);
}

template <class Real>
void Attention<Real>::output_row(QueryRow<Real>& row) {
  row.output.assign(static_cast<std::size_t>(shape_.v_head_dim), 0);
  // Only `uniform` gives weight to a hidden key. Anywhere else the value of one is multiplied by 0 where the contract
  // says so, and never touched where it does not, whatever it is.
  const bool uniform = row.empty && !has_sink_column() && terms_.mask.empty_row == QKCTS_EMPTY_UNIFORM;
  const bool all = uniform || propagates();
  for (std::int64_t k = 0; k < shape_.k_len; ++k) {
    if (row.visible[k] == 0 && !all) continue;
    const std::span<const Real> v = value(row.b, kv_head(row.h), k);
    for (std::size_t d = 0; d < v.size(); ++d) row.output[d] += row.probs[k] * v[d];
  }
  if (row.empty && std::isnan(row.lse)) row.output.assign(row.output.size(), row.lse);
  // Defined in base e only, so that lse is the natural logarithm whatever the stage returns.
  if (terms_.softmax.sink == QKCTS_SINK_POST_SCALE && !row.empty)
    for (Real& o : row.output) o /= 1 + std::exp(sink_of(row) - row.lse);
  for (Real& o : row.output) o = rounded(terms_.rounding.output, o);
}

template <class Real>
Real Attention<Real>::returned_lse(const QueryRow<Real>& row) const {
  if (terms_.softmax.base == terms_.softmax.lse_base) return row.lse;
  return row.lse * (terms_.softmax.base == QKCTS_BASE_TWO ? std::numbers::ln2_v<Real> : std::numbers::log2e_v<Real>);
}

template <class Real>
void Attention<Real>::store_row(const QueryRow<Real>& row) {
  const auto store = [&](qkcts_stage stage, const std::vector<Real>& values) {
    if (!observed(stage)) return;
    for (std::size_t i = 0; i < values.size(); ++i) stages_[stage].store(values[i], row.b, row.h, row.t, i);
  };
  store(QKCTS_STAGE_SCORES, row.scores);
  store(QKCTS_STAGE_CAPPED, row.capped);
  store(QKCTS_STAGE_MASKED, row.masked);
  store(QKCTS_STAGE_PROBS, row.probs);
  store(QKCTS_STAGE_OUTPUT, row.output);
  if (observed(QKCTS_STAGE_LSE)) stages_[QKCTS_STAGE_LSE].store(returned_lse(row), row.b, row.h, row.t);
}

template class Attention<float>;
template class Attention<double>;

}  // namespace qkcts::scalar
