// SPDX-License-Identifier: Apache-2.0
// The stages of contract.hpp: names, which exist under a contract, and their shapes.
#include "conformance/contract.hpp"

namespace qkcts {
namespace {

struct StageRow {
  std::string_view name;
  std::string_view clause;
};

constexpr std::array<StageRow, QKCTS_STAGE_COUNT> table = {{
    {"q_norm", "QK-NORM"},
    {"k_norm", "QK-NORM"},
    {"q_rope", "QK-ROPE"},
    {"k_rope", "QK-ROPE"},
    {"scores", "QK-SCALE"},
    {"capped", "QK-CAP"},
    {"masked", "QK-MASK"},
    {"probs", "QK-SOFTMAX"},
    {"lse", "QK-LSE"},
    {"output", "QK-OUT"},
    {"q_proj", "QK-PROJ"},
    {"k_proj", "QK-PROJ"},
    {"v_norm", "QK-VNORM"},
}};

}  // namespace

std::string_view stage_name(qkcts_stage stage) {
  return table[stage].name;
}

std::string_view stage_clause(qkcts_stage stage) {
  return table[stage].clause;
}

std::optional<qkcts_stage> stage_named(std::string_view name) {
  for (const qkcts_stage stage : all_stages)
    if (stage_name(stage) == name) return stage;
  return std::nullopt;
}

bool hides_keys(const qkcts_contract& terms) {
  return terms.mask.causal != 0 || terms.mask.kv_lengths != 0 || terms.mask.boolean != 0 ||
         terms.mask.has_window != 0 || terms.score.bias_order != QKCTS_BIAS_NONE || terms.regions.chunk != 0 ||
         terms.regions.documents != 0;
}

bool transforms(const qkcts_norm& norm, const qkcts_norm_range& range) {
  return norm.applied != 0 || range.clip_before != 0 || range.clip_after != 0 ||
         (range.multiplier != 0 && range.multiplier != 1);
}

StageSet stages_of(const qkcts_contract& terms) {
  StageSet set = bit(QKCTS_STAGE_SCORES) | bit(QKCTS_STAGE_PROBS) | bit(QKCTS_STAGE_LSE) | bit(QKCTS_STAGE_OUTPUT);
  if (transforms(terms.q_norm, terms.q_range)) set |= bit(QKCTS_STAGE_Q_NORM);
  if (transforms(terms.k_norm, terms.k_range)) set |= bit(QKCTS_STAGE_K_NORM);
  if (transforms(terms.v_norm, terms.v_range)) set |= bit(QKCTS_STAGE_V_NORM);
  if (terms.projection.form != QKCTS_PROJECTION_NONE) set |= bit(QKCTS_STAGE_Q_PROJ) | bit(QKCTS_STAGE_K_PROJ);
  if (terms.rope.order != QKCTS_ROPE_NONE) set |= bit(QKCTS_STAGE_Q_ROPE) | bit(QKCTS_STAGE_K_ROPE);
  if (terms.score.softcap > 0 || terms.score.bias_order != QKCTS_BIAS_NONE || terms.logits.alibi != QKCTS_ALIBI_NONE)
    set |= bit(QKCTS_STAGE_CAPPED);
  if (hides_keys(terms)) set |= bit(QKCTS_STAGE_MASKED);
  return set;
}

std::vector<std::int64_t> stage_shape(qkcts_stage stage, const qkcts_shape& s) {
  switch (stage) {
    case QKCTS_STAGE_Q_PROJ:
    case QKCTS_STAGE_Q_NORM:
    case QKCTS_STAGE_Q_ROPE:
      return {s.batch, s.q_heads, s.q_len, s.head_dim};
    case QKCTS_STAGE_K_PROJ:
    case QKCTS_STAGE_K_NORM:
    case QKCTS_STAGE_K_ROPE:
      return {s.batch, s.kv_heads, s.k_len, s.head_dim};
    case QKCTS_STAGE_V_NORM:
      return {s.batch, s.kv_heads, s.k_len, s.v_head_dim};
    case QKCTS_STAGE_LSE:
      return {s.batch, s.q_heads, s.q_len};
    case QKCTS_STAGE_OUTPUT:
      return {s.batch, s.q_heads, s.q_len, s.v_head_dim};
    default:
      return {s.batch, s.q_heads, s.q_len, s.k_len};
  }
}

std::int64_t row_length(qkcts_stage stage, const qkcts_shape& shape) {
  return stage == QKCTS_STAGE_LSE ? 1 : stage_shape(stage, shape).back();
}

std::int64_t row_count(qkcts_stage stage, const qkcts_shape& shape) {
  const std::vector<std::int64_t> extents = stage_shape(stage, shape);
  return extents[0] * extents[1] * extents[2];
}

}  // namespace qkcts
