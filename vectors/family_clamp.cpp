// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

constexpr double outlier = 8, rest = 0.5;  // of a row, in units of its clamp

std::int64_t outlier_lane(std::int64_t row, std::int64_t lanes) {
  return row % lanes;
}

bool clamps(const qkcts_norm_range& range) {
  return range.clip_before > 0 || range.clip_after > 0;
}

double factor_of(const qkcts_norm_range& range) {
  return range.multiplier > 0 ? range.multiplier : 1;
}

// The outlier after the norm, before gain and multiplier, about.
double normalised_outlier(const Draft& draft, DraftSide side) {
  const auto lanes = static_cast<double>(draft.lanes(side));
  const double top = draft.range(side).clip_before > 0 ? 1 : outlier;  // the first clamp cuts it to its own size
  const double length = std::sqrt(top * top + rest * rest * (lanes - 1));
  const bool mean = draft.norm(side).statistic == QKCTS_MEAN_SQUARE;
  return top / length * (mean ? std::sqrt(lanes) : 1);
}

std::string side_fault(const Draft& draft, DraftSide side) {
  const qkcts_norm& norm = draft.norm(side);
  const qkcts_norm_range& range = draft.range(side);
  const double largest = parameters(draft.format).largest;
  const double c = std::max(range.clip_before, range.clip_after / factor_of(range));
  if (c > largest / 64 || c < 64 * smallest_normal(draft.format)) return "a clamp lies at the end of the format";
  if (norm.applied == 0 || range.clip_after == 0 || norm.gain != QKCTS_GAIN_NONE) return {};
  const double reached = normalised_outlier(draft, side) * factor_of(range) / range.clip_after;
  return reached < 1.1 || reached > 3 ? "its clamp after a norm without a gain cuts nothing, or everything"
                                      : std::string();
}

std::string clamped_fault(const Draft& draft) {
  const qkcts_contract& terms = draft.contract.terms;
  if (!clamps(terms.q_range) && !clamps(terms.k_range) && !clamps(terms.v_range)) return "needs a clamp";
  if (terms.rope.order == QKCTS_ROPE_THEN_NORM && (clamps(terms.q_range) || clamps(terms.k_range)))
    return "needs clamps before the rotation";
  for (const DraftSide side : {DraftSide::query, DraftSide::key, DraftSide::value}) {
    if (!clamps(draft.range(side))) continue;
    if (draft.norm(side).applied != 0 && draft.norm(side).axis == QKCTS_AXIS_FULL_WIDTH)
      return "needs a norm of each head, or one outlier moves all heads";
    if (draft.lanes(side) < 8) return "needs a head size of at least 8";
    if (std::string fault = side_fault(draft, side); !fault.empty()) return fault;
  }
  return {};
}

// Gains so large that the outlier is cut in every lane (they differ by a factor of 3), and the rest is not.
void fit_gain(Draft& draft, DraftSide side) {
  const qkcts_norm& norm = draft.norm(side);
  const qkcts_norm_range& range = draft.range(side);
  if (range.clip_after == 0 || norm.applied == 0 || norm.gain == QKCTS_GAIN_NONE) return;
  constexpr double smallest_gain = 0.5;  // of the ordinary draft
  const double wanted = 1.25 * range.clip_after / (smallest_gain * factor_of(range) * normalised_outlier(draft, side));
  for (double& gain : draft.gain(side)) gain *= wanted;
  std::fill(draft.norm_bias(side).begin(), draft.norm_bias(side).end(), 0.0);
}

double row_unit(const Draft& draft, DraftSide side) {
  const qkcts_norm_range& range = draft.range(side);
  if (range.clip_before > 0) return range.clip_before;
  return draft.norm(side).applied != 0 ? 1 : range.clip_after / factor_of(range);
}

// One lane of each row far beyond the clamp, the others mostly within; before a norm also the three numbers of the
// format around the clamp itself.
void draw_clamped(Draft& draft) {
  constexpr Draw sign_draws[] = {Draw::direction, Draw::noise, Draw::poison};
  for (const DraftSide side : {DraftSide::query, DraftSide::key, DraftSide::value}) {
    if (!clamps(draft.range(side))) continue;
    const double unit = row_unit(draft, side);
    const std::int64_t lanes = draft.lanes(side);
    const RandomStream signs = draft.stream(sign_draws[static_cast<std::size_t>(side)]);
    for (std::int64_t row = 0; row < draft.shape.batch * draft.heads(side) * draft.tokens(side); ++row) {
      double* x = draft.rows(side).data() + row * lanes;
      for (std::int64_t d = 0; d < lanes; ++d) x[d] *= rest * unit;
      const std::int64_t lane = outlier_lane(row, lanes);
      const auto at = [&](std::int64_t i) -> double& { return x[(lane + i) % lanes]; };
      if (draft.range(side).clip_before > 0) {
        const double nearest = decode(draft.format, encode(draft.format, unit));
        const double step = ulp(draft.format, nearest);
        const double planted[] = {nearest, nearest - step, nearest + step};
        for (std::int64_t i = 0; i < 3; ++i)
          at(i + 1) = planted[i] * signs.sign(static_cast<std::uint64_t>(4 * row + i));
      }
      at(0) = outlier * unit * signs.sign(static_cast<std::uint64_t>(4 * row + 3));
    }
    fit_gain(draft, side);
  }
}

// Empty if of the row every number is within the clamp or at it, the outlier's is at it, and half of them lie within.
std::string row_fault(const std::vector<double>& row, std::int64_t lane, double clamp, bool cut_already) {
  const auto within = std::count_if(row.begin(), row.end(), [&](double x) { return std::abs(x) < clamp; });
  const double top = std::abs(row[static_cast<std::size_t>(lane)]);
  if (cut_already ? top != clamp : top <= clamp) return fmt::format("the outlier is {}, the clamp {}", top, clamp);
  return 2 * within >= std::ssize(row) ? std::string()
                                       : fmt::format("only {} of {} lanes lie within the clamp", within, row.size());
}

std::string clamped_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  constexpr qkcts_stage stages[] = {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_K_NORM, QKCTS_STAGE_V_NORM};
  for (const DraftSide side : {DraftSide::query, DraftSide::key, DraftSide::value}) {
    const qkcts_norm_range& range = range_of(c.contract.terms, side);
    const std::string_view name = stage_name(stages[static_cast<std::size_t>(side)]);
    const auto lanes = static_cast<std::size_t>(row_length(stages[static_cast<std::size_t>(side)], c.shape));
    if (range.clip_before > 0) {
      const Tensor rows = rows_of(c, side);
      for (std::size_t row = 0; row < rows.count() / lanes; ++row) {
        const auto at = static_cast<std::int64_t>(row);
        const std::int64_t lane = outlier_lane(at, static_cast<std::int64_t>(lanes));
        if (std::string fault = row_fault(row_of(rows, at), lane, range.clip_before, false); !fault.empty())
          return fmt::format("row {} before the stage {}: {}", row, name, fault);
      }
    }
    if (range.clip_after > 0) {
      const ProvenStage& stage = golden.stages[stages[static_cast<std::size_t>(side)]].values;
      for (std::size_t i = 0; i < stage.rows.size(); ++i) {
        const auto first = stage.hi.begin() + static_cast<std::ptrdiff_t>(i * lanes);
        const std::vector<double> row(first, first + static_cast<std::ptrdiff_t>(lanes));
        const std::int64_t lane = outlier_lane(stage.rows[i], static_cast<std::int64_t>(lanes));
        if (std::string fault = row_fault(row, lane, range.clip_after, true); !fault.empty())
          return fmt::format("stored row {} of the stage {}: {}", i, name, fault);
      }
    }
  }
  return {};
}

constexpr InputFamily list[] = {
    {"clamped", "an outlier in every row that a clamp cuts, and numbers around the clamp itself", "QK-CLIP",
     "in every row one lane lies beyond the clamp, and at least half of the lanes within", clamped_fault, draw_clamped,
     clamped_broken, true},
};

}  // namespace

std::span<const InputFamily> clamp_families() {
  return list;
}

}  // namespace qkcts
