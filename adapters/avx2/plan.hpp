// SPDX-License-Identifier: Apache-2.0
// What one call has to do: contract, shape and tensors, checked and brought into the form that the loops want.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <qkcts/adapter.h>

#include "adapters/avx2/strided_tensor.hpp"

namespace qkcts::avx2 {

constexpr std::int64_t lanes = 8;        // binary32 values in a register
constexpr std::int64_t panel_keys = 16;  // keys of a packed panel: two registers
constexpr std::int64_t block_keys = 64;  // keys after which the running maximum is updated
constexpr std::int64_t tile_rows = 6;    // query rows of a register tile: 6 x 2 accumulators
constexpr std::int64_t block_rows = 48;  // query rows that meet a block of keys while it is in the cache

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// QK-PROJ of one side: what stands in the place of an input.
struct ProjectionPlan {
  StridedTensor x;       // [B, length, width]
  StridedTensor weight;  // [width, heads * D]
  StridedTensor bias;    // [heads * D], if the contract has one
  qkcts_norm norm{};
  StridedTensor norm_gain, norm_bias;
  std::int64_t width = 0;
};

// Norm and rotation of q, k or v.
struct VectorPlan {
  std::int64_t heads = 0;
  std::int64_t length = 0;
  std::int64_t dim = 0;     // D or Dv
  std::int64_t stride = 0;  // dim rounded up to whole registers
  qkcts_norm norm{};
  qkcts_norm_range range{};
  StridedTensor in;  // [B, heads, length, dim], absent under a projection
  ProjectionPlan projection;
  StridedTensor gain, bias;
  std::uint32_t rope_order = QKCTS_ROPE_NONE;
  StridedTensor positions;  // [B, length]
  StridedTensor projection_out, norm_out, rope_out;

  bool changes() const {
    return norm.applied != 0 || range.clip_before != 0 || range.multiplier != 0 || range.clip_after != 0;
  }
};

// Keys first <= k < last of a query row are visible as far as causal, window and lengths say.
struct KeyInterval {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

// Element i of an int32 vector.
std::int32_t load_int(const StridedTensor& tensor, std::int64_t i);

struct Plan {
  // Throws InvalidArguments if an input that the contract needs is missing.
  explicit Plan(const qkcts_run_args& args);

  KeyInterval visible_keys(std::int64_t b, std::int64_t t) const;
  // QK-QTEMP: the factor of the scores of one query.
  double query_factor(std::int64_t b, std::int64_t t) const;
  // Everything that multiplies <q, k>.
  float tau(std::int64_t b, std::int64_t h, std::int64_t t) const;
  // Query head number `member` of those that read key head kv, and where head h stands in the order [kv, member].
  std::int64_t query_head(std::int64_t kv, std::int64_t member) const;
  std::int64_t slot(std::int64_t h) const;
  bool by_key() const { return boolean.present() || k_documents.present(); }  // is visibility more than an interval?
  std::int64_t group() const { return shape.q_heads / shape.kv_heads; }
  const StridedTensor& stage(qkcts_stage which) const { return stages[which]; }
  bool observed(qkcts_stage which) const { return stages[which].present(); }

  qkcts_shape shape{};
  qkcts_rope rope{};
  qkcts_rotation rotation{};
  qkcts_logits logits{};
  qkcts_regions regions{};
  qkcts_heads heads{};
  qkcts_mask mask{};
  std::uint32_t bias_order = QKCTS_BIAS_NONE;
  std::vector<double> scale;      // scale / temperature, by query head
  float softcap = 0;              // 0: none
  std::int64_t dim_stride = 0;    // D rounded up to whole registers
  std::int64_t value_stride = 0;  // Dv rounded up to whole registers
  VectorPlan query, key, value;
  StridedTensor cos, sin;                  // [P, R/2] or [Hq, P, R/2]
  StridedTensor boolean;                   // [B|1, Hq|1, Lq, Lk]
  StridedTensor additive;                  // [B|1, Hq|1, Lq, Lk]
  StridedTensor kv_len;                    // [B]
  StridedTensor prefix_len;                // [B]
  StridedTensor q_documents, k_documents;  // [B, Lq], [B, Lk]
  std::array<StridedTensor, QKCTS_STAGE_COUNT> stages;

 private:
  void plan_vectors(const qkcts_contract& terms, const qkcts_inputs& in);
};

}  // namespace qkcts::avx2
