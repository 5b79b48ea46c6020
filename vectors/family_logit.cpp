// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

struct LogitRow {
  std::int64_t b, h, t;
  std::vector<std::int64_t> keys;  // that the query sees
  std::vector<double> values;      // what the softmax sees of them
};

// The stored rows of what the softmax sees.
std::vector<LogitRow> logit_rows(const GoldenCase& golden) {
  const qkcts_shape& s = golden.input.shape;
  const GoldenStage& capped = golden.stages[QKCTS_STAGE_CAPPED];
  const ProvenStage& logits = capped.present ? capped.values : golden.stages[QKCTS_STAGE_SCORES].values;
  const Visibility visibility(golden.input);
  std::vector<LogitRow> rows;
  for (std::size_t i = 0; i < logits.rows.size(); ++i) {
    const std::int64_t row = logits.rows[i];
    LogitRow found{row / s.q_len / s.q_heads, row / s.q_len % s.q_heads, row % s.q_len, {}, {}};
    for (std::int64_t j = 0; j < s.k_len; ++j) {
      if (!visibility.visible(found.b, found.h, found.t, j)) continue;
      found.keys.push_back(j);
      found.values.push_back(logits.hi[i * static_cast<std::size_t>(s.k_len) + static_cast<std::size_t>(j)]);
    }
    if (!found.keys.empty()) rows.push_back(std::move(found));
  }
  return rows;
}

std::string needs_sink(const Draft& draft) {
  return draft.contract.terms.softmax.sink == QKCTS_SINK_NONE ? "needs a sink" : std::string();
}

// ---- sink_equal ---------------------------------------------------------------------------------------------------

std::string sink_equal_fault(const Draft& draft) {
  const qkcts_norm& norm = draft.norm(DraftSide::key);
  if (draft.contract.terms.logits.alibi != QKCTS_ALIBI_NONE) return "needs scores without a linear bias";
  if (norm.applied != 0 && (norm.eps == 0 || norm.bias_axes != QKCTS_AXES_NONE))
    return "needs zero rows of k that a norm leaves at zero";
  if (draft.shape.head_dim < 8) return "needs a head size of at least 8";
  return needs_sink(draft);
}

// Even keys are zero rows, so their scores are exactly 0 whatever the norm, and so is the sink; odd keys point away.
void draw_sink_equal(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  draft.freeze_positions();
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.q_heads; ++h)
      for (std::int64_t t = 0; t < s.q_len; ++t) draft.point(DraftSide::query, b, h, t, 0.9);
    for (std::int64_t h = 0; h < s.kv_heads; ++h)
      for (std::int64_t t = 0; t < s.k_len; ++t) {
        draft.point(DraftSide::key, b, h, t, -0.9);
        if (t % 2 == 0) std::fill_n(draft.row(DraftSide::key, b, h, t), s.head_dim, 0.0);
      }
  }
  std::fill(draft.sink.begin(), draft.sink.end(), 0.0);
  std::fill(draft.bias.begin(), draft.bias.end(), 0.0);
}

std::string sink_equal_broken(const GoldenCase& golden) {
  const std::vector<double> sinks = golden.input.inputs.at(Input::sink).values();
  for (const LogitRow& row : logit_rows(golden)) {
    const auto is_even = [](std::int64_t key) { return key % 2 == 0; };
    if (std::none_of(row.keys.begin(), row.keys.end(), is_even)) continue;
    const double largest = *std::max_element(row.values.begin(), row.values.end());
    const double sink = sinks[static_cast<std::size_t>(row.h)];
    if (largest != sink)
      return fmt::format("batch {}, head {}, query {}: {} beside a sink of {}", row.b, row.h, row.t, largest, sink);
  }
  return {};
}

// ---- sink_extremes ------------------------------------------------------------------------------------------------

// How far a dominating sink stands above the scores: p stays a normal number of the storage format where it can.
double sink_height(Format format) {
  return format == Format::binary16 ? 6 : 30;
}

void draw_sink_extremes(Draft& draft) {
  for (std::size_t h = 0; h < draft.sink.size(); ++h) {
    const double reach = 8 * draft.ordinary_score(static_cast<std::int64_t>(h)) + static_cast<double>(h) / 4;
    draft.sink[h] = h % 2 == 0 ? sink_height(draft.format) + reach : -1.25 * underflow_gap(draft.format) - reach;
  }
}

std::string sink_extremes_broken(const GoldenCase& golden) {
  const Format format = golden.input.inputs.format;
  const std::vector<double> sinks = golden.input.inputs.at(Input::sink).values();
  for (const LogitRow& row : logit_rows(golden)) {
    const double sink = sinks[static_cast<std::size_t>(row.h)];
    const double above = sink - *std::max_element(row.values.begin(), row.values.end());
    const double below = *std::min_element(row.values.begin(), row.values.end()) - sink;
    if (row.h % 2 == 0 ? above < sink_height(format) : below < underflow_gap(format))
      return fmt::format("head {}, query {}: the sink {} is {} above and {} below the scores", row.h, row.t, sink,
                         above, below);
  }
  return {};
}

// ---- alibi_saturation ---------------------------------------------------------------------------------------------

std::string alibi_saturation_fault(const Draft& draft) {
  if (draft.contract.terms.logits.alibi == QKCTS_ALIBI_NONE) return "needs a linear bias";
  return draft.shape.k_len < 8 ? "needs at least 8 keys" : std::string();
}

// Across the keys the bias falls by four times what exp can follow: the far keys vanish, the near ones share the row.
void draw_alibi_saturation(Draft& draft) {
  const double steepness = 4 * underflow_gap(draft.format) / static_cast<double>(draft.shape.k_len - 1);
  const RandomStream stream = draft.stream(Draw::slope);
  for (std::size_t h = 0; h < draft.alibi_slopes.size(); ++h)
    draft.alibi_slopes[h] = steepness * stream.uniform(h, 1, 1.5);
}

std::string alibi_saturation_broken(const GoldenCase& golden) {
  const double promised = 1.8 * underflow_gap(golden.input.inputs.format);
  double widest = 0;
  for (const LogitRow& row : logit_rows(golden)) {
    const auto [low, high] = std::minmax_element(row.values.begin(), row.values.end());
    widest = std::max(widest, *high - *low);
  }
  return widest >= promised ? std::string() : fmt::format("no row spreads by more than {:.4g}", widest);
}

constexpr InputFamily list[] = {
    {"sink_equal", "the sink is exactly the largest score of the row: a tie with what is no key", "QK-SINK",
     "where a query sees an even key, its largest score equals the sink of its head, exactly", sink_equal_fault,
     draw_sink_equal, sink_equal_broken, true},
    {"sink_extremes", "sinks that leave the keys nothing, and sinks whose exponential underflows", "QK-SINK",
     "sinks of even heads stand 30 (binary16: 6) above every score, those of odd ones 110 (binary64: 760) below",
     needs_sink, draw_sink_extremes, sink_extremes_broken},
    {"alibi_saturation", "slopes and distances whose product no exp can follow: far keys vanish", "QK-ALIBI",
     "in some row the largest and the smallest value are 198 (binary64: 1368) apart", alibi_saturation_fault,
     draw_alibi_saturation, alibi_saturation_broken},
};

}  // namespace

std::span<const InputFamily> logit_families() {
  return list;
}

}  // namespace qkcts
