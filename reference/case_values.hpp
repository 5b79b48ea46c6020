// SPDX-License-Identifier: Apache-2.0
// The inputs of a case as exact binary64 numbers, with the index rules of the contract.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "conformance/case.hpp"
#include "reference/rope_frequency.hpp"

namespace qkcts {

enum class Side : std::uint8_t { query = 0, key = 1 };

// One side of the product, q or k. A row is one head of one token, index (b * heads + h) * length + t; a group is the
// set of rows that share a norm statistic: one row, or all heads of a token under full_width.
struct SideValues {
  qkcts_norm norm{};
  qkcts_norm_range range{};
  std::int64_t batch = 0, heads = 0, length = 0, head_dim = 0;
  std::vector<double> x;                // [B, heads, length, D]
  std::vector<double> gain, bias;       // empty if the contract has none
  std::vector<std::uint32_t> position;  // [B, length]: position ids; empty where the contract has no use for them

  bool transforms() const { return qkcts::transforms(norm, range); }  // the norm stage of this side exists
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

// A linear bias slope * steps, exact in 94 bits.
struct LinearBias {
  double slope = 0;
  double steps = 0;  // an integer below 2^42
};

struct CaseValues {
  explicit CaseValues(const Case& c);

  const Case& input;
  const qkcts_contract& terms;
  const qkcts_shape& shape;
  StageSet stages;
  SideValues q, k;
  std::vector<double> v;                       // [B, Hkv, Lk, Dv]
  std::vector<double> cos, sin;                // [P, R/2]
  std::optional<RopeFrequencies> frequencies;  // under computed angles

  std::int64_t kv_head(std::int64_t h) const { return kv_head_of(terms, shape, h); }
  std::int64_t k_row(std::int64_t b, std::int64_t h, std::int64_t key) const {
    return (b * shape.kv_heads + kv_head(h)) * shape.k_len + key;
  }
  const SideValues& side(Side which) const { return which == Side::query ? q : k; }
  bool exists(qkcts_stage stage) const { return (stages & bit(stage)) != 0; }

  double learned_scale(std::int64_t h) const { return scale_[scale_.size() == 1 ? 0 : static_cast<std::size_t>(h)]; }
  // floor((p + shift) / period) of QK-QTEMP; 0 without a query temperature.
  std::int64_t query_periods(std::int64_t b, std::int64_t qq) const;
  bool has_bias() const { return !bias_.empty(); }
  double bias(std::int64_t b, std::int64_t h, std::int64_t qq, std::int64_t kk) const;
  bool has_linear_bias() const { return !slopes_.empty(); }
  LinearBias linear_bias(std::int64_t b, std::int64_t h, std::int64_t qq, std::int64_t kk) const;
  double sink(std::int64_t h) const { return sinks_.empty() ? 0.0 : sinks_[static_cast<std::size_t>(h)]; }
  // Under hidden_values `excluded`: no query of the batch entry sees this key, so its k and v may hold anything.
  bool is_excluded(std::int64_t b, std::int64_t key) const {
    return !excluded_.empty() && excluded_[static_cast<std::size_t>(b * shape.k_len + key)];
  }

 private:
  std::vector<double> scale_, bias_, slopes_, sinks_;
  std::int64_t bias_batch_ = 1, bias_heads_ = 1;
  std::vector<std::int64_t> offsets_;  // [B], of the mask; only beside a linear bias
  std::vector<bool> excluded_;         // [B, Lk]; empty if no key may hold anything
};

// A row of attention: query qq of head h in batch entry b, with the keys that it sees.
struct RowPlace {
  std::int64_t b = 0, h = 0, qq = 0;
  std::vector<std::uint32_t> visible;  // ascending
};

}  // namespace qkcts
