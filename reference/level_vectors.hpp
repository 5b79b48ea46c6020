// SPDX-License-Identifier: Apache-2.0
// The vectors of q, k and v at one precision: projection, norm, rotation. What is finished is kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reference/case_values.hpp"
#include "reference/integer_dot.hpp"
#include "reference/norm.hpp"
#include "reference/real.hpp"
#include "reference/rope.hpp"

namespace qkcts {

template <unsigned Digits>
void set_ends(std::vector<ScaledVector::Ends>& ends, std::span<const Enclosure<Digits>> x) {
  ends.clear();
  for (const Enclosure<Digits>& entry : x) ends.push_back({lower(entry), upper(entry)});
}

// The stages of one group of q, k or v; its heads stand one after another.
template <unsigned Digits>
struct GroupEnclosures {
  std::vector<Enclosure<Digits>> projected, normed, roped;  // empty if the stage does not exist
  bool usable = false;  // false: a root may be 0 at this precision, nothing is known
};

template <unsigned Digits>
class LevelVectors {
 public:
  using Number = Enclosure<Digits>;

  explicit LevelVectors(const CaseValues& values)
      : values_(values), limbs_(static_cast<int>((precision_bits<Digits>() + 63) / 64)) {
    operands_[0].resize(static_cast<std::size_t>(values.q.batch * values.q.heads * values.q.length));
    operands_[1].resize(static_cast<std::size_t>(values.k.batch * values.k.heads * values.k.length));
    if (values.v.transforms())
      value_rows_.resize(static_cast<std::size_t>(values.v.batch * values.v.heads * values.v.length));
  }

  int limbs() const { return limbs_; }  // of a ScaledVector at this precision

  // Makes the stages of a group and keeps its operands of the score or, of v, its rows.
  GroupEnclosures<Digits> evaluate_group(Side side, std::int64_t group);

  // Of q or k, for the scores; null if it is not known.
  const ScaledVector* operand(Side side, std::int64_t row);
  // Of v after its norm; null if it is not known.
  const std::vector<Number>* value_row(std::int64_t row);

  using Waves = std::vector<std::pair<Number, Number>>;  // cosine and sine of every pair
  Waves waves_of(Side which, std::int64_t row);

 private:
  const Waves& waves(std::uint32_t position);
  void turn(std::span<Number> head, const SideValues& side, std::int64_t row);
  static void put(std::span<Number> x, const std::vector<double>& given, const SideValues& side, std::int64_t group);
  bool load_group(Side which, std::int64_t group, std::vector<Number>& x);
  const ScaledVector* projected_row(Side which, std::int64_t token);
  void keep(Side which, std::int64_t group, std::span<const Number> x);

  const CaseValues& values_;
  int limbs_;
  std::vector<Number> frequencies_;       // under computed angles
  std::map<std::uint32_t, Waves> waves_;  // of every position that was asked for
  std::vector<std::optional<ScaledVector>> operands_[2];
  std::vector<std::optional<ScaledVector>> projected_rows_[2];  // x^ of every token that was asked for
  std::vector<ScaledVector> weights_of_[2];                     // columns of the matrix of a projection
  std::vector<std::optional<std::vector<Number>>> value_rows_;  // where v has a norm, a clamp or a multiplier
  std::vector<ScaledVector::Ends> ends_;
};

template <unsigned Digits>
const typename LevelVectors<Digits>::Waves& LevelVectors<Digits>::waves(std::uint32_t position) {
  const auto [place, is_new] = waves_.try_emplace(position);
  if (!is_new) return place->second;
  const RopeFrequencies& frequencies = *values_.frequencies;
  const Number attention_factor(frequencies.attention_factor());
  for (std::int64_t i = 0; i < frequencies.pairs(); ++i) {
    if (frequencies_.size() == static_cast<std::size_t>(i))
      frequencies_.push_back(frequencies.template frequency<Digits>(i));
    const Number angle = frequencies_[static_cast<std::size_t>(i)] * Number(static_cast<double>(position));
    place->second.emplace_back(attention_factor * wave_of(angle, Wave::cosine),
                               attention_factor * wave_of(angle, Wave::sine));
  }
  return place->second;
}

template <unsigned Digits>
typename LevelVectors<Digits>::Waves LevelVectors<Digits>::waves_of(Side which, std::int64_t row) {
  const SideValues& side = values_.side(which);
  const std::uint32_t position = side.position_of(row);
  if (values_.frequencies) return waves(position);
  const TableWaves<Number> table(values_, side.head_of(row), position);
  Waves result;
  for (std::int64_t i = 0; i < rotated_lanes(values_.terms.rope, side.head_dim) / 2; ++i) result.push_back(table(i));
  return result;
}

template <unsigned Digits>
void LevelVectors<Digits>::turn(std::span<Number> head, const SideValues& side, std::int64_t row) {
  if (!side.given.turned.empty()) {
    const std::span<const double> given = side.row_in(side.given.turned, row);
    for (const std::size_t lane : turned_lanes(values_.terms, side.head_dim)) head[lane] = Number(given[lane]);
    return;
  }
  const std::uint32_t position = side.position_of(row);
  if (!values_.frequencies) return rotate(head, values_, TableWaves<Number>(values_, side.head_of(row), position));
  const Waves& known = waves(position);
  rotate(head, values_, [&known](std::int64_t i) { return known[static_cast<std::size_t>(i)]; });
}

// The numbers that rounding points made of a group take the place of x.
template <unsigned Digits>
void LevelVectors<Digits>::put(std::span<Number> x, const std::vector<double>& given, const SideValues& side,
                               std::int64_t group) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto lane = static_cast<std::int64_t>(i);
    x[i] = Number(
        side.row_in(given, side.row_of(group, lane / side.head_dim))[i % static_cast<std::size_t>(side.head_dim)]);
  }
}

// x^ of a token; null if the root of its norm may be 0.
template <unsigned Digits>
const ScaledVector* LevelVectors<Digits>::projected_row(Side which, std::int64_t token) {
  const SideValues& source = values_.projection(which)->source;
  std::vector<std::optional<ScaledVector>>& rows = projected_rows_[static_cast<int>(which)];
  if (rows.empty()) rows.resize(static_cast<std::size_t>(source.batch * source.length));
  std::optional<ScaledVector>& slot = rows[static_cast<std::size_t>(token)];
  if (slot) return &*slot;
  if (source.norm.applied == 0 || !source.given.normed.empty()) {
    slot.emplace().assign(source.norm.applied == 0 ? source.row(token) : source.row_in(source.given.normed, token),
                          limbs_);
    return &*slot;
  }
  const std::span<const double> row = source.row(token);
  std::vector<Number> x(row.begin(), row.end());
  if (!normalise(x, source, token)) return nullptr;
  set_ends(ends_, std::span<const Number>(x));
  slot.emplace().assign(ends_, limbs_);
  return &*slot;
}

// The vectors of a group as they enter norm or rotation.
template <unsigned Digits>
bool LevelVectors<Digits>::load_group(Side which, std::int64_t group, std::vector<Number>& x) {
  const SideValues& side = values_.side(which);
  const Projection* projection = values_.projection(which);
  if (projection == nullptr) {
    for (std::int64_t member = 0; member < side.heads_in_group(); ++member)
      for (const double entry : side.row(side.row_of(group, member))) x.emplace_back(entry);
    return true;
  }
  if (!side.given.projected.empty()) {
    x.resize(static_cast<std::size_t>(side.heads_in_group() * side.head_dim));
    put(x, side.given.projected, side, group);
    return true;
  }
  const ScaledVector* row = projected_row(which, side.token_of(side.row_of(group, 0)));
  if (row == nullptr) return false;
  std::vector<ScaledVector>& columns = weights_of_[static_cast<int>(which)];
  const auto count = static_cast<std::size_t>(side.heads * side.head_dim);
  if (columns.empty()) {
    columns.resize(count);
    std::vector<double> column(row->size());
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t e = 0; e < column.size(); ++e) column[e] = projection->weight[e * count + i];
      columns[i].assign(column, limbs_);
    }
  }
  const auto first = static_cast<std::size_t>(side.first_head(group) * side.head_dim);
  x.resize(static_cast<std::size_t>(side.heads_in_group() * side.head_dim));
  for (std::size_t i = 0; i < x.size(); ++i) {
    set_dot(x[i], *row, columns[first + i]);
    if (!projection->bias.empty()) x[i] += Number(projection->bias[first + i]);
  }
  return true;
}

template <unsigned Digits>
void LevelVectors<Digits>::keep(Side which, std::int64_t group, std::span<const Number> x) {
  const SideValues& side = values_.side(which);
  const auto width = static_cast<std::size_t>(side.head_dim);
  for (std::int64_t member = 0; member < side.heads_in_group(); ++member) {
    const std::span<const Number> head = x.subspan(static_cast<std::size_t>(member) * width, width);
    const auto row = static_cast<std::size_t>(side.row_of(group, member));
    if (which == Side::value) {
      value_rows_[row].emplace(head.begin(), head.end());
    } else if (side.given.scaled.empty()) {
      set_ends(ends_, head);
      operands_[static_cast<int>(which)][row].emplace().assign(ends_, limbs_);
    }
  }
}

template <unsigned Digits>
GroupEnclosures<Digits> LevelVectors<Digits>::evaluate_group(Side which, std::int64_t group) {
  const SideValues& side = values_.side(which);
  const auto width = static_cast<std::size_t>(side.head_dim);
  GroupEnclosures<Digits> result;
  std::vector<Number> x;
  if (!load_group(which, group, x)) return result;
  if (values_.projection(which) != nullptr) result.projected = x;
  const auto turn_all = [&] {
    for (std::int64_t member = 0; member < side.heads_in_group(); ++member)
      turn(std::span(x).subspan(static_cast<std::size_t>(member) * width, width), side, side.row_of(group, member));
    result.roped = x;
  };
  if (side.rope_order == QKCTS_ROPE_THEN_NORM) turn_all();
  if (side.transforms()) {
    if (!side.given.normed.empty()) {
      put(x, side.given.normed, side, group);
    } else if (!transform(x, side, group)) {
      return result;
    }
    result.normed = x;
  }
  if (side.rope_order == QKCTS_NORM_THEN_ROPE) turn_all();
  result.usable = true;
  keep(which, group, x);
  return result;
}

template <unsigned Digits>
const ScaledVector* LevelVectors<Digits>::operand(Side side, std::int64_t row) {
  std::optional<ScaledVector>& slot = operands_[static_cast<int>(side)][static_cast<std::size_t>(row)];
  const std::vector<double>& scaled = values_.side(side).given.scaled;
  if (!slot && !scaled.empty()) slot.emplace().assign(values_.side(side).row_in(scaled, row), limbs_);
  if (!slot) evaluate_group(side, values_.side(side).group_of(row));
  return slot ? &*slot : nullptr;
}

template <unsigned Digits>
const std::vector<Enclosure<Digits>>* LevelVectors<Digits>::value_row(std::int64_t row) {
  std::optional<std::vector<Number>>& slot = value_rows_[static_cast<std::size_t>(row)];
  if (!slot) evaluate_group(Side::value, values_.v.group_of(row));
  return slot ? &*slot : nullptr;
}

}  // namespace qkcts
