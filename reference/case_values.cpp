// SPDX-License-Identifier: Apache-2.0
#include "reference/case_values.hpp"

#include <cmath>

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

std::span<const double> SideValues::row(std::int64_t row) const {
  return std::span(x).subspan(static_cast<std::size_t>(row * head_dim), static_cast<std::size_t>(head_dim));
}

double SideValues::parameter(const std::vector<double>& values, std::uint32_t axes, std::int64_t head,
                             std::int64_t lane, std::int64_t head_dim) {
  switch (axes) {
    case QKCTS_AXES_SCALAR:
      return values[0];
    case QKCTS_AXES_HEAD_DIM:
      return values[static_cast<std::size_t>(lane)];
    case QKCTS_AXES_HEAD:
      return values[static_cast<std::size_t>(head)];
    default:  // [H, D] and the same memory under its other name
      return values[static_cast<std::size_t>(head * head_dim + lane)];
  }
}

CaseValues::CaseValues(const Case& c)
    : input(c), terms(c.contract.terms), shape(c.shape), stages(stages_of(c.contract.terms)) {
  const CaseInputs& inputs = c.inputs;
  q = {terms.q_norm,
       terms.q_range,
       shape.batch,
       shape.q_heads,
       shape.q_len,
       shape.head_dim,
       values_of(inputs, Input::q),
       values_of(inputs, Input::q_gain),
       values_of(inputs, Input::q_bias),
       positions_of(inputs, Input::q_position_ids)};
  k = {terms.k_norm,
       terms.k_range,
       shape.batch,
       shape.kv_heads,
       shape.k_len,
       shape.head_dim,
       values_of(inputs, Input::k),
       values_of(inputs, Input::k_gain),
       values_of(inputs, Input::k_bias),
       positions_of(inputs, Input::k_position_ids)};
  v = values_of(inputs, Input::v);
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

std::int64_t CaseValues::query_periods(std::int64_t b, std::int64_t qq) const {
  const qkcts_logits& logits = terms.logits;
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE) return 0;
  const std::int64_t position = q.position[static_cast<std::size_t>(b * shape.q_len + qq)];
  return (position + static_cast<std::int64_t>(logits.query_shift)) / static_cast<std::int64_t>(logits.query_period);
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
