// SPDX-License-Identifier: Apache-2.0
// What happens once per call: the inputs that the contract needs, the scale, and the walk over the rows.
#include "adapters/scalar/attention.hpp"

#include <algorithm>
#include <cmath>

#include "adapters/scalar/angles.hpp"
#include "adapters/scalar/rounding.hpp"

namespace qkcts::scalar {

namespace {

TensorView needed(const qkcts_tensor* tensor, const char* what) {
  if (tensor == nullptr) throw InvalidArguments(what);
  return TensorView(tensor);
}

template <class Real>
NormParameter<Real> parameter(std::uint32_t applied, std::uint32_t axes, const qkcts_tensor* tensor, const char* what) {
  if (applied == 0 || axes == QKCTS_AXES_NONE) return {};
  return {axes, needed(tensor, what).template load_all<Real>()};
}

}  // namespace

template <class Real>
Attention<Real>::Attention(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                           const qkcts_outputs& outputs)
    : terms_(terms), shape_(shape) {
  bind_vectors(inputs);
  if (terms.projection.form != QKCTS_PROJECTION_NONE) bind_projection(inputs);
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

// Inputs that came with a clause are given only beside it, so an old host's shorter list is never read too far.
template <class Real>
void Attention<Real>::bind_vectors(const qkcts_inputs& inputs) {
  if (terms_.projection.form == QKCTS_PROJECTION_NONE) {
    vectors_in_[Side::query] = needed(inputs.q, "q is missing");
    vectors_in_[Side::key] = needed(inputs.k, "k is missing");
  }
  vectors_in_[Side::value] = needed(inputs.v, "v is missing");
  const auto bind_norm = [&](Side side, const qkcts_tensor* gain, const char* no_gain, const qkcts_tensor* bias,
                             const char* no_bias) {
    const qkcts_norm& norm = norm_of(side);
    gain_[side] = parameter<Real>(norm.applied, norm.gain_axes, gain, no_gain);
    bias_[side] = parameter<Real>(norm.applied, norm.bias_axes, bias, no_bias);
  };
  bind_norm(Side::query, inputs.q_gain, "q_gain is missing", inputs.q_bias, "q_bias is missing");
  bind_norm(Side::key, inputs.k_gain, "k_gain is missing", inputs.k_bias, "k_bias is missing");
  if (terms_.v_norm.applied != 0)
    bind_norm(Side::value, inputs.v_gain, "v_gain is missing", inputs.v_bias, "v_bias is missing");
}

template <class Real>
void Attention<Real>::bind_projection(const qkcts_inputs& inputs) {
  const qkcts_projection& terms = terms_.projection;
  const auto all = [](const qkcts_tensor* tensor, const char* what) {
    return needed(tensor, what).template load_all<Real>();
  };
  Projection<Real>& q = projection_[Side::query];
  q.x = needed(inputs.q_x, "q_x is missing");
  q.weight = all(inputs.q_weight, "q_weight is missing");
  if (terms.bias != 0) q.bias = all(inputs.q_weight_bias, "q_weight_bias is missing");
  const qkcts_norm& q_norm = terms.q_input;
  q.norm_gain = parameter<Real>(q_norm.applied, q_norm.gain_axes, inputs.q_x_gain, "q_x_gain is missing");
  q.norm_bias = parameter<Real>(q_norm.applied, q_norm.bias_axes, inputs.q_x_bias, "q_x_bias is missing");

  Projection<Real>& k = projection_[Side::key];
  k.x = needed(inputs.k_x, "k_x is missing");
  k.weight = all(inputs.k_weight, "k_weight is missing");
  if (terms.bias != 0) k.bias = all(inputs.k_weight_bias, "k_weight_bias is missing");
  const qkcts_norm& k_norm = terms.k_input;
  k.norm_gain = parameter<Real>(k_norm.applied, k_norm.gain_axes, inputs.k_x_gain, "k_x_gain is missing");
  k.norm_bias = parameter<Real>(k_norm.applied, k_norm.bias_axes, inputs.k_x_bias, "k_x_bias is missing");
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
  for (const Side side : {Side::query, Side::key, Side::value}) prepare_vectors(side);
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
Real Attention<Real>::rounded_to(std::uint32_t format, Real x) const {
  const Overflow overflow = terms_.rounding.saturate != 0 ? Overflow::saturates : Overflow::to_infinity;
  return static_cast<Real>(nearest(format, overflow, static_cast<double>(x)));
}

template <class Real>
const qkcts_norm& Attention<Real>::norm_of(Side side) const {
  return side == Side::query ? terms_.q_norm : side == Side::key ? terms_.k_norm : terms_.v_norm;
}

template <class Real>
const qkcts_norm& Attention<Real>::input_norm_of(Side side) const {
  return side == Side::query ? terms_.projection.q_input : terms_.projection.k_input;
}

template <class Real>
const qkcts_norm_range& Attention<Real>::range_of(Side side) const {
  return side == Side::query ? terms_.q_range : side == Side::key ? terms_.k_range : terms_.v_range;
}

template <class Real>
qkcts_norm_range& Attention<Real>::range_of(Side side) {
  return side == Side::query ? terms_.q_range : side == Side::key ? terms_.k_range : terms_.v_range;
}

template <class Real>
const qkcts_vector_rounding& Attention<Real>::points_of(Side side) const {
  return side == Side::query ? terms_.rounding.q : side == Side::key ? terms_.rounding.k : terms_.rounding.v;
}

template <class Real>
const qkcts_input_rounding& Attention<Real>::input_points_of(Side side) const {
  return side == Side::query ? terms_.rounding.q_input : terms_.rounding.k_input;
}

template <class Real>
std::span<const Real> Attention<Real>::vector(Side side, std::int64_t b, std::int64_t h, std::int64_t t) const {
  const std::int64_t row = (b * heads_of(side) + h) * length_of(side) + t;
  return std::span<const Real>(vectors_[side]).subspan(row * width_of(side), width_of(side));
}

template <class Real>
std::span<const Real> Attention<Real>::query(std::int64_t b, std::int64_t h, std::int64_t t) const {
  return vector(Side::query, b, h, t);
}

template <class Real>
std::span<const Real> Attention<Real>::key(std::int64_t b, std::int64_t kv, std::int64_t t) const {
  return vector(Side::key, b, kv, t);
}

template <class Real>
std::span<const Real> Attention<Real>::value(std::int64_t b, std::int64_t kv, std::int64_t t) const {
  return vector(Side::value, b, kv, t);
}

template class Attention<float>;
template class Attention<double>;

}  // namespace qkcts::scalar
