// SPDX-License-Identifier: Apache-2.0
// The rotary embedding of one head: (a, b) -> (a cos - b sin, b cos + a sin) for the pairs of the rotated span.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "reference/case_values.hpp"

namespace qkcts {

inline std::int64_t rotated_lanes(const qkcts_rope& rope, std::int64_t head_dim) {
  return rope.rotated == 0 ? head_dim : static_cast<std::int64_t>(rope.rotated);
}

// Lanes of pair i < R/2.
inline std::pair<std::size_t, std::size_t> pair_lanes(const qkcts_rope& rope, std::int64_t head_dim, std::int64_t i) {
  const std::int64_t rotated = rotated_lanes(rope, head_dim);
  const std::int64_t first = rope.span == QKCTS_SPAN_LAST ? head_dim - rotated : 0;
  const std::int64_t a = first + (rope.pairing == QKCTS_INTERLEAVED ? 2 * i : i);
  const std::int64_t b = rope.pairing == QKCTS_INTERLEAVED ? a + 1 : a + rotated / 2;
  return {static_cast<std::size_t>(a), static_cast<std::size_t>(b)};
}

// In place; `head` has D entries, `position` is a row of the tables.
template <class Number>
void rotate(std::span<Number> head, const CaseValues& values, std::uint32_t position) {
  const qkcts_rope& rope = values.terms.rope;
  const std::int64_t pairs = rotated_lanes(rope, values.shape.head_dim) / 2;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const auto entry = static_cast<std::size_t>(static_cast<std::int64_t>(position) * pairs + i);
    const Number cos(values.cos[entry]);
    const Number sin(values.sin[entry]);
    const auto [lane_a, lane_b] = pair_lanes(rope, values.shape.head_dim, i);
    Number& a = head[lane_a];
    Number& b = head[lane_b];
    Number turned_a = a * cos - b * sin;
    Number turned_b = b * cos + a * sin;
    a = std::move(turned_a);
    b = std::move(turned_b);
  }
}

}  // namespace qkcts
