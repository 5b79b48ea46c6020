// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

// Every row of q and k, written by (row, sign of the head's direction in each lane, token).
template <class Write>
void write_rows(Draft& draft, DraftSide side, const Write& write) {
  const RandomStream direction = draft.stream(Draw::direction);
  for (std::int64_t b = 0; b < draft.shape.batch; ++b)
    for (std::int64_t h = 0; h < draft.heads(side); ++h)
      for (std::int64_t t = 0; t < draft.tokens(side); ++t) {
        const std::int64_t head = side == DraftSide::query ? draft.kv_head(h) : h;
        const auto sign = [&](std::int64_t d) {
          return direction.sign(static_cast<std::uint64_t>(head * draft.shape.head_dim + d));
        };
        write(draft.row(side, b, h, t), sign, t);
      }
}

// Scores of this size from aligned rows, at one position, with nothing added to them.
void prepare(Draft& draft, double size) {
  draft.freeze_positions();
  draft.fit_score(size);
  std::fill(draft.bias.begin(), draft.bias.end(), 0.0);
}

std::string size_fault(const Draft& draft, double size) {
  if (draft.shape.head_dim < 16) return "needs a head size of at least 16";
  const qkcts_contract& terms = draft.contract.terms;
  if (terms.logits.alibi != QKCTS_ALIBI_NONE) return "needs scores without a linear bias";
  const double stretch = terms.rope.order == QKCTS_ROPE_NONE ? 0 : terms.rotation.attention_factor;
  if (stretch != 0 && stretch != 1) return "needs a rotation that keeps lengths, so no attention_factor";
  Draft trial = draft;
  return trial.fit_score(size) ? std::string()
                               : "scores of the size it needs cannot be reached: no gain, amplitude or scale is open";
}

std::string size_fault_uncapped(const Draft& draft, double size) {
  if (draft.contract.terms.score.softcap > 0) return "needs scores without a soft-cap";
  return size_fault(draft, size);
}

const std::vector<double>& scores_of(const GoldenCase& golden) {
  return golden.stages[QKCTS_STAGE_SCORES].values.hi;
}

// ---- logit_50k ----------------------------------------------------------------------------------------------------

constexpr double largest_half = 65504;

// One lane of the other sign makes a score of S one of S - 2S/D: in binary16 the two lie around its largest number.
double logit_size(const Draft& draft) {
  const auto lanes = static_cast<double>(draft.shape.head_dim);
  return draft.format == Format::binary16 ? largest_half / (1 - 1 / lanes) : 50000;
}

double logit_noise(Format format) {
  const int precision = parameters(format).precision;  // 8 bits of bfloat16, 11 of binary16
  return std::ldexp(1.0, -std::min(precision - 1, 12));
}

std::string logit_50k_fault(const Draft& draft) {
  if (draft.format == Format::binary16 && draft.shape.head_dim > 128)
    return "needs a head size of at most 128, or rounding moves the pair around 65,504";
  if (draft.shape.k_len < 3) return "needs at least 3 keys";
  if (has_rounding_points(draft.contract.terms.rounding))
    return "needs weights whose distances no rounding point hides";
  return size_fault_uncapped(draft, logit_size(draft));
}

// Keys in turn: the direction of the query, the same but for one lane, and its opposite.
void draw_logit_50k(Draft& draft) {
  prepare(draft, logit_size(draft));
  const std::int64_t lanes = draft.shape.head_dim;
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    write_rows(draft, side, [&](double* row, const auto& sign, std::int64_t t) {
      // Some noise in the keys, as much as the format resolves: exact ties of weights are for another family.
      const double noise = side == DraftSide::query ? 0 : logit_noise(draft.format);
      for (std::int64_t d = 0; d < lanes; ++d) row[d] = sign(d) + noise * row[d];
      if (side == DraftSide::query) return;
      if (t % 3 == 1) row[t % lanes] = -row[t % lanes];
      if (t % 3 == 2) std::for_each(row, row + lanes, [](double& x) { x = -x; });
    });
  draft.amplify();
}

std::string logit_50k_broken(const GoldenCase& golden) {
  bool below = false, above = false;
  for (const double s : scores_of(golden)) {
    if (std::abs(s) < 40000 || std::abs(s) > 75000) return fmt::format("a score is {:.6g}", s);
    (std::abs(s) <= largest_half ? below : above) = true;
  }
  const bool straddles = golden.input.inputs.format != Format::binary16 || (below && above);
  return straddles ? std::string() : "no pair of scores lies around 65,504";
}

// ---- equal_gaps ---------------------------------------------------------------------------------------------------

constexpr double highest_level = 1e4;

// exp of the lowest score of the lowest level overflows: 88.73 in binary32, 709.79 in binary64.
double lowest_level(Format format) {
  return accumulator_format(format) == Format::binary64 ? 1480 : 240;
}

double level_of(Format format, std::int64_t t) {
  const double levels[] = {highest_level, lowest_level(format), 3000, 2 * lowest_level(format), 5000};
  return levels[t % std::ssize(levels)];
}

// From 1 down to a half in equal steps.
double key_share(std::int64_t t, std::int64_t keys) {
  return 1 - 0.5 * static_cast<double>(t) / static_cast<double>(std::max<std::int64_t>(1, keys - 1));
}

std::string equal_gaps_fault(const Draft& draft) {
  if (draft.shape.head_dim % 4 != 0) return "needs a head size that is a multiple of 4";
  if (draft.shape.k_len < 3) return "needs at least 3 keys";
  if (draft.shape.k_len > 64) return "needs at most 64 keys, or the gaps are lost in rounding";
  const qkcts_contract& terms = draft.contract.terms;
  if (has_rounding_points(terms.rounding)) return "needs gaps that no rounding point moves";
  for (const qkcts_norm* norm : {&terms.q_norm, &terms.k_norm})
    if (norm->applied != 0 && norm->center != 0) return "needs norms that do not take the mean of a row away";
  return size_fault_uncapped(draft, highest_level);
}

// Three directions that are orthogonal exactly: q = cu + sw and k = c'u + s'w' have length 1 and the product cc'.
void draw_equal_gaps(Draft& draft) {
  prepare(draft, highest_level);
  const std::int64_t lanes = draft.shape.head_dim;
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    write_rows(draft, side, [&](double* row, const auto& sign, std::int64_t t) {
      const double along =
          side == DraftSide::query ? level_of(draft.format, t) / highest_level : key_share(t, draft.shape.k_len);
      const double across = std::sqrt(std::max(0.0, 1 - along * along));
      for (std::int64_t d = 0; d < lanes; ++d) {
        const bool turned = side == DraftSide::query ? d % 2 != 0 : d % 4 >= 2;
        row[d] = (turned ? along - across : along + across) * sign(d);
      }
    });
  draft.amplify();
}

std::string equal_gaps_broken(const GoldenCase& golden) {
  const qkcts_shape& s = golden.input.shape;
  const GoldenStage& stage = golden.stages[QKCTS_STAGE_SCORES];
  const double overflow = accumulator_format(golden.input.inputs.format) == Format::binary64 ? 709.79 : 88.73;
  for (std::size_t i = 0; i < stage.values.rows.size(); ++i) {
    const double* const row = stage.values.hi.data() + i * static_cast<std::size_t>(s.k_len);
    const double gap = (row[0] - row[s.k_len - 1]) / static_cast<double>(s.k_len - 1);
    for (std::int64_t j = 0; j < s.k_len; ++j) {
      if (row[j] < overflow || row[j] > 1.02 * highest_level)
        return fmt::format("row {}: score {} is {:.5g}", stage.values.rows[i], j, row[j]);
      const double expected = row[0] - gap * static_cast<double>(j);
      if (std::abs(row[j] - expected) > 0.25 * gap + 0x1p-7 * row[j])
        return fmt::format("row {}: score {} is {:.5g} where equal gaps lead to {:.5g}", stage.values.rows[i], j,
                           row[j], expected);
    }
  }
  return {};
}

// ---- beyond_cap ---------------------------------------------------------------------------------------------------

constexpr double caps_beyond = 64;

std::string beyond_cap_fault(const Draft& draft) {
  const double cap = draft.contract.terms.score.softcap;
  return cap > 0 ? size_fault(draft, caps_beyond * cap) : "needs a soft-cap";
}

// Every score is so far below zero that the cap leaves no difference between keys; a hidden key that is not excluded
// from the sum weighs as much as any.
void draw_beyond_cap(Draft& draft) {
  prepare(draft, caps_beyond * draft.contract.terms.score.softcap);
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    write_rows(draft, side, [&](double* row, const auto& sign, std::int64_t) {
      for (std::int64_t d = 0; d < draft.shape.head_dim; ++d)
        row[d] = (side == DraftSide::query ? 1 : -1) * sign(d) + 0x1p-4 * row[d];
    });
  draft.amplify();
}

std::string beyond_cap_broken(const GoldenCase& golden) {
  const double cap = golden.input.contract.terms.score.softcap;
  for (const double s : scores_of(golden))
    if (s > -16 * cap) return fmt::format("a score is {:.4g}, the cap {}", s, cap);
  for (const double s : golden.stages[QKCTS_STAGE_CAPPED].values.hi)
    if (s > -cap * (1 - 0x1p-20)) return fmt::format("a capped score is {:.9g}, the cap {}", s, cap);
  return {};
}

// ---- below_sentinel -----------------------------------------------------------------------------------------------

constexpr double deep = 40000, sentinels = 30000;

std::string below_sentinel_fault(const Draft& draft) {
  if (!hides_keys(draft.contract.terms)) return "needs keys that can be hidden";
  return size_fault_uncapped(draft, deep);
}

void draw_below_sentinel(Draft& draft) {
  prepare(draft, deep);
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    write_rows(draft, side, [&](double* row, const auto& sign, std::int64_t) {
      for (std::int64_t d = 0; d < draft.shape.head_dim; ++d)
        row[d] = side == DraftSide::query ? sign(d) : -sign(d) + 0x1p-10 * row[d];
    });
  draft.amplify();
}

std::string below_sentinel_broken(const GoldenCase& golden) {
  const auto& scores = scores_of(golden);
  const double highest = *std::max_element(scores.begin(), scores.end());
  return highest < -sentinels ? std::string() : fmt::format("a score is {:.5g}", highest);
}

constexpr InputFamily list[] = {
    {"logit_50k", "scores of about 50,000 either way: half precision holds some of them and not others", "QK-SCALE",
     "every |score| lies in [40,000, 75,000]; in binary16 some lie below 65,504 and some above", logit_50k_fault,
     draw_logit_50k, logit_50k_broken, true},
    {"equal_gaps", "scores from 89 to 10,000 in equal steps: every exp overflows unless a maximum is subtracted",
     "QK-SOFTMAX", "scores of a row fall in equal steps, from at most 10,200 to at least 88.73 (709.79 in binary64)",
     equal_gaps_fault, draw_equal_gaps, equal_gaps_broken, true},
    {"beyond_cap",
     "scores of -64 caps: what is capped is -cap for every key, and hidden keys capped too would weigh in", "QK-CAP",
     "every score is below -16 caps, every capped one within a millionth of -cap", beyond_cap_fault, draw_beyond_cap,
     beyond_cap_broken, true},
    {"below_sentinel", "visible scores below any finite number that stands for hidden: -1e4 would win over them",
     "QK-MASK", "every score is below -30,000", below_sentinel_fault, draw_below_sentinel, below_sentinel_broken, true},
};

}  // namespace

std::span<const InputFamily> size_families() {
  return list;
}

}  // namespace qkcts
