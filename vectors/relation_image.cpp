// SPDX-License-Identifier: Apache-2.0
#include "vectors/relation_image.hpp"

#include <algorithm>

#include "conformance/case.hpp"
#include "vectors/layout.hpp"

namespace qkcts {
namespace {

bool has_keys_as_columns(qkcts_stage stage) {
  return stage == QKCTS_STAGE_SCORES || stage == QKCTS_STAGE_CAPPED || stage == QKCTS_STAGE_MASKED ||
         stage == QKCTS_STAGE_PROBS;
}

// Stages that hold a vector of one side.
bool is_of_query_vector(qkcts_stage stage) {
  return stage == QKCTS_STAGE_Q_NORM || stage == QKCTS_STAGE_Q_ROPE;
}
bool is_of_key_vector(qkcts_stage stage) {
  return stage == QKCTS_STAGE_K_NORM || stage == QKCTS_STAGE_K_ROPE;
}

}  // namespace

RelationImage::RelationImage(const Relation& relation, const RelationCase& first, const RelationCase& second)
    : relation_(relation), first_(first), second_(second) {
  place_of_key_.resize(relation.permutation.size());
  for (std::size_t j = 0; j < relation.permutation.size(); ++j)
    place_of_key_[relation.permutation[j]] = static_cast<std::uint32_t>(j);
  if (relation.kind != RelationKind::repeated_heads) return;
  query_head_of_.assign(static_cast<std::size_t>(first.shape.kv_heads), 0);
  for (std::int64_t h = first.shape.q_heads; h-- > 0;)
    query_head_of_[static_cast<std::size_t>(kv_head_of(first.terms, first.shape, h))] = static_cast<std::uint32_t>(h);
}

std::optional<std::uint32_t> RelationImage::key_row(std::uint32_t row) const {
  const auto keys = static_cast<std::uint32_t>(first_.shape.k_len);
  const auto heads = static_cast<std::uint32_t>(first_.shape.kv_heads);
  const std::uint32_t key = row % keys, head = row / keys % heads, batch = row / keys / heads;
  switch (relation_.kind) {
    case RelationKind::batch_position:
      return row + static_cast<std::uint32_t>(relation_.entry) * heads * keys;
    case RelationKind::key_permutation:
      return row - key + place_of_key_[key];
    case RelationKind::repeated_heads:
      return (batch * static_cast<std::uint32_t>(second_.shape.kv_heads) + query_head_of_[head]) * keys + key;
    case RelationKind::prefix:
      if (key >= relation_.from_key) return std::nullopt;
      return row;
    default:
      return row;
  }
}

std::optional<std::uint32_t> RelationImage::query_row(std::uint32_t row) const {
  if (relation_.kind == RelationKind::batch_position)
    return row + static_cast<std::uint32_t>(relation_.entry * first_.shape.q_heads * first_.shape.q_len);
  if (relation_.kind == RelationKind::prefix && !std::binary_search(relation_.rows.begin(), relation_.rows.end(), row))
    return std::nullopt;
  return row;
}

void RelationImage::transform(qkcts_stage stage, ElementImage& image) const {
  const qkcts_contract& terms = first_.terms;
  switch (relation_.kind) {
    case RelationKind::eps_rescaling: {
      // What is rotated before it is normalised is still 2^k times as large.
      const bool query = stage == QKCTS_STAGE_Q_ROPE && terms.q_norm.applied != 0;
      const bool key = stage == QKCTS_STAGE_K_ROPE && terms.k_norm.applied != 0;
      if (terms.rope.order == QKCTS_ROPE_THEN_NORM && (query || key)) image.exponent = relation_.exponent;
      break;
    }
    case RelationKind::value_scale:
      if (stage == QKCTS_STAGE_OUTPUT) image.exponent = relation_.exponent;
      break;
    case RelationKind::value_sign:
      image.negated = stage == QKCTS_STAGE_OUTPUT || stage == QKCTS_STAGE_V_NORM;
      break;
    case RelationKind::joint_sign:
      image.negated = is_of_query_vector(stage) || is_of_key_vector(stage);
      break;
    case RelationKind::score_shift:
      if (stage == QKCTS_STAGE_CAPPED || stage == QKCTS_STAGE_MASKED || stage == QKCTS_STAGE_LSE)
        image.shift = relation_.shift;
      break;
    default:
      break;
  }
}

std::optional<ElementImage> RelationImage::of(qkcts_stage stage, std::uint32_t row, std::uint32_t column) const {
  const std::optional<std::uint32_t> place = is_of_keys(stage) ? key_row(row) : query_row(row);
  if (!place) return std::nullopt;
  ElementImage image;
  image.row = *place;
  image.column = !place_of_key_.empty() && has_keys_as_columns(stage) ? place_of_key_[column] : column;
  transform(stage, image);
  return image;
}

}  // namespace qkcts
