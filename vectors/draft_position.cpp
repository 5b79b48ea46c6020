// SPDX-License-Identifier: Apache-2.0
// Where the tokens of an ordinary draft stand.
#include <algorithm>
#include <cmath>

#include "vectors/family_draft.hpp"

namespace qkcts {
namespace {

constexpr std::int64_t longest_tables = 1024;  // rows that an ordinary case may need
constexpr double farthest = 1 << 30;           // position ids are int32

// Moves all positions so that the floor of QK-QTEMP-01 steps between the first and the second half of the queries, in
// every batch entry at another step. Left as they are if that needs long tables or positions that are none.
void put_step_within_rows(Draft& draft) {
  const qkcts_logits& logits = draft.contract.terms.logits;
  const qkcts_shape& s = draft.shape;
  const std::int64_t first_half = s.q_len / 2;
  const auto half = static_cast<double>(first_half);
  const double added = draft.has_tables() ? 0 : static_cast<double>(draft.first_position);
  const double limit = draft.has_tables() ? static_cast<double>(longest_tables - s.q_len - s.k_len) : farthest;
  double steps = 0;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    steps = std::max(steps + 1, std::ceil((logits.query_shift + half + added) / logits.query_period));
    const double first = steps * logits.query_period - logits.query_shift - half - added;
    if (first < 0 || first > limit) continue;
    const auto queries = draft.q_position_ids.begin() + b * s.q_len;
    const std::int32_t moved = static_cast<std::int32_t>(first) - *queries;
    std::for_each(queries, queries + s.q_len, [&](std::int32_t& id) { id += moved; });
    const auto keys = draft.k_position_ids.begin() + b * s.k_len;
    std::for_each(keys, keys + s.k_len, [&](std::int32_t& id) { id = std::max(0, id + moved); });
  }
}

}  // namespace

void draw_ordinary_positions(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  const bool paced = draft.contract.terms.logits.query_temperature != QKCTS_QUERY_TEMPERATURE_NONE;
  if (!draft.rotates() && !paced) return;
  draft.first_position = draft.rotates() ? 3 : 0;
  // Queries stand behind the keys they can see, and every batch entry starts elsewhere.
  const std::int64_t ahead = std::max<std::int64_t>(0, s.k_len - s.q_len) + 1;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t t = 0; t < s.q_len; ++t)
      draft.q_position_ids.push_back(static_cast<std::int32_t>(t + ahead + 2 * b));
    for (std::int64_t t = 0; t < s.k_len; ++t) draft.k_position_ids.push_back(static_cast<std::int32_t>(t + 2 * b));
  }
  if (paced) put_step_within_rows(draft);
}

void Draft::freeze_positions() {
  std::fill(q_position_ids.begin(), q_position_ids.end(), 2);
  std::fill(k_position_ids.begin(), k_position_ids.end(), 2);
}

}  // namespace qkcts
