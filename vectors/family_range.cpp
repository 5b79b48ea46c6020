// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

// ---- huge ---------------------------------------------------------------------------------------------------------

// Gaussian entries times this stay finite, and so do their squares, summed over 8,192 of them, in the accumulator.
int huge_exponent(Format format) {
  if (format == Format::binary64) return 500;
  return format == Format::binary16 ? 12 : 55;
}

std::string huge_fault(const Draft& draft) {
  if (std::string narrow = narrow_points_fault(draft); !narrow.empty()) return narrow;
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    if (draft.norm(side).applied != 0) return {};
  return "needs a norm, or the scores overflow";
}

void draw_huge(Draft& draft) {
  const double factor = std::ldexp(1.0, huge_exponent(draft.format));
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    if (draft.norm(side).applied != 0)
      for (double& x : draft.rows(side)) x *= factor;
  for (double& x : draft.v) x *= factor;
}

std::string huge_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  const double factor = std::ldexp(1.0, huge_exponent(c.inputs.format));
  const double overflow = parameters(accumulator_format(c.inputs.format)).largest;
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const char* const name = side == DraftSide::query ? "q" : "k";
    if (norm_of(c.contract.terms, side).applied == 0) continue;
    const std::vector<double> values = rows_of(c, side).values();
    double largest = 0;
    for (const double x : values) largest = std::max(largest, std::abs(x));
    if (largest < factor || !std::isfinite(largest)) return fmt::format("{} reaches only {}", name, largest);
    const std::int64_t heads = side == DraftSide::query ? c.shape.q_heads : c.shape.kv_heads;
    if (largest > std::sqrt(overflow / static_cast<double>(heads * c.shape.head_dim)))
      return fmt::format("{} reaches {}, its squares may overflow", name, largest);
  }
  return {};
}

// ---- subnormal ----------------------------------------------------------------------------------------------------

std::string always(const Draft&) {
  return {};
}

// Odd lanes of q and k, even lanes of v: what flushes them changes v's lanes entirely and scores by nothing at all.
void draw_subnormal(Draft& draft) {
  const double quantum = smallest_subnormal(draft.format);
  const double top = std::ldexp(1.0, parameters(draft.format).precision - 2);  // half of the subnormal range
  const RandomStream noise = draft.stream(Draw::noise);
  const auto subnormal = [&](std::uint64_t index) {
    return quantum * noise.sign(index) * std::floor(noise.uniform(index + (std::uint64_t{1} << 40U), 1, top));
  };
  const auto lanes = static_cast<std::size_t>(draft.shape.head_dim);
  for (std::size_t i = 0; i < draft.q.size(); ++i)
    if (i % lanes % 2 != 0) draft.q[i] = subnormal(i);
  for (std::size_t i = 0; i < draft.k.size(); ++i)
    if (i % lanes % 2 != 0) draft.k[i] = subnormal(i + (std::uint64_t{1} << 32U));
  const auto v_lanes = static_cast<std::size_t>(draft.shape.v_head_dim);
  for (std::size_t i = 0; i < draft.v.size(); ++i)
    if (i % v_lanes % 2 == 0) draft.v[i] = subnormal(i + (std::uint64_t{1} << 33U));
}

std::string subnormal_broken(const GoldenCase& golden) {
  const Format format = golden.input.inputs.format;
  for (const DraftSide side : {DraftSide::query, DraftSide::key, DraftSide::value}) {
    if (side != DraftSide::value && golden.input.shape.head_dim < 2) continue;
    const std::vector<double> values = rows_of(golden.input, side).values();
    const auto is_subnormal = [&](double x) { return x != 0 && std::abs(x) < smallest_normal(format); };
    const auto count = std::count_if(values.begin(), values.end(), is_subnormal);
    if (count * 3 < static_cast<std::ptrdiff_t>(values.size()))
      return fmt::format("only {} of {} entries of {} are subnormal", count, values.size(),
                         side == DraftSide::query ? "q"
                         : side == DraftSide::key ? "k"
                                                  : "v");
  }
  return {};
}

// ---- small_rows ---------------------------------------------------------------------------------------------------

std::string small_rows_fault(const Draft& draft) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    if (draft.norm(side).applied != 0) return {};
  return "needs a norm";
}

// rms of the rows of token t: 1, 1e-2 ... 1e-12 in turn, 1 ... 1e-3 in binary16, whatever the epsilon.
double small_level(Format format, std::int64_t t) {
  constexpr double levels[] = {1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12}, of_half[] = {1, 1e-1, 1e-2, 1e-3};
  return format == Format::binary16 ? of_half[t % std::ssize(of_half)] : levels[t % std::ssize(levels)];
}

void draw_small_rows(Draft& draft) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    if (draft.norm(side).applied == 0) continue;
    for (std::int64_t b = 0; b < draft.shape.batch; ++b)
      for (std::int64_t h = 0; h < draft.heads(side); ++h)
        for (std::int64_t t = 0; t < draft.tokens(side); ++t) {
          double* const row = draft.row(side, b, h, t);
          for (std::int64_t d = 0; d < draft.shape.head_dim; ++d) row[d] *= small_level(draft.format, t);
        }
  }
}

std::string small_rows_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    if (norm_of(c.contract.terms, side).applied == 0) continue;
    const Tensor rows = rows_of(c, side);
    const std::int64_t tokens = rows.shape[2], heads = rows.shape[1];
    for (std::int64_t t = 0; t < tokens; ++t) {
      double squares = 0;
      for (std::int64_t h = 0; h < heads; ++h) squares += sum_of_squares(row_of(rows, h * tokens + t));
      const auto count = static_cast<double>(heads * rows.shape[3]);
      const double share = std::sqrt(squares / count) / small_level(c.inputs.format, t);
      if (std::abs(share - 1) > 5 * std::sqrt(1.9 / count))
        return fmt::format("token {} has {:.3g} times the rms of its level", t, share);
    }
  }
  return {};
}

constexpr InputFamily list[] = {
    {"huge", "entries whose squares come near the end of the exponent range, without reaching it", "QK-NORM",
     "largest entry at least 2^55 (2^12 in binary16, 2^500 in binary64), no sum of squares overflows", huge_fault,
     draw_huge, huge_broken, true},
    {"subnormal", "half of the entries are subnormal: gradual underflow and flushing differ", "QK-FMT",
     "a third of q, k and v is subnormal", always, draw_subnormal, subnormal_broken, true},
    {"small_rows",
     "rows of rms 1 to 1e-12 under any epsilon: one set of inputs for a sweep of epsilons and their places", "QK-EPS",
     "rows of a token have an rms of 1, 1e-2 ... 1e-12 in turn (binary16: 1 ... 1e-3), none is zero", small_rows_fault,
     draw_small_rows, small_rows_broken, true},
};

}  // namespace

std::span<const InputFamily> range_families() {
  return list;
}

}  // namespace qkcts
