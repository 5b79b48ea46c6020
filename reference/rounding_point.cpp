// SPDX-License-Identifier: Apache-2.0
#include "reference/rounding_point.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "reference/point_overflow.hpp"
#include "reference/refusal.hpp"

namespace qkcts {
namespace {

// Without the sign that a zero has in a format: a real number has none.
double rounded(RealView x, Format format) {
  return round_to_format(x, format) + 0.0;
}

double rounded_at(const DeclaredPoint& point, RealView x) {
  const double result = rounded(x, point.format);
  return std::isinf(result) && point.saturate ? std::copysign(parameters(point.format).largest, result) : result;
}

std::optional<DeclaredPoint> declared_point(std::uint32_t format, const qkcts_rounding& rounding,
                                            std::string_view name) {
  if (format == 0) return std::nullopt;
  return DeclaredPoint{static_cast<Format>(format), rounding.saturate != 0, name};
}

}  // namespace

VectorPoints vector_points(const CaseValues& values, Side which) {
  struct Names {
    std::string_view projection, root, reciprocal, unit, norm, product, rope;
  };
  constexpr std::array<Names, 3> names = {{
      {"q_projection", "q_norm_root", "q_norm_reciprocal", "q_norm_unit", "q_norm", "q_rope_product", "q_rope"},
      {"k_projection", "k_norm_root", "k_norm_reciprocal", "k_norm_unit", "k_norm", "k_rope_product", "k_rope"},
      {"", "v_norm_root", "v_norm_reciprocal", "v_norm_unit", "v_norm", "", ""},
  }};
  const qkcts_rounding& rounding = values.terms.rounding;
  const SideValues& side = values.side(which);
  const qkcts_vector_rounding& formats = which == Side::query ? rounding.q
                                         : which == Side::key ? rounding.k
                                                              : rounding.v;
  const Names& name = names[static_cast<std::size_t>(which)];
  const auto point = [&](std::uint32_t format, bool exists, std::string_view text) {
    return declared_point(exists ? format : 0, rounding, text);
  };
  const bool normalises = side.norm.applied != 0;
  const bool turns = side.rope_order != QKCTS_ROPE_NONE;
  return {point(formats.projection, values.projection(which) != nullptr, name.projection),
          point(formats.root, normalises, name.root),
          point(formats.reciprocal, normalises, name.reciprocal),
          point(formats.unit, normalises, name.unit),
          point(formats.norm, side.transforms(), name.norm),
          point(formats.rope_product, turns, name.product),
          point(formats.rope, turns, name.rope)};
}

VectorPoints input_norm_points(const CaseValues& values, Side which) {
  constexpr std::array<std::array<std::string_view, 2>, 2> names = {
      {{"q_input_norm_unit", "q_input_norm"}, {"k_input_norm_unit", "k_input_norm"}}};
  const Projection* projection = values.projection(which);
  VectorPoints points;
  if (projection == nullptr || projection->source.norm.applied == 0) return points;
  const qkcts_rounding& rounding = values.terms.rounding;
  const qkcts_input_rounding& formats = which == Side::query ? rounding.q_input : rounding.k_input;
  const auto& [unit, norm] = names[static_cast<std::size_t>(which)];
  points.unit = declared_point(formats.unit, rounding, unit);
  points.norm = declared_point(formats.norm, rounding, norm);
  return points;
}

RowPoints row_points(const CaseValues& values) {
  const qkcts_rounding& rounding = values.terms.rounding;
  const auto point = [&](std::uint32_t format, std::string_view text) {
    return declared_point(format, rounding, text);
  };
  return {
      point(rounding.scaled_q, "scaled_q"), point(rounding.product, "product"),
      point(rounding.scores, "scores"),     point(values.exists(QKCTS_STAGE_CAPPED) ? rounding.capped : 0, "capped"),
      point(rounding.probs, "probs"),       point(rounding.output, "output")};
}

std::optional<DeclaredPoint> row_point(const CaseValues& values, qkcts_stage stage) {
  const RowPoints points = row_points(values);
  switch (stage) {
    case QKCTS_STAGE_SCORES:
      return points.scores;
    case QKCTS_STAGE_CAPPED:
      return points.capped;
    case QKCTS_STAGE_PROBS:
      return points.probs;
    case QKCTS_STAGE_OUTPUT:
      return points.output;
    default:
      return std::nullopt;
  }
}

std::optional<AtPoint> round_at(const DeclaredPoint& point, RealView lower, RealView upper) {
  if (mpfr_nan_p(lower) != 0 || mpfr_nan_p(upper) != 0) return std::nullopt;
  const AtPoint low{rounded_at(point, lower), rounded(lower, Format::binary64)};
  const AtPoint high{rounded_at(point, upper), rounded(upper, Format::binary64)};
  if (low.after != high.after || low.before != high.before) return std::nullopt;
  return low;
}

// The boundaries of every format are boundaries of only_boundary(). Beside a value next to zero that is not zero only
// refinement helps: it ends, since below half the smallest number everything is 0.
bool PointDecision::decide(std::size_t i, RealView lower, RealView upper, Ask ask) {
  if (decided_[i]) return true;
  std::optional<AtPoint> decided = round_at(point_, lower, upper);
  if (!decided && ask == Ask::rule_too) {
    const std::optional<Boundary> boundary = only_boundary(lower, upper);
    if (!boundary) return false;
    const Standing standing = rule_(i, rational_of(boundary->value.get()));
    if (standing == Standing::unknown) return false;
    if (standing != Standing::equal && mpfr_zero_p(boundary->value.get()) != 0) return false;
    const Real z =
        standing == Standing::equal ? boundary->value : beside(*boundary, standing == Standing::below ? -1 : 1);
    decided = round_at(point_, z.get(), z.get());
  }
  if (!decided) return false;
  if (std::isinf(decided->after)) {
    throw PointOverflow(
        fmt::format("case {}: overflows at rounding point {} ({}): about {:.6g}, and the largest {} is {}; give other "
                    "values, another "
                    "format, or rounding.saturate true",
                    values_.input.slug, point_.name, where_(i), decided->before, parameters(point_.format).name,
                    parameters(point_.format).largest));
  }
  decided_[i] = decided;
  return true;
}

bool PointDecision::is_complete() const {
  return std::all_of(decided_.begin(), decided_.end(), [](const auto& x) { return x.has_value(); });
}

void PointDecision::refuse(long bits) const {
  std::size_t open = 0;
  while (open + 1 < decided_.size() && decided_[open]) ++open;
  throw UndecidedError(
      fmt::format("case {}: rounding point {} ({}): not proven with {} bits; use another seed or value",
                  values_.input.slug, point_.name, where_(open), bits));
}

}  // namespace qkcts
