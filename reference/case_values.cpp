// SPDX-License-Identifier: Apache-2.0
#include "reference/case_values.hpp"

#include <algorithm>
#include <cmath>

#include "conformance/parameter_place.hpp"
#include "conformance/seen_keys.hpp"

namespace qkcts {
namespace {

std::vector<double> values_of(const CaseInputs& inputs, Input input) {
  return inputs.has(input) ? inputs.at(input).values() : std::vector<double>{};
}

std::vector<std::uint32_t> positions_of(const CaseInputs& inputs, Input input) {
  std::vector<std::uint32_t> positions;
  for (const double id : values_of(inputs, input)) positions.push_back(static_cast<std::uint32_t>(id));
  return positions;
}

}  // namespace

std::int64_t SideValues::heads_in_group() const {
  return norm.applied != 0 && norm.axis == QKCTS_AXIS_FULL_WIDTH ? heads : 1;
}

std::int64_t SideValues::group_count() const {
  return batch * heads * length / heads_in_group();
}

std::int64_t SideValues::token_of(std::int64_t row) const {
  return row / (heads * length) * length + row % length;
}

std::int64_t SideValues::group_of(std::int64_t row) const {
  return heads_in_group() == 1 ? row : token_of(row);
}

std::int64_t SideValues::first_head(std::int64_t group) const {
  return heads_in_group() == 1 ? group / length % heads : 0;
}

std::int64_t SideValues::row_of(std::int64_t group, std::int64_t member) const {
  if (heads_in_group() == 1) return group;
  return (group / length * heads + member) * length + group % length;
}

double SideValues::parameter(const std::vector<double>& values, std::uint32_t axes, std::int64_t head,
                             std::int64_t lane, std::int64_t head_dim) {
  return values[parameter_place(axes, head, lane, head_dim)];
}

CaseValues::CaseValues(const Case& c)
    : input(c), terms(c.contract.terms), shape(c.shape), stages(stages_of(c.contract.terms)) {
  const CaseInputs& inputs = c.inputs;
  const auto side = [&](const qkcts_norm& norm, const qkcts_norm_range& range, std::int64_t heads, std::int64_t length,
                        std::int64_t width, Input x, Input gain, Input bias) {
    SideValues made;
    made.norm = norm;
    made.range = range;
    made.batch = shape.batch;
    made.heads = heads;
    made.length = length;
    made.head_dim = width;
    made.x = values_of(inputs, x);
    made.gain = values_of(inputs, gain);
    made.bias = values_of(inputs, bias);
    return made;
  };
  q = side(terms.q_norm, terms.q_range, shape.q_heads, shape.q_len, shape.head_dim, Input::q, Input::q_gain,
           Input::q_bias);
  k = side(terms.k_norm, terms.k_range, shape.kv_heads, shape.k_len, shape.head_dim, Input::k, Input::k_gain,
           Input::k_bias);
  v = side(terms.v_norm, terms.v_range, shape.kv_heads, shape.k_len, shape.v_head_dim, Input::v, Input::v_gain,
           Input::v_bias);
  q.position = positions_of(inputs, Input::q_position_ids);
  k.position = positions_of(inputs, Input::k_position_ids);
  q.rope_order = k.rope_order = terms.rope.order;
  if (terms.projection.form != QKCTS_PROJECTION_NONE) {
    q_projection_ = {side(terms.projection.q_input, {}, 1, shape.q_len, inputs.at(Input::q_x).shape.back(), Input::q_x,
                          Input::q_x_gain, Input::q_x_bias),
                     values_of(inputs, Input::q_weight), values_of(inputs, Input::q_weight_bias)};
    k_projection_ = {side(terms.projection.k_input, {}, 1, shape.k_len, inputs.at(Input::k_x).shape.back(), Input::k_x,
                          Input::k_x_gain, Input::k_x_bias),
                     values_of(inputs, Input::k_weight), values_of(inputs, Input::k_weight_bias)};
  }
  cos = values_of(inputs, Input::cos);
  sin = values_of(inputs, Input::sin);
  if (terms.rope.order != QKCTS_ROPE_NONE && terms.rotation.angles == QKCTS_ANGLES_COMPUTED)
    frequencies.emplace(terms.rope, terms.rotation, shape.head_dim);
  scale_ = values_of(inputs, Input::scale);
  slopes_ = values_of(inputs, Input::alibi_slopes);
  sinks_ = values_of(inputs, Input::sink);
  if (inputs.has(Input::bias)) {
    bias_ = values_of(inputs, Input::bias);
    bias_batch_ = inputs.at(Input::bias).shape[0];
    bias_heads_ = inputs.at(Input::bias).shape[1];
  }
  const Visibility visibility(c);
  for (std::int64_t b = 0; b < shape.batch && has_linear_bias(); ++b) offsets_.push_back(visibility.offset(b));
  if (terms.softmax.hidden_values == QKCTS_HIDDEN_EXCLUDED) {
    excluded_ = seen_keys(c);
    excluded_.flip();
  }
}

const Projection* CaseValues::projection(Side which) const {
  if (which == Side::value) return nullptr;
  const std::optional<Projection>& projection = which == Side::query ? q_projection_ : k_projection_;
  return projection ? &*projection : nullptr;
}

std::size_t CaseValues::table_entry(std::int64_t head, std::uint32_t position) const {
  const Tensor& table = input.inputs.at(Input::cos);
  const std::int64_t plane = table.shape.size() == 3 ? head * table.shape[1] : 0;
  return static_cast<std::size_t>((plane + static_cast<std::int64_t>(position)) * table.shape.back());
}

QueryRatio CaseValues::query_ratio(std::int64_t b, std::int64_t qq) const {
  const qkcts_logits& logits = terms.logits;
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE) return {};
  const auto period = static_cast<std::int64_t>(logits.query_period);
  const std::int64_t shifted = static_cast<std::int64_t>(q.position[static_cast<std::size_t>(b * shape.q_len + qq)]) +
                               static_cast<std::int64_t>(logits.query_shift);
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_LOG) return {1 + shifted / period, 1};
  return {std::max(shifted, period), period};
}

LinearBias CaseValues::linear_bias(std::int64_t b, std::int64_t h, std::int64_t qq, std::int64_t kk) const {
  const double slope = slopes_[static_cast<std::size_t>(h)];
  if (terms.logits.alibi == QKCTS_ALIBI_LAST_KEY) return {slope, static_cast<double>(kk - (shape.k_len - 1))};
  const auto distance = static_cast<double>(kk - (qq + offsets_[static_cast<std::size_t>(b)]));
  return {slope, terms.logits.alibi == QKCTS_ALIBI_SYMMETRIC ? -std::fabs(distance) : distance};
}

double CaseValues::bias(std::int64_t b, std::int64_t h, std::int64_t qq, std::int64_t kk) const {
  const std::int64_t plane = (bias_batch_ == 1 ? 0 : b) * bias_heads_ + (bias_heads_ == 1 ? 0 : h);
  return bias_[static_cast<std::size_t>((plane * shape.q_len + qq) * shape.k_len + kk)];
}

}  // namespace qkcts
