// SPDX-License-Identifier: Apache-2.0
#include "reference/row_places.hpp"

#include <algorithm>
#include <numeric>

namespace qkcts {

std::vector<std::uint32_t> all_attention_rows(const qkcts_shape& shape) {
  std::vector<std::uint32_t> rows(static_cast<std::size_t>(shape.batch * shape.q_heads * shape.q_len));
  std::iota(rows.begin(), rows.end(), 0U);
  return rows;
}

RowPlaces::RowPlaces(const Case& c)
    : case_(c),
      visibility_(c),
      index_(static_cast<std::size_t>(c.shape.batch * c.shape.q_heads * c.shape.q_len), -1),
      visible_keys_(c) {}

RowPlace RowPlaces::without_keys(std::size_t row) const {
  const auto r = static_cast<std::int64_t>(row);
  const qkcts_shape& shape = case_.shape;
  return {r / (shape.q_heads * shape.q_len), r / shape.q_len % shape.q_heads, r % shape.q_len, {}};
}

void RowPlaces::hold(std::span<const std::uint32_t> rows) {
  for (const std::uint32_t row : held_) index_[row] = -1;
  held_.assign(rows.begin(), rows.end());
  places_.clear();
  for (const std::uint32_t row : held_) {
    index_[row] = static_cast<std::int32_t>(places_.size());
    RowPlace& place = places_.emplace_back(without_keys(row));
    visible_keys_.set(place.b, place.h, place.qq, place.visible);
  }
}

// From the last query on: under a causal mask it sees all there is to see, and nothing remains to be looked for.
const std::vector<bool>& RowPlaces::seen(std::int64_t b, std::int64_t kv_head) {
  const qkcts_shape& shape = case_.shape;
  const auto [place, is_new] = seen_.try_emplace(b * shape.kv_heads + kv_head);
  std::vector<bool>& seen = place->second;
  if (!is_new) return seen;
  seen.assign(static_cast<std::size_t>(shape.k_len), false);
  std::vector<std::uint32_t> missing(seen.size());
  std::iota(missing.begin(), missing.end(), 0U);
  for (std::int64_t qq = shape.q_len - 1; qq >= 0 && !missing.empty(); --qq)
    for (std::int64_t h = 0; h < shape.q_heads && !missing.empty(); ++h) {
      if (kv_head_of(case_.contract.terms, shape, h) != kv_head) continue;
      std::erase_if(missing, [&](std::uint32_t key) {
        const bool is_seen = visibility_.visible(b, h, qq, key);
        if (is_seen) seen[key] = true;
        return is_seen;
      });
    }
  return seen;
}

}  // namespace qkcts
