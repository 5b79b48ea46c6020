// SPDX-License-Identifier: Apache-2.0
#include "vectors/relation_bounds.hpp"

#include <algorithm>

namespace qkcts {

RelationBounds::RelationBounds(const Relation& relation, const Case& c) : relation_(relation), case_(c) {
  if (relation.kind != RelationKind::sums_and_hull) return;
  const qkcts_shape& s = c.shape;
  for (std::int64_t row = 0; row < s.batch * s.q_heads * s.q_len; ++row)
    keys_.push_back(averaged_keys(static_cast<std::uint32_t>(row)));
  v_ = c.inputs.at(Input::v).values();
}

std::vector<std::uint32_t> RelationBounds::averaged_keys(std::uint32_t row) const {
  const qkcts_shape& s = case_.shape;
  const Visibility visibility(case_);
  const std::int64_t b = row / s.q_len / s.q_heads, h = row / s.q_len % s.q_heads, t = row % s.q_len;
  std::vector<std::uint32_t> keys;
  for (std::int64_t key = 0; key < s.k_len; ++key)
    if (visibility.visible(b, h, t, key)) keys.push_back(static_cast<std::uint32_t>(key));
  const bool uniform = case_.contract.terms.mask.empty_row == QKCTS_EMPTY_UNIFORM &&
                       case_.contract.terms.softmax.sink != QKCTS_SINK_COLUMN;
  if (keys.empty() && uniform)
    for (std::int64_t key = 0; key < s.k_len; ++key) keys.push_back(static_cast<std::uint32_t>(key));
  return keys;
}

ElementBounds RelationBounds::hull(std::uint32_t row, std::uint32_t column) const {
  const qkcts_shape& s = case_.shape;
  const std::int64_t b = row / s.q_len / s.q_heads, h = row / s.q_len % s.q_heads;
  const std::int64_t head = b * s.kv_heads + kv_head_of(case_.contract.terms, s, h);
  const auto value = [&](std::uint32_t key) {
    return v_[static_cast<std::size_t>((head * s.k_len + key) * s.v_head_dim + column)];
  };
  // A sink takes weight and brings no value: 0 is one of the points.
  const bool sink = case_.contract.terms.softmax.sink != QKCTS_SINK_NONE;
  ElementBounds bounds{value(keys_[row][0]), value(keys_[row][0])};
  for (const std::uint32_t key : keys_[row]) {
    bounds.low = std::min(bounds.low, value(key));
    bounds.high = std::max(bounds.high, value(key));
  }
  if (sink) bounds = {std::min(bounds.low, 0.0), std::max(bounds.high, 0.0)};
  return bounds;
}

std::optional<ElementBounds> RelationBounds::of(qkcts_stage stage, std::uint32_t row, std::uint32_t column) const {
  switch (relation_.kind) {
    case RelationKind::score_bound:
      return ElementBounds{-relation_.bounds[stage], relation_.bounds[stage]};
    case RelationKind::weight_bound:
      return ElementBounds{0, relation_.row_bounds[row]};
    default:
      break;
  }
  if (keys_[row].empty()) return std::nullopt;
  if (stage == QKCTS_STAGE_PROBS) return ElementBounds{0, 1};
  // What a norm or clamp makes of the values is no input.
  if (transforms(case_.contract.terms.v_norm, case_.contract.terms.v_range)) return std::nullopt;
  return hull(row, column);
}

std::optional<ElementBounds> RelationBounds::of_sum(std::uint32_t row) const {
  if (relation_.kind != RelationKind::sums_and_hull || keys_[row].empty()) return std::nullopt;
  const bool column = case_.contract.terms.softmax.sink == QKCTS_SINK_COLUMN;
  return ElementBounds{column ? 0.0 : 1.0, 1};
}

}  // namespace qkcts
