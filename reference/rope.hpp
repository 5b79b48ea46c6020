// SPDX-License-Identifier: Apache-2.0
// The rotary embedding of one head: (a, b) -> (a cos - b sin, b cos + a sin) for the pairs of the rotated span, by the
// opposite angle under sense `negative`.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "reference/case_values.hpp"

namespace qkcts {

// Lanes of pair i < R/2.
inline std::pair<std::size_t, std::size_t> pair_lanes(const qkcts_rope& rope, std::int64_t head_dim, std::int64_t i) {
  const std::int64_t rotated = rotated_lanes(rope, head_dim);
  const std::int64_t first = rope.span == QKCTS_SPAN_LAST ? head_dim - rotated : 0;
  const std::int64_t a = first + (rope.pairing == QKCTS_INTERLEAVED ? 2 * i : i);
  const std::int64_t b = rope.pairing == QKCTS_INTERLEAVED ? a + 1 : a + rotated / 2;
  return {static_cast<std::size_t>(a), static_cast<std::size_t>(b)};
}

// Where the rotated pair is left.
inline std::pair<std::size_t, std::size_t> left_lanes(const qkcts_contract& terms, std::int64_t head_dim,
                                                      std::int64_t i) {
  qkcts_rope rope = terms.rope;
  if (terms.rotation.layout == QKCTS_LAYOUT_DEINTERLEAVED) rope.pairing = QKCTS_HALF_SPLIT;
  return pair_lanes(rope, head_dim, i);
}

// The lanes of a head that hold rotated numbers.
inline std::vector<std::size_t> turned_lanes(const qkcts_contract& terms, std::int64_t head_dim) {
  std::vector<std::size_t> lanes;
  for (std::int64_t i = 0; i < rotated_lanes(terms.rope, head_dim) / 2; ++i) {
    const auto [a, b] = left_lanes(terms, head_dim, i);
    lanes.push_back(a);
    lanes.push_back(b);
  }
  return lanes;
}

// Cosine and sine of pair i, from the tables.
template <class Number>
struct TableWaves {
  TableWaves(const CaseValues& of, std::int64_t head, std::uint32_t position)
      : values(of), first(of.table_entry(head, position)) {}
  const CaseValues& values;
  std::size_t first;

  std::pair<Number, Number> operator()(std::int64_t i) const {
    const std::size_t entry = first + static_cast<std::size_t>(i);
    return {Number(values.cos[entry]), Number(values.sin[entry])};
  }
};

// In place; `head` has D entries, waves(i) gives cosine and sine of pair i.
template <class Number, class Waves>
void rotate(std::span<Number> head, const CaseValues& values, const Waves& waves) {
  const std::int64_t width = values.shape.head_dim;
  const bool negative = values.terms.rotation.sense == QKCTS_SENSE_NEGATIVE;
  const std::int64_t pairs = rotated_lanes(values.terms.rope, width) / 2;
  std::vector<std::pair<Number, Number>> turned;
  turned.reserve(static_cast<std::size_t>(pairs));
  for (std::int64_t i = 0; i < pairs; ++i) {
    auto [cos, sin] = waves(i);
    if (negative) sin = -sin;
    const auto [lane_a, lane_b] = pair_lanes(values.terms.rope, width, i);
    const Number& a = head[lane_a];
    const Number& b = head[lane_b];
    turned.emplace_back(a * cos - b * sin, b * cos + a * sin);
  }
  for (std::int64_t i = 0; i < pairs; ++i) {
    const auto [lane_a, lane_b] = left_lanes(values.terms, width, i);
    head[lane_a] = std::move(turned[static_cast<std::size_t>(i)].first);
    head[lane_b] = std::move(turned[static_cast<std::size_t>(i)].second);
  }
}

}  // namespace qkcts
