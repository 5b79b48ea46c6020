// SPDX-License-Identifier: Apache-2.0
// The inputs of a case as exact binary64 numbers, with the index rules of the contract.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "conformance/case.hpp"

namespace qkcts {

enum class Side : std::uint8_t { query = 0, key = 1 };

// One side of the product, q or k. A row is one head of one token, index (b * heads + h) * length + t; a group is the
// set of rows that share a norm statistic: one row, or all heads of a token under full_width.
struct SideValues {
  qkcts_norm norm{};
  std::int64_t batch = 0, heads = 0, length = 0, head_dim = 0;
  std::vector<double> x;                // [B, heads, length, D]
  std::vector<double> gain, bias;       // empty if the contract has none
  std::vector<std::uint32_t> position;  // [B, length]: row of the rotary tables; empty without rotation

  std::int64_t group_count() const;
  std::int64_t group_of(std::int64_t row) const;
  std::int64_t first_head(std::int64_t group) const;  // 0 under full_width, else the head
  std::int64_t heads_in_group() const;
  std::int64_t row_of(std::int64_t group, std::int64_t member) const;  // member < heads_in_group()
  std::span<const double> row(std::int64_t row) const;
  std::uint32_t position_of(std::int64_t row) const { return position[static_cast<std::size_t>(token_of(row))]; }
  std::int64_t token_of(std::int64_t row) const;  // b * length + t

  // Entry of `gain` or `bias` for a lane of a head, by the named axes.
  static double parameter(const std::vector<double>& values, std::uint32_t axes, std::int64_t head, std::int64_t lane,
                          std::int64_t head_dim);
};

struct CaseValues {
  explicit CaseValues(const Case& c);

  const Case& input;
  const qkcts_contract& terms;
  const qkcts_shape& shape;
  StageSet stages;
  SideValues q, k;
  std::vector<double> v;         // [B, Hkv, Lk, Dv]
  std::vector<double> cos, sin;  // [P, R/2]
  double learned_scale = 0;

  std::int64_t kv_head(std::int64_t h) const { return h / (shape.q_heads / shape.kv_heads); }
  std::int64_t k_row(std::int64_t b, std::int64_t h, std::int64_t key) const {
    return (b * shape.kv_heads + kv_head(h)) * shape.k_len + key;
  }
  const SideValues& side(Side which) const { return which == Side::query ? q : k; }
  bool has_bias() const { return !bias_.empty(); }
  double bias(std::int64_t b, std::int64_t h, std::int64_t qq, std::int64_t kk) const;
  bool exists(qkcts_stage stage) const { return (stages & bit(stage)) != 0; }

 private:
  std::vector<double> bias_;
  std::int64_t bias_batch_ = 1, bias_heads_ = 1;
};

// A row of attention: query qq of head h in batch entry b, with the keys that it sees.
struct RowPlace {
  std::int64_t b = 0, h = 0, qq = 0;
  std::vector<std::uint32_t> visible;  // ascending
};

}  // namespace qkcts
