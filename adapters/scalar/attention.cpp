// SPDX-License-Identifier: Apache-2.0
// What happens once per call or per token: the inputs that the contract needs, norm and rotation of q and k.
#include "adapters/scalar/attention.hpp"

#include <algorithm>
#include <cmath>

#include "adapters/scalar/angles.hpp"

namespace qkcts::scalar {

namespace {

TensorView needed(const qkcts_tensor* tensor, const char* what) {
  if (tensor == nullptr) throw InvalidArguments(what);
  return TensorView(tensor);
}

template <class Real>
NormParameter<Real> parameter(std::uint32_t axes, const qkcts_tensor* tensor, const char* what) {
  if (axes == QKCTS_AXES_NONE) return {};
  return {axes, needed(tensor, what).template load_all<Real>()};
}

// QK-CLIP; a bound of 0 says that there is none. A NaN stays one.
template <class Real>
void clamp(double bound, std::span<Real> token) {
  if (bound == 0) return;
  const Real c = static_cast<Real>(bound);
  for (Real& x : token) x = std::min(std::max(x, -c), c);
}

}  // namespace

template <class Real>
Attention<Real>::Attention(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                           const qkcts_outputs& outputs)
    : terms_(terms), shape_(shape) {
  vectors_in_[0] = needed(inputs.q, "q is missing");
  vectors_in_[1] = needed(inputs.k, "k is missing");
  values_in_ = needed(inputs.v, "v is missing");
  bind_norm(Side::query, inputs.q_gain, inputs.q_bias);
  bind_norm(Side::key, inputs.k_gain, inputs.k_bias);
  bind_positions(inputs);
  bind_mask(inputs);
  if (terms.score.scale_form == QKCTS_SCALE_LEARNED_SCALAR) learned_scale_ = needed(inputs.scale, "scale is missing");
  if (terms.score.bias_order != QKCTS_BIAS_NONE) additive_ = needed(inputs.bias, "bias is missing");
  if (terms.logits.alibi != QKCTS_ALIBI_NONE)
    slopes_ = needed(inputs.alibi_slopes, "alibi_slopes is missing").template load_all<double>();
  if (terms.softmax.sink != QKCTS_SINK_NONE) sinks_ = needed(inputs.sink, "sink is missing").template load_all<Real>();
  const std::uint32_t known = std::min<std::uint32_t>(outputs.count, QKCTS_STAGE_COUNT);
  for (std::uint32_t stage = 0; stage < known; ++stage) stages_[stage] = TensorView(outputs.stage[stage]);
  choose_scale();
}

template <class Real>
void Attention<Real>::bind_norm(Side side, const qkcts_tensor* gain, const qkcts_tensor* bias) {
  const qkcts_norm& norm = norm_of(side);
  if (norm.applied == 0) return;
  const bool query_side = side == Side::query;
  const auto which = static_cast<std::size_t>(side);
  gain_[which] = parameter<Real>(norm.gain_axes, gain, query_side ? "q_gain is missing" : "k_gain is missing");
  bias_[which] = parameter<Real>(norm.bias_axes, bias, query_side ? "q_bias is missing" : "k_bias is missing");
}

template <class Real>
void Attention<Real>::bind_positions(const qkcts_inputs& inputs) {
  const bool rotates = terms_.rope.order != QKCTS_ROPE_NONE;
  if (rotates && terms_.rotation.angles == QKCTS_ANGLES_TABLE) {
    cos_ = needed(inputs.cos, "cos is missing");
    sin_ = needed(inputs.sin, "sin is missing");
  }
  if (rotates && terms_.rotation.angles == QKCTS_ANGLES_COMPUTED)
    frequencies_ = frequencies(terms_.rope, terms_.rotation, rotated_lanes(terms_.rope, shape_.head_dim));
  if (rotates) position_[1] = needed(inputs.k_position_ids, "k_position_ids is missing");
  if (rotates || terms_.logits.query_temperature != QKCTS_QUERY_TEMPERATURE_NONE)
    position_[0] = needed(inputs.q_position_ids, "q_position_ids is missing");
}

template <class Real>
void Attention<Real>::bind_mask(const qkcts_inputs& inputs) {
  if (terms_.mask.boolean != 0) mask_ = needed(inputs.mask, "mask is missing");
  if (terms_.mask.kv_lengths != 0 || terms_.mask.alignment == QKCTS_BOTTOM_RIGHT_VALID)
    kv_len_ = needed(inputs.kv_len, "kv_len is missing");
  if (terms_.regions.documents != 0) {
    documents_[0] = needed(inputs.q_document_ids, "q_document_ids is missing");
    documents_[1] = needed(inputs.k_document_ids, "k_document_ids is missing");
  }
  if (terms_.regions.prefix != 0) prefix_len_ = needed(inputs.prefix_len, "prefix_len is missing");
}

// The constants are formed in binary64: the profile allows more, but there is nothing to gain from it.
template <class Real>
void Attention<Real>::choose_scale() {
  const double temperature = terms_.score.temperature == 0 ? 1 : terms_.score.temperature;
  for (std::int64_t h = 0; h < shape_.q_heads; ++h) {
    double scale = 1 / std::sqrt(static_cast<double>(shape_.head_dim));
    if (terms_.score.scale_form == QKCTS_SCALE_CONSTANT) scale = terms_.score.scale_value;
    if (terms_.score.scale_form == QKCTS_SCALE_INV_SQRT_SCALAR) scale = 1 / std::sqrt(terms_.score.scale_value);
    if (terms_.score.scale_form == QKCTS_SCALE_LEARNED_SCALAR) {
      scale = learned_scale_.load<double>(terms_.logits.scale_axes == QKCTS_SCALE_PER_HEAD ? h : 0);
      const double cap = terms_.logits.scale_exp_cap;
      if (cap != 0) scale = std::exp(std::min(scale, cap));
    }
    tau_.push_back(scale / temperature);
  }
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
  const qkcts_stage norm_stage = query_side ? QKCTS_STAGE_Q_NORM : QKCTS_STAGE_K_NORM;
  const qkcts_stage rope_stage = query_side ? QKCTS_STAGE_Q_ROPE : QKCTS_STAGE_K_ROPE;

  vectors_[which].resize(static_cast<std::size_t>(shape_.batch * heads * length * dim));
  std::vector<Real> token(static_cast<std::size_t>(heads * dim));
  const auto apply_norm = [&](std::int64_t b, std::int64_t t) {
    transform_token(side, token);
    if (observed(norm_stage)) store_token(norm_stage, b, t, token);
  };
  const auto apply_rope = [&](std::int64_t b, std::int64_t t) {
    const Turn<Real> turn = turn_at(side, position_of(side, b, t));
    for (std::int64_t h = 0; h < heads; ++h) rotate_head(turn, std::span(token).subspan(h * dim, dim));
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
void Attention<Real>::transform_token(Side side, std::span<Real> token) {
  const qkcts_norm_range& range = range_of(side);
  clamp(range.clip_before, token);
  if (norm_of(side).applied != 0) normalise_token(side, token);
  if (range.multiplier != 0) {
    for (Real& x : token) x *= static_cast<Real>(range.multiplier);
  }
  clamp(range.clip_after, token);
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
std::int64_t Attention<Real>::position_of(Side side, std::int64_t b, std::int64_t t) const {
  return position_[static_cast<std::size_t>(side)].template load<std::int64_t>(b, t);
}

template <class Real>
Turn<Real> Attention<Real>::turn_at(Side /*side*/, std::int64_t position) const {
  // Tables hold the factor of QK-ROPE-11 already.
  const double factor = terms_.rotation.attention_factor == 0 ? 1 : terms_.rotation.attention_factor;
  const bool computed = terms_.rotation.angles == QKCTS_ANGLES_COMPUTED;
  Turn<Real> turn;
  for (std::int64_t i = 0; i < rotated_lanes(terms_.rope, shape_.head_dim) / 2; ++i) {
    const double angle = computed ? static_cast<double>(position) * frequencies_[i] : 0;
    turn.cosine.push_back(computed ? static_cast<Real>(factor * std::cos(angle)) : cos_.load<Real>(position, i));
    turn.sine.push_back(computed ? static_cast<Real>(factor * std::sin(angle)) : sin_.load<Real>(position, i));
  }
  return turn;
}

template <class Real>
void Attention<Real>::rotate_head(const Turn<Real>& turn, std::span<Real> head) const {
  rotate(terms_.rope, terms_.rotation, turn, head);
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
