// SPDX-License-Identifier: Apache-2.0
// The inputs of a case as exact binary64 numbers, with the index rules of the contract.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "conformance/case.hpp"
#include "reference/rope_frequency.hpp"

namespace qkcts {

enum class Side : std::uint8_t { query = 0, key = 1, value = 2 };
constexpr std::array<Side, 3> all_sides = {Side::query, Side::key, Side::value};

// The stages of a side; QKCTS_STAGE_COUNT where v has no such stage.
constexpr qkcts_stage proj_stage(Side side) {
  constexpr qkcts_stage stages[] = {QKCTS_STAGE_Q_PROJ, QKCTS_STAGE_K_PROJ, QKCTS_STAGE_COUNT};
  return stages[static_cast<int>(side)];
}
constexpr qkcts_stage norm_stage(Side side) {
  constexpr qkcts_stage stages[] = {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_K_NORM, QKCTS_STAGE_V_NORM};
  return stages[static_cast<int>(side)];
}
constexpr qkcts_stage rope_stage(Side side) {
  constexpr qkcts_stage stages[] = {QKCTS_STAGE_Q_ROPE, QKCTS_STAGE_K_ROPE, QKCTS_STAGE_COUNT};
  return stages[static_cast<int>(side)];
}

// What the rounding points of a contract (QK-ROUND) made of the stages of a side, once decided: numbers of their
// formats, [rows of the side, head_dim], which stand in the place of what is computed. Empty: no such point. Of what is
// projected `normed` is x^, [tokens, E].
struct GivenVectors {
  std::vector<double> projected, normed;
  std::vector<double> turned;  // counts on rotated lanes only
  std::vector<double> scaled;  // q times everything that multiplies the scores
};

// Likewise of the row of attention at hand.
struct GivenRow {
  std::vector<double> products;        // [Lk]: <q^, k^>, before what multiplies it
  std::vector<double> scores, capped;  // [Lk]
  std::vector<double> probs;           // of the visible keys
  std::vector<double> output;          // [Dv]
};

// One of q, k and v, or the rows that q or k is projected from. A row is one head of one token, index
// (b * heads + h) * length + t; a group is the set of rows that share a norm statistic: one row, or all heads of a
// token under full_width.
struct SideValues {
  qkcts_norm norm{};
  qkcts_norm_range range{};
  std::int64_t batch = 0, heads = 0, length = 0, head_dim = 0;  // head_dim is Dv for v, E for what is projected
  std::vector<double> x;                // [B, heads, length, head_dim]; empty where a projection makes it
  std::vector<double> gain, bias;       // empty if the contract has none
  std::vector<std::uint32_t> position;  // [B, length]: position ids; empty where the contract has no use for them
  std::uint32_t rope_order = QKCTS_ROPE_NONE;
  GivenVectors given;

  bool transforms() const { return qkcts::transforms(norm, range); }  // the norm stage of this side exists
  std::int64_t head_of(std::int64_t row) const { return row / length % heads; }
  std::int64_t group_count() const;
  std::int64_t group_of(std::int64_t row) const;
  std::int64_t first_head(std::int64_t group) const;  // 0 under full_width, else the head
  std::int64_t heads_in_group() const;
  std::int64_t row_of(std::int64_t group, std::int64_t member) const;  // member < heads_in_group()
  std::span<const double> row(std::int64_t row) const { return row_in(x, row); }
  std::span<const double> row_in(const std::vector<double>& rows, std::int64_t row) const {
    return std::span(rows).subspan(static_cast<std::size_t>(row * head_dim), static_cast<std::size_t>(head_dim));
  }
  std::uint32_t position_of(std::int64_t row) const { return position[static_cast<std::size_t>(token_of(row))]; }
  std::int64_t token_of(std::int64_t row) const;  // b * length + t

  // Entry of `gain` or `bias` for a lane of a head, by the named axes.
  static double parameter(const std::vector<double>& values, std::uint32_t axes, std::int64_t head, std::int64_t lane,
                          std::int64_t head_dim);
};

// q or k as x^ W + bias. x^ is what `source` stands for: one head of E lanes per token.
struct Projection {
  SideValues source;
  std::vector<double> weight;  // [E, heads * D]
  std::vector<double> bias;    // [heads * D]; empty if the contract has none
};

// The factor 1 + alpha ln(over / under) of QK-QTEMP: a fraction >= 1; 1/1 without a query temperature.
struct QueryRatio {
  std::int64_t over = 1, under = 1;
  bool is_one() const { return over == under; }
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
  SideValues q, k, v;
  std::vector<double> cos, sin;                // [P, R/2] or, per head, [Hq, P, R/2]
  std::optional<RopeFrequencies> frequencies;  // under computed angles
  GivenRow given;
  std::optional<double> given_uniform;  // 1/Lk at the point `probs`

  std::int64_t kv_head(std::int64_t h) const { return kv_head_of(terms, shape, h); }
  std::int64_t k_row(std::int64_t b, std::int64_t h, std::int64_t key) const {
    return (b * shape.kv_heads + kv_head(h)) * shape.k_len + key;
  }
  // The output of a row without visible keys is a mean over rows of v that have a norm, a clamp or a multiplier.
  bool means_normed_values() const {
    return v.transforms() && terms.mask.empty_row == QKCTS_EMPTY_UNIFORM && terms.softmax.sink != QKCTS_SINK_COLUMN;
  }
  const SideValues& side(Side which) const { return which == Side::query ? q : which == Side::key ? k : v; }
  SideValues& side(Side which) { return which == Side::query ? q : which == Side::key ? k : v; }
  // Null where the side is an input.
  const Projection* projection(Side which) const;
  Projection* projection(Side which) { return const_cast<Projection*>(std::as_const(*this).projection(which)); }
  // Index in cos and sin of pair 0 at a position, for a head of q or of k.
  std::size_t table_entry(std::int64_t head, std::uint32_t position) const;
  bool exists(qkcts_stage stage) const { return (stages & bit(stage)) != 0; }

  double learned_scale(std::int64_t h) const { return scale_[scale_.size() == 1 ? 0 : static_cast<std::size_t>(h)]; }
  QueryRatio query_ratio(std::int64_t b, std::int64_t qq) const;
  bool has_bias() const { return !bias_.empty(); }
  double bias(std::int64_t b, std::int64_t h, std::int64_t qq, std::int64_t kk) const;
  bool has_linear_bias() const { return !slopes_.empty(); }
  LinearBias linear_bias(std::int64_t b, std::int64_t h, std::int64_t qq, std::int64_t kk) const;
  double sink(std::int64_t h) const { return sinks_.empty() ? 0.0 : sinks_[static_cast<std::size_t>(h)]; }
  // Under hidden_values `excluded`: no query of the batch entry sees this key, so its k (or k_x) and v may hold
  // anything.
  bool is_excluded(std::int64_t b, std::int64_t key) const {
    return !excluded_.empty() && excluded_[static_cast<std::size_t>(b * shape.k_len + key)];
  }

 private:
  std::optional<Projection> q_projection_, k_projection_;
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
