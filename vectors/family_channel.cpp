// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

std::string needs_lanes(const Draft& draft) {
  return draft.shape.head_dim < 8 ? "needs a head size of at least 8" : std::string();
}

const char* name_of(DraftSide side) {
  return side == DraftSide::query ? "q" : "k";
}

// ---- outlier_channels ---------------------------------------------------------------------------------------------

constexpr double outlier = 32;
constexpr std::size_t outlier_lanes = 2;

// Two lanes of q and two others of k, the same in every head and token.
void draw_outlier_channels(Draft& draft) {
  const std::vector<std::uint32_t> order =
      draft.stream(Draw::order).permutation(static_cast<std::uint32_t>(draft.shape.head_dim));
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const std::size_t first = side == DraftSide::query ? 0 : outlier_lanes;
    std::vector<double>& rows = draft.rows(side);
    for (std::size_t row = 0; row < rows.size(); row += static_cast<std::size_t>(draft.shape.head_dim))
      for (std::size_t i = 0; i < outlier_lanes; ++i) rows[row + order[first + i]] *= outlier;
  }
}

// Mean square of each lane over all rows.
std::vector<double> lane_squares(const Tensor& rows) {
  const auto lanes = static_cast<std::size_t>(rows.shape.back());
  std::vector<double> squares(lanes);
  for (std::size_t i = 0; i < rows.count(); ++i) squares[i % lanes] += rows.value(i) * rows.value(i);
  for (double& x : squares) x /= static_cast<double>(rows.count() / lanes);
  return squares;
}

std::string outlier_channels_broken(const GoldenCase& golden) {
  std::vector<std::size_t> found;
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const std::vector<double> squares = lane_squares(rows_of(golden.input, side));
    std::vector<double> sorted = squares;
    std::sort(sorted.begin(), sorted.end());
    const double limit = 64 * sorted[sorted.size() / 2];
    const auto count = std::count_if(squares.begin(), squares.end(), [&](double x) { return x > limit; });
    if (count != static_cast<std::ptrdiff_t>(outlier_lanes))
      return fmt::format("{} lanes of {} stand out by a factor of 8", count, name_of(side));
    for (std::size_t d = 0; d < squares.size(); ++d)
      if (squares[d] > limit) found.push_back(d);
  }
  std::sort(found.begin(), found.end());
  return std::adjacent_find(found.begin(), found.end()) == found.end() ? std::string() : "q and k share such a lane";
}

// ---- shift --------------------------------------------------------------------------------------------------------

constexpr double grid = 8, widest = 3;

double shift_of(std::int64_t t) {
  return t % 4 == 1 ? 4 : -6;  // of tokens 1, 3 (mod 4)
}

std::string shift_fault(const Draft& draft) {
  if (draft.shape.q_len < 2 || draft.shape.k_len < 2) return "needs at least 2 queries and 2 keys";
  return needs_lanes(draft);
}

// Token 2t + 1 is token 2t, every lane moved by the same number. Entries are eighths, so the sum is exact.
void draw_shift(Draft& draft) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    for (std::int64_t b = 0; b < draft.shape.batch; ++b)
      for (std::int64_t h = 0; h < draft.heads(side); ++h)
        for (std::int64_t t = 0; t < draft.tokens(side); ++t) {
          double* const row = draft.row(side, b, h, t);
          const double* const before = t % 2 == 0 ? nullptr : draft.row(side, b, h, t - 1);
          for (std::int64_t d = 0; d < draft.shape.head_dim; ++d)
            row[d] = before != nullptr ? before[d] + shift_of(t)
                                       : std::clamp(std::floor(row[d] * grid + 0.5) / grid, -widest, widest);
        }
}

std::string shift_broken(const GoldenCase& golden) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const Tensor rows = rows_of(golden.input, side);
    const std::int64_t tokens = rows.shape[2];
    for (std::int64_t row = 1; row < static_cast<std::int64_t>(rows.count()) / rows.shape.back(); ++row) {
      if (row % tokens % 2 == 0) continue;
      const std::vector<double> left = row_of(rows, row - 1), right = row_of(rows, row);
      for (std::size_t d = 0; d < left.size(); ++d)
        if (right[d] - left[d] != shift_of(row % tokens))
          return fmt::format("row {} of {}: lane {} moves from {} to {}", row, name_of(side), d, left[d], right[d]);
    }
  }
  return {};
}

// ---- huge_gains ---------------------------------------------------------------------------------------------------

int gain_exponent(Format format) {
  return format == Format::binary16 ? 8 : 40;
}

std::string huge_gains_fault(const Draft& draft) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const qkcts_norm& norm = draft.norm(side);
    if (norm.applied == 0 || norm.gain != QKCTS_GAIN_W) return "needs gains of q and k that multiply as they stand";
    if (draft.range(side).clip_after > 0) return "needs a norm without a clamp after it";
  }
  const double largest = draft.largest_vector();
  return std::ldexp(16.0, gain_exponent(draft.format)) > largest ? "needs points that hold such gains" : std::string();
}

// Those of q as large as those of k are small, so that scores stay what they are.
void draw_huge_gains(Draft& draft) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const double factor =
        std::ldexp(1.0, side == DraftSide::query ? gain_exponent(draft.format) : -gain_exponent(draft.format));
    for (double& gain : draft.gain(side)) gain *= factor;
    for (double& bias : draft.norm_bias(side)) bias *= factor;
  }
}

std::string huge_gains_broken(const GoldenCase& golden) {
  const double factor = std::ldexp(1.0, gain_exponent(golden.input.inputs.format));
  for (const double gain : golden.input.inputs.at(Input::q_gain).values())
    if (gain < factor / 4) return fmt::format("a gain of q is {}", gain);
  for (const double gain : golden.input.inputs.at(Input::k_gain).values())
    if (gain > 4 / factor) return fmt::format("a gain of k is {}", gain);
  return {};
}

// ---- sum_edge -----------------------------------------------------------------------------------------------------

// What the sum of squares of a row comes to. In binary16 below and above its largest number in turn, which the
// accumulator of such a kernel may not hold; else three quarters of the accumulator's largest.
double edge_sum(Format format, std::int64_t t) {
  if (format == Format::binary16) return t % 2 == 0 ? 0.9 * 65504 : 1.5 * 65504;
  return 0.75 * parameters(accumulator_format(format)).largest;
}

std::string sum_edge_fault(const Draft& draft) {
  if (std::string narrow = narrow_points_fault(draft); !narrow.empty()) return narrow;
  bool any = false;
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const qkcts_norm& norm = draft.norm(side);
    if (norm.applied == 0) continue;
    any = true;
    if (norm.axis == QKCTS_AXIS_FULL_WIDTH) return "needs a norm of each head";
    if (draft.range(side).clip_before > 0) return "needs a norm without a clamp before it";
  }
  return any ? needs_lanes(draft) : "needs a norm";
}

void draw_sum_edge(Draft& draft) {
  const std::int64_t lanes = draft.shape.head_dim;
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    if (draft.norm(side).applied == 0) continue;
    for (std::int64_t b = 0; b < draft.shape.batch; ++b)
      for (std::int64_t h = 0; h < draft.heads(side); ++h)
        for (std::int64_t t = 0; t < draft.tokens(side); ++t) {
          double* const row = draft.row(side, b, h, t);
          const double sum = sum_of_squares({row, row + lanes});
          const double factor = std::sqrt(edge_sum(draft.format, t) / sum);
          for (std::int64_t d = 0; d < lanes; ++d) row[d] *= factor;
        }
  }
}

std::string sum_edge_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    if (norm_of(c.contract.terms, side).applied == 0) continue;
    const Tensor rows = rows_of(c, side);
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(rows.count()) / rows.shape.back(); ++row) {
      const double share = sum_of_squares(row_of(rows, row)) / edge_sum(c.inputs.format, row % rows.shape[2]);
      if (!(std::abs(share - 1) < 0.03))
        return fmt::format("the squares of row {} of {} add up to {:.3g} of what they should", row, name_of(side),
                           share);
    }
  }
  return {};
}

constexpr InputFamily list[] = {
    {"outlier_channels", "few lanes far larger than all others, other ones in q than in k, as trained models have them",
     "QK-NORM", "two lanes of q and two others of k have at least 8 times the rms of the median lane", needs_lanes,
     draw_outlier_channels, outlier_channels_broken, true},
    {"shift", "each second row is the one before it, moved by a constant: centred norms make them equal, others not",
     "QK-NORM", "token 2t + 1 is token 2t plus 4 or minus 6 in every lane, exactly", shift_fault, draw_shift,
     shift_broken, true},
    {"huge_gains", "gains of 2^40 (2^8 in binary16) for q and of 2^-40 for k: what norms make leaves the usual range",
     "QK-GAIN", "gains of q are at least 2^38 (2^6), those of k at most 2^-38 (2^-6)", huge_gains_fault,
     draw_huge_gains, huge_gains_broken},
    {"sum_edge", "sums of squares just below the end of the accumulator's range; in binary16 around that of the format",
     "QK-NORM",
     "sums of squares are 0.75 times the accumulator's largest number within 3 %; in binary16 0.9 and 1.5 times 65,504 "
     "in turn",
     sum_edge_fault, draw_sum_edge, sum_edge_broken, true},
};

}  // namespace

std::span<const InputFamily> channel_families() {
  return list;
}

}  // namespace qkcts
