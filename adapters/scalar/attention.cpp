// SPDX-License-Identifier: Apache-2.0
#include "adapters/scalar/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "adapters/scalar/rope.hpp"

namespace qkcts::scalar {

namespace {

template <class Real>
constexpr Real infinity = std::numeric_limits<Real>::infinity();

TensorView needed(const qkcts_tensor* tensor, const char* what) {
  if (tensor == nullptr) throw InvalidArguments(what);
  return TensorView(tensor);
}

template <class Real>
NormParameter<Real> parameter(std::uint32_t axes, const qkcts_tensor* tensor, const char* what) {
  if (axes == QKCTS_AXES_NONE) return {};
  return {axes, needed(tensor, what).template load_all<Real>()};
}

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

}  // namespace

template <class Real>
Attention<Real>::Attention(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                           const qkcts_outputs& outputs)
    : terms_(terms), shape_(shape) {
  vectors_in_[0] = needed(inputs.q, "q is missing");
  vectors_in_[1] = needed(inputs.k, "k is missing");
  values_in_ = needed(inputs.v, "v is missing");
  if (terms.q_norm.applied != 0) {
    gain_[0] = parameter<Real>(terms.q_norm.gain_axes, inputs.q_gain, "q_gain is missing");
    bias_[0] = parameter<Real>(terms.q_norm.bias_axes, inputs.q_bias, "q_bias is missing");
  }
  if (terms.k_norm.applied != 0) {
    gain_[1] = parameter<Real>(terms.k_norm.gain_axes, inputs.k_gain, "k_gain is missing");
    bias_[1] = parameter<Real>(terms.k_norm.bias_axes, inputs.k_bias, "k_bias is missing");
  }
  if (terms.rope.order != QKCTS_ROPE_NONE) {
    cos_ = needed(inputs.cos, "cos is missing");
    sin_ = needed(inputs.sin, "sin is missing");
    position_[0] = needed(inputs.q_position_ids, "q_position_ids is missing");
    position_[1] = needed(inputs.k_position_ids, "k_position_ids is missing");
  }
  if (terms.score.scale_form == QKCTS_SCALE_LEARNED_SCALAR) scale_ = needed(inputs.scale, "scale is missing");
  if (terms.score.bias_order != QKCTS_BIAS_NONE) additive_ = needed(inputs.bias, "bias is missing");
  if (terms.mask.boolean != 0) mask_ = needed(inputs.mask, "mask is missing");
  if (terms.mask.kv_lengths != 0 || terms.mask.alignment == QKCTS_BOTTOM_RIGHT_VALID) {
    kv_len_ = needed(inputs.kv_len, "kv_len is missing");
  }
  const std::uint32_t known = std::min<std::uint32_t>(outputs.count, QKCTS_STAGE_COUNT);
  for (std::uint32_t stage = 0; stage < known; ++stage) stages_[stage] = TensorView(outputs.stage[stage]);
  choose_scale();
}

// The constant is formed in binary64 and rounded once: the profile allows more, but there is nothing to gain from it.
template <class Real>
void Attention<Real>::choose_scale() {
  double scale = 1;
  switch (terms_.score.scale_form) {
    case QKCTS_SCALE_CONSTANT:
      scale = terms_.score.scale_value;
      break;
    case QKCTS_SCALE_INV_SQRT_SCALAR:
      scale = 1 / std::sqrt(terms_.score.scale_value);
      break;
    case QKCTS_SCALE_LEARNED_SCALAR:
      scale = scale_.load<double>(0);
      break;
    default:
      scale = 1 / std::sqrt(static_cast<double>(shape_.head_dim));
      break;
  }
  tau_ = static_cast<Real>(terms_.score.temperature == 0 ? scale : scale / terms_.score.temperature);
}

template <class Real>
void Attention<Real>::run() {
  prepare_vectors(Side::query);
  prepare_vectors(Side::key);
  prepare_values();
  QueryRow<Real> row;
  const auto keys = static_cast<std::size_t>(shape_.k_len);
  for (row.b = 0; row.b < shape_.batch; ++row.b) {
    for (row.h = 0; row.h < shape_.q_heads; ++row.h) {
      for (row.t = 0; row.t < shape_.q_len; ++row.t) {
        row.visible.assign(keys, 0);
        for (std::int64_t k = 0; k < shape_.k_len; ++k) row.visible[k] = visible(row.b, row.h, row.t, k) ? 1 : 0;
        row.empty = std::find(row.visible.begin(), row.visible.end(), 1) == row.visible.end();
        score_row(row);
        cap_row(row);
        mask_row(row);
        softmax_row(row);
        output_row(row);
        store_row(row);
      }
    }
  }
}

template <class Real>
void Attention<Real>::prepare_vectors(Side side) {
  const auto which = static_cast<std::size_t>(side);
  const bool query_side = side == Side::query;
  const std::int64_t heads = query_side ? shape_.q_heads : shape_.kv_heads;
  const std::int64_t length = query_side ? shape_.q_len : shape_.k_len;
  const std::int64_t dim = shape_.head_dim;
  const qkcts_norm& norm = norm_of(side);
  const qkcts_stage norm_stage = query_side ? QKCTS_STAGE_Q_NORM : QKCTS_STAGE_K_NORM;
  const qkcts_stage rope_stage = query_side ? QKCTS_STAGE_Q_ROPE : QKCTS_STAGE_K_ROPE;

  vectors_[which].resize(static_cast<std::size_t>(shape_.batch * heads * length * dim));
  std::vector<Real> token(static_cast<std::size_t>(heads * dim));
  const auto apply_norm = [&](std::int64_t b, std::int64_t t) {
    if (norm.applied == 0) return;
    normalise_token(side, token);
    if (observed(norm_stage)) store_token(norm_stage, b, t, token);
  };
  const auto apply_rope = [&](std::int64_t b, std::int64_t t) {
    rotate_token(side, b, t, token);
    if (observed(rope_stage)) store_token(rope_stage, b, t, token);
  };
  for (std::int64_t b = 0; b < shape_.batch; ++b) {
    for (std::int64_t t = 0; t < length; ++t) {
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t d = 0; d < dim; ++d) token[h * dim + d] = vectors_in_[which].template load<Real>(b, h, t, d);
      if (terms_.rope.order == QKCTS_ROPE_THEN_NORM) apply_rope(b, t);
      apply_norm(b, t);
      if (terms_.rope.order == QKCTS_NORM_THEN_ROPE) apply_rope(b, t);
      for (std::int64_t h = 0; h < heads; ++h)
        std::copy_n(token.begin() + h * dim, dim, vectors_[which].begin() + ((b * heads + h) * length + t) * dim);
    }
  }
}

template <class Real>
void Attention<Real>::prepare_values() {
  values_.clear();
  for (std::int64_t b = 0; b < shape_.batch; ++b)
    for (std::int64_t h = 0; h < shape_.kv_heads; ++h)
      for (std::int64_t t = 0; t < shape_.k_len; ++t)
        for (std::int64_t d = 0; d < shape_.v_head_dim; ++d)
          values_.push_back(values_in_.template load<Real>(b, h, t, d));
}

template <class Real>
void Attention<Real>::normalise_token(Side side, std::span<Real> token) {
  const auto which = static_cast<std::size_t>(side);
  const auto divisor = [&](std::span<const Real> group, Real mean) { return divisor_of(side, group, mean); };
  normalise<Real>(norm_of(side), gain_[which], bias_[which], shape_.head_dim, divisor, token);
}

template <class Real>
Real Attention<Real>::divisor_of(Side side, std::span<const Real> group, Real mean) const {
  return contract_divisor(norm_of(side), group, mean);
}

template <class Real>
void Attention<Real>::rotate_token(Side side, std::int64_t b, std::int64_t t, std::span<Real> token) {
  const auto row = position_[static_cast<std::size_t>(side)].template load<std::int64_t>(b, t);
  const std::int64_t pairs = rotated_lanes(terms_.rope, shape_.head_dim) / 2;
  std::vector<Real> cosine, sine;
  for (std::int64_t i = 0; i < pairs; ++i) {
    cosine.push_back(cos_.load<Real>(row, i));
    sine.push_back(sin_.load<Real>(row, i));
  }
  const auto dim = static_cast<std::size_t>(shape_.head_dim);
  for (std::size_t first = 0; first < token.size(); first += dim)
    rotate(terms_.rope, std::span<const Real>(cosine), std::span<const Real>(sine), token.subspan(first, dim));
}

template <class Real>
std::int64_t Attention<Real>::kv_head(std::int64_t h) const {
  return h / (shape_.q_heads / shape_.kv_heads);
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
Real Attention<Real>::bias_of(const QueryRow<Real>& row, std::int64_t k) const {
  return additive_.load<Real>(row.b, row.h, row.t, k);
}

template <class Real>
bool Attention<Real>::visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const {
  const qkcts_mask& mask = terms_.mask;
  const std::int64_t place = t + query_offset(b);
  if (mask.causal != 0 && k > place) return false;
  if (mask.has_window != 0 && mask.window_left >= 0 && place - k > mask.window_left) return false;
  if (mask.has_window != 0 && mask.window_right >= 0 && k - place > mask.window_right) return false;
  if (mask.kv_lengths != 0 && k >= kv_len_.load<std::int64_t>(b)) return false;
  if (mask.boolean != 0 && mask_.load<int>(b, h, t, k) == 0) return false;
  return !additive_.present() || additive_.load<Real>(b, h, t, k) != -infinity<Real>;
}

template <class Real>
void Attention<Real>::score_row(QueryRow<Real>& row) {
  // Hidden keys take no part in the result; their scores are formed only for somebody who looks at them.
  const bool all = observed(QKCTS_STAGE_SCORES) || observed(QKCTS_STAGE_CAPPED);
  row.scores.assign(row.visible.size(), 0);
  const std::span<const Real> q = query(row.b, row.h, row.t);
  for (std::int64_t k = 0; k < shape_.k_len; ++k)
    if (all || row.visible[k] != 0) row.scores[k] = tau_ * dot(q, key(row.b, kv_head(row.h), k));
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
  }
}

template <class Real>
void Attention<Real>::mask_row(QueryRow<Real>& row) {
  row.masked = row.capped;
  for (std::size_t k = 0; k < row.visible.size(); ++k)
    if (row.visible[k] == 0) row.masked[k] = -infinity<Real>;
}

template <class Real>
void Attention<Real>::softmax_row(QueryRow<Real>& row) {
  const std::size_t keys = row.visible.size();
  row.probs.assign(keys, 0);
  if (row.empty) {
    const bool nan = terms_.mask.empty_row == QKCTS_EMPTY_NAN;
    row.lse = nan ? std::numeric_limits<Real>::quiet_NaN() : -infinity<Real>;
    if (nan) row.probs.assign(keys, row.lse);
    if (terms_.mask.empty_row == QKCTS_EMPTY_UNIFORM) row.probs.assign(keys, Real{1} / static_cast<Real>(keys));
    return;
  }
  Real largest = -infinity<Real>;
  for (std::size_t k = 0; k < keys; ++k)
    if (row.visible[k] != 0) largest = std::max(largest, row.masked[k]);
  Real sum = 0;
  for (std::size_t k = 0; k < keys; ++k) {
    if (row.visible[k] == 0) continue;
    row.probs[k] = std::exp(row.masked[k] - largest);
    sum += row.probs[k];
  }
  for (Real& p : row.probs) p /= sum;
  row.lse = largest + std::log(sum);
}

template <class Real>
void Attention<Real>::output_row(QueryRow<Real>& row) {
  row.output.assign(static_cast<std::size_t>(shape_.v_head_dim), 0);
  // An empty row: its p are 0, NaN or 1/Lk over every key, hidden or not. Elsewhere a hidden value is never touched.
  for (std::int64_t k = 0; k < shape_.k_len; ++k) {
    if (row.visible[k] == 0 && !row.empty) continue;
    const std::span<const Real> v = value(row.b, kv_head(row.h), k);
    for (std::size_t d = 0; d < v.size(); ++d) row.output[d] += row.probs[k] * v[d];
  }
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
  if (observed(QKCTS_STAGE_LSE)) stages_[QKCTS_STAGE_LSE].store(row.lse, row.b, row.h, row.t);
}

template <class Real>
void Attention<Real>::store_token(qkcts_stage stage, std::int64_t b, std::int64_t t, std::span<const Real> token) {
  for (std::size_t i = 0; i < token.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    stages_[stage].store(token[i], b, place / shape_.head_dim, t, place % shape_.head_dim);
  }
}

template <class Real>
std::span<const Real> Attention<Real>::query(std::int64_t b, std::int64_t h, std::int64_t t) const {
  const std::int64_t row = (b * shape_.q_heads + h) * shape_.q_len + t;
  return std::span<const Real>(vectors_[0]).subspan(row * shape_.head_dim, shape_.head_dim);
}

template <class Real>
std::span<const Real> Attention<Real>::key(std::int64_t b, std::int64_t kv, std::int64_t t) const {
  const std::int64_t row = (b * shape_.kv_heads + kv) * shape_.k_len + t;
  return std::span<const Real>(vectors_[1]).subspan(row * shape_.head_dim, shape_.head_dim);
}

template <class Real>
std::span<const Real> Attention<Real>::value(std::int64_t b, std::int64_t kv, std::int64_t t) const {
  const std::int64_t row = (b * shape_.kv_heads + kv) * shape_.k_len + t;
  return std::span<const Real>(values_).subspan(row * shape_.v_head_dim, shape_.v_head_dim);
}

template class Attention<float>;
template class Attention<double>;

}  // namespace qkcts::scalar
