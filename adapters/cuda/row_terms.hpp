// SPDX-License-Identifier: Apache-2.0
// What is known of one query row before its scores are: where it stands and which keys it may see.
#pragma once

#include "adapters/cuda/element.hpp"
#include "adapters/cuda/problem.hpp"

namespace qkcts::cuda {

template <class Real>
struct RowTerms {
  std::int64_t b, h, t;      // t < 0: no such row
  std::int64_t index;        // of [B, Hq, Lq]
  std::int64_t place;        // i' of QK-MASK
  std::int64_t first, last;  // keys first <= k < last as causal, prefix, window, chunk and lengths say
  Real tau, slope;
  std::int32_t document;
};

QKCTS_DEVICE std::int64_t place_of(const Problem& problem, std::int64_t b, std::int64_t t) {
  switch (problem.mask.alignment) {
    case QKCTS_BOTTOM_RIGHT:
      return t + problem.shape.k_len - problem.shape.q_len;
    case QKCTS_BOTTOM_RIGHT_VALID:
      return t + problem.kv_len[b] - problem.shape.q_len;
    case QKCTS_OFFSET:
      return t + problem.mask.offset;
    default:
      return t;
  }
}

template <class Real>
QKCTS_DEVICE void set_interval(const Problem& problem, RowTerms<Real>& row) {
  const std::int64_t keys = problem.shape.k_len, place = row.place;
  std::int64_t first = 0, last = keys;
  const auto at_most = [&last](std::int64_t bound) { last = bound < last ? bound : last; };
  const auto at_least = [&first](std::int64_t bound) { first = bound > first ? bound : first; };
  if (problem.mask.kv_lengths != 0) at_most(problem.kv_len[row.b]);
  if (problem.mask.causal != 0) {
    // The union with the prefix: both intervals begin at key 0.
    const std::int64_t prefix = problem.regions.prefix != 0 ? problem.prefix_len[row.b] : 0;
    at_most(place + 1 > prefix ? place + 1 : prefix);
  }
  if (problem.regions.chunk > 0) {
    const std::int64_t behind = place % problem.regions.chunk;  // negative before key 0
    const std::int64_t start = place - behind - (behind < 0 ? problem.regions.chunk : 0);
    at_least(start);
    at_most(start + problem.regions.chunk);
  }
  if (problem.mask.has_window != 0) {
    // Compared before they are added: a window may be as wide as its type.
    const std::int64_t left = problem.mask.window_left, right = problem.mask.window_right;
    if (right >= 0 && right < keys - place) at_most(place + right + 1);
    if (left >= 0 && left < place) at_least(place - left);
  }
  row.first = first;
  row.last = last > first ? last : first;
}

// Row number `place` of those that read key head kv of batch entry b: [member of the group, query token].
template <class Real>
QKCTS_DEVICE RowTerms<Real> row_terms(const Problem& problem, std::int64_t b, std::int64_t kv, std::int64_t number) {
  const std::int64_t group = problem.shape.q_heads / problem.shape.kv_heads;
  RowTerms<Real> row{};
  row.t = -1;
  if (number >= group * problem.shape.q_len) return row;
  const std::int64_t member = number / problem.shape.q_len;
  row.b = b;
  row.h = problem.heads.mapping == QKCTS_HEADS_TILE ? member * problem.shape.kv_heads + kv : kv * group + member;
  row.t = number % problem.shape.q_len;
  row.index = (b * problem.shape.q_heads + row.h) * problem.shape.q_len + row.t;
  row.place = place_of(problem, b, row.t);
  set_interval(problem, row);
  row.tau = static_cast<const Real*>(problem.tau)[row.index];
  if (problem.slopes != nullptr) row.slope = static_cast<const Real*>(problem.slopes)[row.h];
  if (problem.q_documents != nullptr) row.document = problem.q_documents[b * problem.shape.q_len + row.t];
  return row;
}

// QK-HIDDEN `propagated`: every key takes part, hidden ones with weight 0.
QKCTS_DEVICE bool propagates(const Problem& problem) {
  return problem.softmax.hidden_values == QKCTS_HIDDEN_PROPAGATED;
}

struct KeyRange {
  std::int64_t first, last;
};

// The keys that a tile of rows has to visit in its split, in whole blocks: those that a row of it may see, or all of
// them if somebody observes what hidden keys have. A block that no row sees changes nothing.
template <int block, class Real>
QKCTS_DEVICE KeyRange keys_of_tile(const Problem& problem, const RowTerms<Real>* rows, int count, std::int64_t split) {
  const std::int64_t begin = split * problem.keys_of_split;
  const std::int64_t stop =
      begin + problem.keys_of_split < problem.shape.k_len ? begin + problem.keys_of_split : problem.shape.k_len;
  const bool observed = problem.scores != nullptr || problem.capped != nullptr || problem.masked != nullptr;
  if (observed || propagates(problem)) return {begin, stop};
  std::int64_t first = stop, last = begin;
  for (int r = 0; r < count; ++r) {
    if (rows[r].t < 0 || rows[r].first >= rows[r].last) continue;
    first = rows[r].first < first ? rows[r].first : first;
    last = rows[r].last > last ? rows[r].last : last;
  }
  first = first / block * block;
  return {first > begin ? first : begin, last < stop ? last : stop};
}

}  // namespace qkcts::cuda
