// SPDX-License-Identifier: Apache-2.0
// The stages of contract.hpp: names, which exist under a contract, and their shapes.
#include <cstddef>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

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

bool has_rounding_points(const qkcts_rounding& rounding) {
  std::uint32_t points[sizeof rounding / sizeof(std::uint32_t)];
  std::memcpy(points, &rounding, sizeof rounding);
  const auto saturate = offsetof(qkcts_rounding, saturate) / sizeof(std::uint32_t);
  for (std::size_t i = 0; i < std::size(points); ++i)
    if (i != saturate && points[i] != 0) return true;
  return false;
}

std::uint32_t stage_point(const qkcts_contract& terms, qkcts_stage stage) {
  const qkcts_rounding& rounding = terms.rounding;
  switch (stage) {
    case QKCTS_STAGE_Q_PROJ:
      return rounding.q.projection;
    case QKCTS_STAGE_K_PROJ:
      return rounding.k.projection;
    case QKCTS_STAGE_Q_NORM:
      return rounding.q.norm;
    case QKCTS_STAGE_K_NORM:
      return rounding.k.norm;
    case QKCTS_STAGE_V_NORM:
      return rounding.v.norm;
    case QKCTS_STAGE_Q_ROPE:
      return rounding.q.rope;
    case QKCTS_STAGE_K_ROPE:
      return rounding.k.rope;
    case QKCTS_STAGE_SCORES:
      return rounding.scores;
    case QKCTS_STAGE_CAPPED:
      return rounding.capped;
    case QKCTS_STAGE_PROBS:
      return rounding.probs;
    case QKCTS_STAGE_OUTPUT:
      return rounding.output;
    default:
      return 0;
  }
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

std::string shape_fault(const qkcts_contract& terms, const qkcts_shape& shape) {
  constexpr std::int64_t longest = (std::int64_t{1} << 31) - 1;  // lengths and position ids are int32 elsewhere
  constexpr double most = 0x1p48;                                // elements of one tensor; far from any overflow
  const struct {
    const char* name;
    std::int64_t extent;
  } extents[] = {{"batch", shape.batch},          {"q_heads", shape.q_heads}, {"kv_heads", shape.kv_heads},
                 {"q_len", shape.q_len},          {"k_len", shape.k_len},     {"head_dim", shape.head_dim},
                 {"v_head_dim", shape.v_head_dim}};
  for (const auto& e : extents)
    if (e.extent < 1 || e.extent > longest)
      return fmt::format("shape: {} is {}, must lie in 1..{}", e.name, e.extent, longest);
  if (shape.q_heads % shape.kv_heads != 0)
    return fmt::format("shape: q_heads {} is no multiple of kv_heads {}", shape.q_heads, shape.kv_heads);
  for (const qkcts_stage stage : all_stages) {
    double elements = 1;
    for (const std::int64_t extent : stage_shape(stage, shape)) elements *= static_cast<double>(extent);
    if (elements > most) return fmt::format("shape: stage {} has {} elements, too many", stage_name(stage), elements);
  }
  if (terms.rope.order != QKCTS_ROPE_NONE) {
    if (terms.rope.rotated > shape.head_dim)
      return fmt::format("shape: head_dim {} is shorter than rope.rotated {}", shape.head_dim, terms.rope.rotated);
    if (terms.rope.rotated == 0 && shape.head_dim % 2 != 0)
      return fmt::format("shape: head_dim {} is odd, so it cannot be rotated in pairs", shape.head_dim);
    if (terms.rotation.scaling == QKCTS_SCALING_NTK && terms.rope.rotated == 0 && shape.head_dim == 2)
      return "shape: head_dim 2 is one pair: rope.scaling ntk has the exponent R / (R - 2)";
    if (terms.rotation.tables == QKCTS_TABLES_PER_HEAD && shape.q_heads != shape.kv_heads)
      return fmt::format("shape: rope.tables per_head needs q_heads {} and kv_heads {} to be equal", shape.q_heads,
                         shape.kv_heads);
  }
  return {};
}

}  // namespace qkcts
