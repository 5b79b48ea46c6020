// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

// ---- saturated ----------------------------------------------------------------------------------------------------

struct PointOfQ {
  qkcts_stage stage = QKCTS_STAGE_Q_NORM;
  std::uint32_t format = 0;  // qkcts_format, 0: there is none
};

// The first point of q itself whose format is narrower in range than binary32.
PointOfQ narrow_point(const qkcts_contract& terms) {
  for (const qkcts_stage stage : {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_Q_ROPE}) {
    const std::uint32_t point = stage_point(terms, stage);
    if (point == QKCTS_E4M3FN || point == QKCTS_E5M2 || point == QKCTS_BINARY16) return {stage, point};
  }
  return {};
}

double largest_at(const PointOfQ& point) {
  return parameters(static_cast<Format>(point.format)).largest;
}

std::string saturated_fault(const Draft& draft) {
  const qkcts_contract& terms = draft.contract.terms;
  if (terms.rounding.saturate == 0) return "needs points that saturate";
  const PointOfQ point = narrow_point(terms);
  if (point.format == 0) return "needs a point of q in a format of a narrow range";
  if (terms.rope.order == QKCTS_ROPE_THEN_NORM) return "needs a norm before the rotation";
  if (terms.q_range.clip_after > 0) return "needs q without a clamp after the norm";
  const qkcts_norm& norm = draft.norm(DraftSide::query);
  if (norm.applied != 0 && (norm.gain == QKCTS_GAIN_NONE || norm.axis == QKCTS_AXIS_FULL_WIDTH))
    return "needs a norm per head with a gain, or none, to make q as large as it likes";
  if (8 * largest_at(point) > parameters(draft.format).largest) return "needs a format of a wider range than the point";
  return draft.shape.head_dim < 8 ? "needs a head size of at least 8" : std::string();
}

// One lane of each query stands far out, and comes to lie beyond the largest number of the point; the others stay far
// below it, and so do the keys, whose scores with it are large but no more.
void draw_saturated(Draft& draft) {
  constexpr double outlier = 8, rest = 0.5;
  const auto lanes = static_cast<double>(draft.shape.head_dim);
  const qkcts_norm& norm = draft.norm(DraftSide::query);
  const double multiplier = draft.range(DraftSide::query).multiplier > 0 ? draft.range(DraftSide::query).multiplier : 1;
  // What the norm makes of the outlier, about.
  double reached = outlier;
  if (norm.applied != 0) {
    reached /= std::sqrt(outlier * outlier + rest * rest * (lanes - 1));
    if (norm.statistic == QKCTS_MEAN_SQUARE) reached *= std::sqrt(lanes);
  }
  const double factor = 2.5 * largest_at(narrow_point(draft.contract.terms)) / (reached * multiplier);
  draft.freeze_positions();
  if (norm.applied != 0) draft.set_gain(DraftSide::query, factor);
  const double amplitude = norm.applied != 0 ? 1 : factor;
  const RandomStream signs = draft.stream(Draw::direction);
  for (std::size_t row = 0; row * draft.shape.head_dim < draft.q.size(); ++row) {
    double* const q = draft.q.data() + row * static_cast<std::size_t>(draft.shape.head_dim);
    for (std::int64_t d = 0; d < draft.shape.head_dim; ++d) q[d] *= rest * amplitude;
    q[row % static_cast<std::size_t>(draft.shape.head_dim)] = outlier * amplitude * signs.sign(row);
  }
  // Scores of the size of the largest number of the point are enough for one weight to outweigh all others.
  for (double& k : draft.k) k *= 0x1p-4;
  if (draft.norm(DraftSide::key).applied != 0) {
    for (double& gain : draft.k_gain) gain *= 0x1p-4;
    for (double& bias : draft.k_bias) bias *= 0x1p-4;
  }
}

std::string saturated_broken(const GoldenCase& golden) {
  const PointOfQ point = narrow_point(golden.input.contract.terms);
  const std::vector<double>& values = golden.stages[point.stage].values.hi;
  const double top = largest_at(point);
  const auto full = std::count_if(values.begin(), values.end(), [&](double x) { return std::abs(x) == top; });
  const auto half = std::count_if(values.begin(), values.end(), [&](double x) { return std::abs(x) < top / 2; });
  const auto lanes = static_cast<std::ptrdiff_t>(golden.input.shape.head_dim);
  if (full * 2 * lanes < std::ssize(values)) return fmt::format("only {} of {} numbers saturate", full, values.size());
  return half * 2 >= std::ssize(values) ? std::string()
                                        : fmt::format("only {} of {} numbers stay small", half, values.size());
}

// ---- halfway ------------------------------------------------------------------------------------------------------

// The first point that q or k meets, where it meets it as it is drawn: behind a projection, or at the products of a
// rotation without a norm before it; 0 if there is none.
std::uint32_t first_point(const qkcts_contract& terms, DraftSide side) {
  const qkcts_vector_rounding& rounding = side == DraftSide::query ? terms.rounding.q : terms.rounding.k;
  if (terms.projection.form != QKCTS_PROJECTION_NONE) return rounding.projection;
  return transforms(norm_of(terms, side), range_of(terms, side)) ? 0 : rounding.rope_product;
}

std::string halfway_fault(const Draft& draft) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const std::uint32_t point = first_point(draft.contract.terms, side);
    if (point == 0) return "needs points of q and k at a projection, or at the products of a rotation without a norm";
    const FormatParameters& p = parameters(static_cast<Format>(point));
    if (parameters(draft.format).precision < p.precision + 2)
      return "needs a format with two bits more than its points, to stand halfway between their numbers";
    if (p.emin > -6) return "needs points that have normal numbers around 1";
  }
  return {};
}

// Of every eighth token, of four numbers one is a middle. The others leave no doubt: what follows a number that may be
// rounded either way is known less well, and a case of nothing else could not be judged.
constexpr std::size_t tokens_apart = 8, middles = 4;

// Between two neighbours of the point. Of the middles, in turn: exactly halfway above an even and above an odd number,
// and one unit of the storage format beyond and before it; the others a quarter of the way.
double between(const Draft& draft, Format point, double x, std::size_t turn) {
  constexpr double smallest = 0x1p-6;  // where every format has normal numbers
  if (std::abs(x) < smallest) x = x < 0 ? -smallest : smallest;
  const int digits = parameters(point).precision;
  const double unit = ulp(point, x), finer = ulp(draft.format, x), sign = x < 0 ? -1 : 1;
  double number = std::floor(std::abs(x) / unit);
  if (turn % middles != 0) return sign * (number + 0.25) * unit;
  const std::size_t kind = turn / middles % 4;
  if ((std::fmod(number, 2) != 0) != (kind == 1)) number += number + 1 < std::ldexp(1.0, digits) ? 1 : -1;
  const double beyond = kind == 2 ? finer : kind == 3 ? -finer : 0;
  return sign * ((number + 0.5) * unit + beyond);
}

void draw_halfway(Draft& draft) {
  const auto lanes = static_cast<std::size_t>(draft.shape.head_dim);
  // Where nothing turns, the products of a rotation are the numbers themselves.
  if (!draft.projects()) {
    draft.first_position = 0;
    std::fill(draft.q_position_ids.begin(), draft.q_position_ids.end(), 0);
    std::fill(draft.k_position_ids.begin(), draft.k_position_ids.end(), 0);
  }
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const auto point = static_cast<Format>(first_point(draft.contract.terms, side));
    std::vector<double>& rows = draft.rows(side);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t token = i / lanes % static_cast<std::size_t>(draft.tokens(side));
      const std::size_t turn = i % lanes + (i / lanes) * (middles + 1);
      rows[i] = between(draft, point, rows[i], token % tokens_apart == 0 ? turn : 1);
    }
  }
}

std::string halfway_broken(const GoldenCase& golden) {
  const Format storage = golden.input.inputs.format;
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const auto point = static_cast<Format>(first_point(golden.input.contract.terms, side));
    const Tensor rows = rows_of(golden.input, side);
    std::size_t exact = 0, near = 0, count = 0;
    for (std::size_t i = 0; i < rows.count(); ++i) {
      const auto token = static_cast<std::size_t>(static_cast<std::int64_t>(i) / rows.shape[3] % rows.shape[2]);
      if (token % tokens_apart != 0) continue;
      ++count;
      const double x = rows.value(i);
      const double unit = ulp(point, x), off = std::abs(std::fmod(std::abs(x), unit) - unit / 2);
      if (off == 0) ++exact;
      if (off <= ulp(storage, x)) ++near;
    }
    if (near * 5 < count || near * 3 > count) return fmt::format("{} of {} numbers lie at a middle", near, count);
    if (exact * 3 < near) return fmt::format("{} of {} middles are exact", exact, near);
  }
  return {};
}

constexpr InputFamily list[] = {
    {"saturated", "queries beyond the largest number of a rounding point: what is kept is that number, not infinity",
     "QK-ROUND", "in every second row of q a number is the largest of the point; half of all are below half of it",
     saturated_fault, draw_saturated, saturated_broken, true},
    {"halfway", "halfway between two numbers of a rounding point, exactly or by one unit: ties to even, and either way",
     "QK-ROUND",
     "of every eighth token of q and k, a quarter of the numbers lies within a unit of the storage format of such a "
     "middle, half of those on it",
     halfway_fault, draw_halfway, halfway_broken, true},
};

}  // namespace

std::span<const InputFamily> point_families() {
  return list;
}

}  // namespace qkcts
