// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

template <class Cosine>  // (side, token) -> cosine
void point_all(Draft& draft, const Cosine& cosine) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    for (std::int64_t b = 0; b < draft.shape.batch; ++b)
      for (std::int64_t h = 0; h < draft.heads(side); ++h)
        for (std::int64_t t = 0; t < draft.tokens(side); ++t) draft.point(side, b, h, t, cosine(side, t));
}

std::string score_fault(const Draft& draft, double size) {
  if (draft.shape.head_dim < 16) return "needs a head size of at least 16";
  Draft trial = draft;
  return trial.fit_score(size) ? std::string()
                               : "scores of the size it needs cannot be reached: no gain, amplitude or scale is open";
}

// ---- near_cap -----------------------------------------------------------------------------------------------------

constexpr double caps_reached = 4;                                // the lowest score is about -4 caps
constexpr double near_cap_cosines[] = {-1, -0.5, -0.25, -0.125};  // of the keys, in turn

std::string near_cap_fault(const Draft& draft) {
  const double cap = draft.contract.terms.score.softcap;
  return cap > 0 ? score_fault(draft, caps_reached * cap) : "needs a soft-cap";
}

void draw_near_cap(Draft& draft) {
  draft.freeze_positions();
  draft.fit_score(caps_reached * draft.contract.terms.score.softcap);
  point_all(draft, [&](DraftSide side, std::int64_t t) {
    return side == DraftSide::query ? 0.96 : near_cap_cosines[static_cast<std::size_t>(t) % 4];
  });
  draft.amplify();
  std::fill(draft.bias.begin(), draft.bias.end(), 0.0);
}

// Three quarters of the scores are negative; the lowest is below -2 caps.
std::string near_cap_broken(const GoldenCase& golden) {
  const std::vector<double>& scores = golden.stages[QKCTS_STAGE_SCORES].values.hi;
  const double cap = golden.input.contract.terms.score.softcap;
  const auto negative = std::count_if(scores.begin(), scores.end(), [](double s) { return s < 0; });
  const double lowest = *std::min_element(scores.begin(), scores.end());
  if (negative * 4 < 3 * static_cast<std::ptrdiff_t>(scores.size()))
    return fmt::format("only {} of {} scores are negative", negative, scores.size());
  return lowest < -2 * cap ? std::string() : fmt::format("the lowest score is {:.3g}", lowest);
}

// ---- one_hot ------------------------------------------------------------------------------------------------------

std::string one_hot_fault(const Draft& draft) {
  if (draft.contract.terms.score.softcap > 0) return "needs scores without a soft-cap";
  return score_fault(draft, 3 * underflow_gap(draft.format));
}

// Key 0 is hot, the middle key hotter; all others point the other way.
void draw_one_hot(Draft& draft) {
  draft.freeze_positions();
  draft.fit_score(3 * underflow_gap(draft.format));
  const std::int64_t middle = draft.shape.k_len / 2;
  point_all(draft, [&](DraftSide side, std::int64_t t) {
    if (side == DraftSide::query) return 1.0;
    if (t == 0) return 0.5;
    return t == middle ? 1.0 : -0.75;
  });
  draft.amplify();
  std::fill(draft.bias.begin(), draft.bias.end(), 0.0);
}

std::string one_hot_broken(const GoldenCase& golden) {
  return golden.p_max.median > 1 - 0x1p-40 ? std::string()
                                           : fmt::format("the median of p_max is {}", golden.p_max.median);
}

// ---- low_scores ---------------------------------------------------------------------------------------------------

constexpr std::int64_t tile = 16;

std::string low_scores_fault(const Draft& draft) {
  if (draft.contract.terms.score.softcap > 0) return "needs scores without a soft-cap";
  return score_fault(draft, 1.6 * underflow_gap(draft.format));
}

// Every exp of a score underflows unless a maximum is subtracted, and a maximum that starts at 0, or is reset to 0 by a
// hidden tile, subtracts nothing. Where a boolean mask exists, odd rows do not see the first tile.
void draw_low_scores(Draft& draft) {
  draft.freeze_positions();
  draft.fit_score(1.6 * underflow_gap(draft.format));
  // sqrt(1 - 0.998^2) = 0.06 of noise beside the common direction: scores differ by a few units.
  point_all(draft, [](DraftSide side, std::int64_t) { return side == DraftSide::query ? 1.0 : -0.998; });
  draft.amplify();
  std::fill(draft.bias.begin(), draft.bias.end(), 0.0);
  const qkcts_shape& s = draft.shape;
  for (std::size_t i = 0; i < draft.mask.size(); ++i) {
    const auto key = static_cast<std::int64_t>(i) % s.k_len;
    const auto query = static_cast<std::int64_t>(i) / s.k_len % s.q_len;
    if (query % 2 == 1 && key < tile && s.k_len > tile + 1) draft.mask[i] = 0;
  }
}

std::string low_scores_broken(const GoldenCase& golden) {
  const double limit = -underflow_gap(golden.input.inputs.format);
  for (const double s : golden.stages[QKCTS_STAGE_SCORES].values.hi)
    if (s > limit) return fmt::format("a score is {:.4g}", s);
  return {};
}

// ---- tied ---------------------------------------------------------------------------------------------------------

std::string always(const Draft&) {
  return {};
}

// Even key heads: one vector for all keys (uniform weights). Odd ones: two vectors in turn, so the maximum is tied.
void draw_tied(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  std::fill(draft.k_position_ids.begin(), draft.k_position_ids.end(), 4);
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.kv_heads; ++h) {
      const std::int64_t different = h % 2 == 0 ? 1 : 2;
      for (std::int64_t t = different; t < s.k_len; ++t)
        std::copy_n(draft.row(DraftSide::key, b, h, t % different), s.head_dim, draft.row(DraftSide::key, b, h, t));
    }
  std::fill(draft.bias.begin(), draft.bias.end(), 0.0);
  // A full-width statistic joins heads with different periods.
  const qkcts_norm& norm = draft.norm(DraftSide::key);
  if (norm.applied != 0 && norm.axis == QKCTS_AXIS_FULL_WIDTH)
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 1; h < s.kv_heads; h += 2)
        for (std::int64_t t = 1; t < s.k_len; ++t)
          std::copy_n(draft.row(DraftSide::key, b, h, 0), s.head_dim, draft.row(DraftSide::key, b, h, t));
}

std::string tied_broken(const GoldenCase& golden) {
  const qkcts_shape& s = golden.input.shape;
  const ProvenStage& scores = golden.stages[QKCTS_STAGE_SCORES].values;
  for (std::size_t i = 0; i < scores.rows.size(); ++i) {
    const auto first = scores.hi.begin() + static_cast<std::ptrdiff_t>(i) * s.k_len;
    const std::vector<double> row(first, first + s.k_len);
    for (std::size_t j = 2; j < row.size(); ++j)
      if (row[j] != row[j - 2]) return fmt::format("row {}: scores {} and {} differ", scores.rows[i], j, j - 2);
  }
  return {};
}

constexpr InputFamily list[] = {
    {"near_cap", "scores from half a cap to four caps below zero: the cap's whole bend, and mask sentinels in reach",
     "QK-CAP", "three quarters of the scores are negative, the lowest is below -2 caps", near_cap_fault, draw_near_cap,
     near_cap_broken, true},
    {"one_hot", "one key outweighs all others by more than exp can represent: saturation, entropy 0", "QK-SOFTMAX",
     "the median of p_max is above 1 - 2^-40", one_hot_fault, draw_one_hot, one_hot_broken, true},
    {"low_scores", "all scores far below zero: a running maximum that starts at 0 or is reset to it loses the row",
     "QK-SOFTMAX", "every score is below -110 (-760 in binary64)", low_scores_fault, draw_low_scores, low_scores_broken,
     true},
    {"tied", "equal scores: uniform rows and tied maxima, whose exact results lie on rounding boundaries", "QK-SOFTMAX",
     "scores two keys apart are equal", always, draw_tied, tied_broken, true},
};

}  // namespace

std::span<const InputFamily> score_families() {
  return list;
}

}  // namespace qkcts
